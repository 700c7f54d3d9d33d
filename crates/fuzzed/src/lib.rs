//! What the fuzzer feeds: each target takes any bytes, as a peer, the kernel or a disk may bring them, and panics if
//! something that must hold does not. `cargo xtask fuzz` searches for such bytes; `cargo test` runs those that were kept.
#![forbid(unsafe_code)]

pub mod targets;

/// Something that reads what others wrote.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of its file, and of its seeds in `fuzz/corpus`.
    pub id: &'static str,
    /// Takes any bytes.
    pub run: fn(&[u8]),
}

/// The target with this name.
pub fn find(id: &str) -> Option<&'static Target> {
    targets::ALL.iter().find(|target| target.id == id)
}
