//! The reports of the thread that watches the flows, and how long it lets payload move.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::{FlowTotals, OwnClock, Placement, Sample};
use goodput_mover::{MoveError, Stop};

/// What happened to the flows.
pub enum FlowsEvent {
    /// Counters at one instant.
    Sample(Box<Sample>),
    /// Payload has moved for as long as it may, and was told to end.
    Limit,
    /// Every flow has ended.
    Ended(Result<EndedFlows, Failure>),
}

/// How long payload moves at most. The thread that watches the flows holds it, whatever holds up those that it
/// tells.
pub struct Limit {
    after: Option<Duration>,
    stop: Arc<Stop>,
    drain: Duration,
}

impl Limit {
    /// `after` the beginning `stop` ends the flows, whose receivers read on for `drain`.
    pub fn new(after: Option<Duration>, stop: &Arc<Stop>, drain: Duration) -> Self {
        Self { after, stop: Arc::clone(stop), drain }
    }

    /// When it is reached, where payload `began`; `None`: never, or it was.
    pub fn ends(&self, began: Instant) -> Option<Instant> {
        began.checked_add(self.after?)
    }

    /// It is reached.
    pub fn reach(&mut self) {
        self.after = None;
        self.stop.finish(self.drain);
    }

    #[cfg(test)]
    pub fn none() -> Self {
        Self { after: None, stop: Arc::new(Stop::new().unwrap()), drain: Duration::ZERO }
    }
}

/// How flows have ended that did so in good order.
pub struct EndedFlows {
    /// The last sample, with every flow in detail.
    pub last: Box<Sample>,
    /// What peers reported on the flows themselves, as iperf2's do over UDP.
    pub totals: Vec<FlowTotals>,
    /// Where each flow's thread ran.
    pub placement: Placement,
    /// When the times of the samples were zero.
    pub clock: OwnClock,
    /// Streams that were read here. Closed while the sender has not heard yet that it is over, as where
    /// its host is busy, they would look as if this end had vanished.
    pub sockets: Vec<Arc<OwnedFd>>,
}

/// How a flow failed.
pub struct Failure {
    /// In words.
    pub why: String,
    /// Whether the peer broke it off, which then knows the reason.
    pub by_peer: bool,
}

impl From<&MoveError> for Failure {
    fn from(error: &MoveError) -> Self {
        Self { why: error.to_string(), by_peer: error.is_by_peer() }
    }
}
