//! An observer of the payload that arrives.

use std::fmt;

/// Sees what a receiving flow gets, before its memory is used again. For tests and for embedders; without
/// one, nobody looks at payload.
pub trait Tap: fmt::Debug + Send + Sync {
    /// The next bytes of a stream, or a whole datagram with its header. Called by the flow's own thread,
    /// which reads on when this returns.
    fn saw(&self, payload: &[u8]);
}
