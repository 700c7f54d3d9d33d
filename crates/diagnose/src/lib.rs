//! From evidence to findings: what limits one direction of one measurement.
//!
//! Pure: [`diagnose`] reads only a [`goodput_model::Evidence`]. Each rule is one file in
//! [`rules`]; all rules look through a [`View`], which derives the quantities they share.
#![forbid(unsafe_code)]
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod account;
mod arriving_rate;
mod bounded;
pub mod bounds;
mod burst_loss;
pub mod ceiling;
mod change;
pub mod check;
pub mod clocks;
mod closed_window;
mod cpu_bound;
mod datagram_rate;
mod diagnosis;
mod dropping_rate;
mod elimination;
mod filled_buffer;
mod finding;
mod fitted;
mod fitted_limit;
pub mod framing;
mod fresh_trip;
mod held_shares;
mod htb;
mod known_rate;
mod limit_amount;
mod loss;
mod lost_elsewhere;
mod lost_here;
mod low_water;
mod measured;
pub mod models;
pub mod names;
mod offers;
mod others_on_cpu;
mod parts;
mod path_steps;
mod policing;
pub mod probability;
pub mod probes;
mod rank;
pub mod remedy;
mod ring;
mod round_rate;
pub mod rule;
pub mod rules;
mod seen;
pub mod shaper;
mod short_queue;
mod shorter_waits;
mod small_bucket;
mod small_segments;
mod standing_rate;
#[cfg(test)]
mod testing;
pub mod thresholds;
mod token_bucket;
mod udev_rule;
mod unselective;
mod vanishing;
pub mod view;
mod witness_counts;

pub use account::{Part, Seat, account_of, parts_of};
pub use change::of_sockets;
pub use diagnosis::{Diagnosis, diagnose};
pub use measured::measured;
pub use offers::{is_of_purpose, offers};
pub use path_steps::path_steps;
pub use rule::Rule;
pub use view::View;
