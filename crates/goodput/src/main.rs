//! The `goodput` binary.
fn main() {}
