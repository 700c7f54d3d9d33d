//! Reads what the host knows: sockets, devices, queues, routes, settings and counters.
//!
//! It never writes. What can't be read is reported as missing, with the reason. Facts belong to the network namespace
//! of the calling thread.
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod carried;
mod context;
mod device;
mod devices;
mod foreign;
mod host;
mod mounts;
mod mptcp;
mod owner;
pub mod parse;
mod placement;
pub mod profile;
mod receive_hash;
mod root;
mod socket;
pub mod sources;
mod tcp_info;
mod timers;
mod wakeups;

pub use carried::Carried;
pub use context::{Context, Subject};
pub use devices::devices;
pub use foreign::{ForeignSocket, SocketFilter, foreign_sockets, socket_inodes_of};
pub use host::host;
pub use mounts::{FileMount, Mounts, nfs_client};
pub use mptcp::mptcp_subflows;
pub use owner::{Owner, Thread, holders_of, shares_network_namespace, threads_of};
pub use placement::{CpuChoice, Surroundings, surroundings};
pub use receive_hash::receive_hash;
pub use root::Root;
pub use socket::{
    effective_congestion, effective_rcvbuf, effective_sndbuf, queued_input, queued_output,
    socket_memory,
};
pub use sources::{host_busy, snapshot, usage};
pub use tcp_info::{decode, tcp_info};
pub use timers::timer_latenesses;
pub use wakeups::longest_wakeup_delay;
