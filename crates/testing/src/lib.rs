//! What the tests of several crates share: what a test does that can't run here ([`skip`]), waiting for a
//! condition ([`wait_for`]), a network namespace of its own ([`in_namespace`]), an SSH server ([`Sshd`]), servers of files
//! ([`servers`]), and the corpora of the fuzzer ([`seeds`]). No part of the program.
#![forbid(unsafe_code)]

mod freebsd;
mod namespace;
mod outcome;
mod running;
pub mod seeds;
pub mod servers;
mod sshd;
mod wait;

pub use freebsd::FreeBsd;
pub use namespace::in_namespace;
pub use outcome::{FILE, Kind, Outcome, everything_required, not_judged, skip};
pub use running::{as_test, running_test};
pub use sshd::Sshd;
pub use wait::{PATIENCE, wait_for};
