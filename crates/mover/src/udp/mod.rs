//! What datagrams need beyond a socket: their header, the counting of what is missing, batches.

pub mod header;
pub(crate) mod inbox;
pub mod jitter;
pub(crate) mod outbox;
pub mod sequence;
