//! What the tests of several crates share: what a test does that can't run here ([`skip`]), waiting for a
//! condition ([`wait_for`]), and a network namespace of its own ([`in_namespace`]). No part of the program.
#![forbid(unsafe_code)]

mod namespace;
mod outcome;
mod wait;

pub use namespace::in_namespace;
pub use outcome::{FILE, Kind, Outcome, everything_required, not_judged, skip};
pub use wait::{PATIENCE, wait_for};
