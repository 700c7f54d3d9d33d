//! Watching paths: when to test, at what cost, when a path changed, and what changed with it.
//!
//! Pure: no I/O and no clock. The caller passes in the times, the results and a seed.
//!
//! ```text
//! schedule (when) ──▶ budget (may it?) ──▶ the caller tests ──▶ chart (did the path change?) ──▶ since (what else?)
//!                                                                 └─ one_clock: rhythm, noise, ranks, shift, recovery
//! ```
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod beginning;
mod blocks;
mod budget;
mod chart;
mod cost;
mod limit;
mod noise;
mod one_clock;
mod options;
mod quantity;
mod ranks;
mod recovery;
mod retention;
mod rhythm;
mod schedule;
mod series;
mod shift;
mod since;
mod step;
mod window;

pub use budget::{Budget, UsedUp, round_up};
pub use chart::Chart;
pub use cost::{Meter, bytes_on_the_path, cost_of, expected_cost, limit, payload_of, planned_cost};
pub use limit::Limit;
pub use one_clock::{Change, LEARNING_DAYS, MAX_TESTS, Mark, Point, tests_to_learn};
pub use quantity::Quantity;
pub use retention::newest_to_delete;
pub use schedule::{Schedule, Turn};
pub use series::{Series, made_in_another_way};
pub use since::{Difference, Differences, differences};
