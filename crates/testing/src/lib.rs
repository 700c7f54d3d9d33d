//! Shared helpers for the tests of several crates: skipping a test that can't run here ([`skip`]), waiting for a
//! condition ([`wait_for`]), scripts to run ([`write_script`]), a private network namespace ([`in_namespace`]), hosts with
//! addresses of their own ([`Hosts`]), an SSH server ([`Sshd`]), file servers ([`servers`]), and the corpora of the fuzzer
//! ([`seeds`]). No part of the program.
#![forbid(unsafe_code)]

mod freebsd;
mod hosts;
mod namespace;
mod outcome;
mod running;
mod script;
pub mod seeds;
pub mod servers;
mod sshd;
mod wait;

pub use freebsd::FreeBsd;
pub use hosts::{Hosts, within};
pub use namespace::in_namespace;
pub use outcome::{FILE, Kind, Outcome, everything_required, not_judged, skip};
pub use running::{as_test, running_test};
pub use script::write_script;
pub use sshd::Sshd;
pub use wait::{WAIT_TIMEOUT, wait_for};
