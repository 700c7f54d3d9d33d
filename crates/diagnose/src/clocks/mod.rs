//! The clocks of the two ends: how they relate, and how long each way took beyond its idle time.
//!
//! Pure: turns exchanges into a straight line with a hard bound ([`relation()`]), and into times of either way
//! that need no relation ([`Idle`]).

mod idle;
mod relation;

pub use idle::Idle;
pub use relation::{MAX_DRIFT_SHARE, relation};
