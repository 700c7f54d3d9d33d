//! From both ends' observations to a record: what was measured, what is doubtful about it, and the conclusion.

pub mod acknowledged;
pub mod call_sizes;
pub mod conclude;
pub mod doubts;
pub mod dropped;
pub mod far_totals;
pub mod intervals;
pub mod joined_intervals;
pub mod measurement;
pub mod mount;
pub mod outcome;
pub mod settled;
pub mod silence;
pub mod storage;
pub mod thinned_samples;
pub mod window;
