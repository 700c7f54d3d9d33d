//! The only part of goodput that moves payload: plain blocking threads, one per flow.
//!
//! A caller makes sockets with [`socket`], picks a mover with [`for_role`] and passes both to [`start`]. It then opens
//! the [`Gate`], reads the [`Counters`] during the run, and ends the run with [`Stop`].
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod affinity;
mod aligned;
mod asleep;
mod auto;
mod awaited;
mod bodies;
mod body_source;
mod buffer_pool;
pub mod cache;
mod choice;
mod chunks;
mod clock;
mod completions;
mod counters;
mod error;
mod file_mover;
mod flow;
mod gate;
mod heaps;
mod limits;
mod liveness;
mod lockstep;
mod low_water;
mod mapping;
mod mark_trial;
mod mounted_file;
pub mod movers;
mod multishot;
mod numa;
pub mod pace;
mod pages;
mod payload;
mod pipe;
mod prompt;
mod quiet;
pub mod reference;
mod refilled;
mod ring;
mod running;
mod shared_rate;
mod signal;
pub mod single_work;
mod slice;
pub mod socket;
mod spin;
mod stop;
pub mod storage;
mod storing;
mod stream;
mod tap;
mod transfer;
mod turn;
pub mod udp;
mod write_alone;
mod xdp;

pub use affinity::allowed_cpus;
pub use auto::AUTO;
pub use awaited::{Awaited, Waiter};
pub use body_source::{Bodies, Body, BodyError, BodySource, Connections, Extent, Pause};
pub use choice::{Choice, asked, for_role, most_needs};
pub use clock::{Arrivals, now_ns as monotonic_ns};
pub use counters::Counters;
pub use error::{BodyFault, MoveError, Unsupported};
pub use file_mover::FileMover;
pub use flow::{EarlyPayload, Flow, FlowConfig};
pub use gate::Gate;
pub use heaps::share_heaps;
pub use limits::{Needs, raise_open_files};
pub use liveness::LastHeard;
pub use lockstep::Lockstep;
pub use mounted_file::{MountedFile, PassLog};
pub use movers::{ALL, Mover, check_here, find};
pub use payload::payload_at;
pub use prompt::run_promptly;
pub use running::{RunningFlow, no_thread, start};
pub use shared_rate::{Saved, SharedRate, queue_bytes};
pub use stop::{Phase, Stop};
pub use storage::{Allowance, FileSink, FileSource, FlowStorage};
pub use tap::Tap;
pub use write_alone::write_alone;
