//! An observer of the payload that arrives.

use std::fmt;

/// Sees what a receiving flow gets, before its memory is reused. For tests and for embedders; without a tap, nobody
/// looks at payload.
pub trait Tap: fmt::Debug + Send + Sync {
    /// The next bytes of a stream, or a whole datagram with its header. Called by the flow's own thread, which reads on
    /// after this returns.
    fn saw(&self, payload: &[u8]);
}
