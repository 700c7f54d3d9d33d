//! The design and the statistics of a comparison, and the steady part of one measurement.
//!
//! Pure: no I/O and no clock; the caller passes in a seed for all randomness. The run is the unit
//! of a comparison, never an interval inside it.
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod analyse;
mod checks;
pub mod compare;
pub mod conditions;
mod counts;
mod curve;
pub mod design;
mod dose;
pub mod doubts;
mod effective;
mod factors;
pub mod file_parts;
mod in_time;
mod judge;
mod latency;
pub mod looks;
pub mod mechanism;
mod mser;
mod next_step;
mod obvious;
mod order;
mod pair;
mod pairs;
pub mod quantile;
pub mod rate_search;
mod responses;
mod rise;
mod sequential;
mod signed_rank;
pub mod slow_start;
pub mod starting;
pub mod steady;

pub use analyse::{ArmAnalysis, analyse};
pub use compare::conclude;
pub use design::{Design, WARM_UP};
pub use doubts::doubts;
pub use effective::{Alike, alike};
pub use file_parts::file_parts;
pub use in_time::TimeLeft;
pub use mechanism::{Suspect, mechanism};
pub use next_step::{Step, StopReason};
pub use obvious::{BLOCKS_TO_BE_OBVIOUS, Obvious, obvious};
pub use order::order_doubt;
