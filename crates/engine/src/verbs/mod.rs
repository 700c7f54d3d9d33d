//! What a user can request beyond one measurement.

pub mod attach;
pub mod ceiling;
pub mod check;
pub mod compare;
mod deadline;
mod far_turn;
pub mod file_parts;
pub mod find_rate;
pub mod host_limits;
pub mod probe;
pub mod retry;
pub mod shaping;
mod telling;
pub mod top;
pub mod tune;
