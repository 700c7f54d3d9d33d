//! Hosts that have no goodput, reached by SSH: their settings are read, changed and put back with
//! their own programs.
//!
//! [`Shell`] runs programs there, a [`System`] knows the programs of one operating system.
#![forbid(unsafe_code)]
// A library returns what it has to say. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod address;
mod command;
mod counters;
mod error;
mod polling;
#[cfg(test)]
mod scripted;
mod shell;
mod system;
pub mod systems;

pub use address::Address;
pub use command::{Command, Condition};
pub use counters::{Counted, Counters, CpuTime, Packets};
pub use error::RemoteError;
pub use polling::PollingRates;
pub use shell::{Output, Shell};
pub use system::{Listed, System};
