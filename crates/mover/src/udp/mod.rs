//! What datagrams need beyond a socket: their header, the counting of what is missing,
//! batches, and the loops around them.

mod control;
pub mod header;
pub(crate) mod inbox;
pub mod jitter;
pub(crate) mod outbox;
pub(crate) mod receiving;
pub(crate) mod sending;
pub mod sequence;
