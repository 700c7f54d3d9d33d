//! Hosts without goodput, reached by SSH: their settings are read, changed and put back with
//! their own programs.
//!
//! A [`Shell`] runs programs there, and a [`System`] knows the programs of one operating system. [`RemoteChanges`] is
//! the only way to change a host. Before a change, the original is on this host's disk and with a process of that host.
//! A [`FarServer`] is a server for measurements there, for as long as it is held.
#![forbid(unsafe_code)]
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod address;
mod awaited;
mod changes;
mod command;
mod counters;
mod entry;
mod error;
mod far_server;
mod host;
mod hosts;
mod journal;
mod keeper;
mod leftover;
mod look;
mod one_host;
mod others;
mod plain;
mod polling;
mod put_back;
mod saved;
mod script;
#[cfg(test)]
mod scripted;
mod shell;
mod ssh;
mod system;
pub mod systems;
mod turn;
mod undo;
mod written;

pub use address::{Address, BadAddress};
pub use awaited::{AwaitedThere, Notify, Whose};
pub use changes::RemoteChanges;
pub use command::{Command, Condition};
pub use counters::{Counted, Counters, CpuTime, Packets};
pub use error::RemoteError;
pub use far_server::FarServer;
pub use host::Host;
pub use hosts::{Hosts, InOrder, Leg};
pub use keeper::Keeper;
pub use leftover::{LeftThere, leftovers};
pub use polling::PollingRates;
pub use saved::{Removed, SavedThere};
pub use shell::{Output, Shell};
pub use ssh::{Access, Session};
pub use system::{Listed, Process, System, Watch};
pub use turn::RemoteTurn;
pub use undo::{RemoteReport, undo};
