//! What datagrams need beyond a socket: counting missing ones, batches, and the loops around them.

mod answering;
mod arrival_log;
mod asking;
mod control;
mod edges;
mod evenness;
pub(crate) mod inbox;
pub mod jitter;
pub(crate) mod outbox;
mod pauses;
pub(crate) mod receiving;
mod refusals;
pub(crate) mod sender;
pub(crate) mod sending;
pub mod sequence;
mod tally;
pub(crate) mod waiting;

pub(crate) use inbox::stamp_arrivals;
pub use tally::count;
