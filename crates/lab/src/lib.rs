//! A network on this machine: hosts as network namespaces, links that delay, limit and lose packets, faults on demand,
//! and scenario files that say which of these, what to run and what to expect.
//!
//! It changes only what it made itself, and removes all of it afterwards.
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod amount;
mod bpf;
mod build;
mod cgroup;
pub mod error;
pub mod faults;
mod host;
mod host_name;
mod lab;
pub mod limits;
mod need;
mod netem;
mod nft;
pub mod privilege;
mod programs;
mod route_metrics;
mod run;
pub mod scenario;
mod scenarios;
#[cfg(test)]
mod testing;
mod wiring;

pub use error::LabError;
pub use host::{Host, Port};
pub use host_name::HostName;
pub use lab::Lab;
pub use need::{Lack, Need};
pub use run::{Expectation, Failed, Observed, Server, compare, run, tune};
pub use scenario::{Scenario, source as scenario_source};
pub use scenarios::{Builtin, builtin};
