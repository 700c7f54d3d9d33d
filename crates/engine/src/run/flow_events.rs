//! The reports of the thread that watches the flows, and its limit on the time that payload moves.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::{
    FlowArrivals, FlowTotals, Gaps, HeldTo, HostCpu, Known, LostFlow, OwnClock, Placement, Role,
    Sample,
};
use goodput_mover::{MoveError, Stop};

use crate::run::rate_limits::RateLimits;

/// What happened to the flows.
pub enum FlowsEvent {
    /// Counters at one instant.
    Sample(Box<Sample>),
    /// Payload has moved until its time limit, and was asked to end.
    Limit,
    /// Every flow has ended.
    Ended(Result<Box<EndedFlows>, Failure>),
}

/// The longest time that payload moves. The thread that watches the flows enforces it, even if whoever takes its
/// reports is held up.
pub struct TimeLimit {
    after: Option<Duration>,
    stop: Arc<Stop>,
    drain: Duration,
}

impl TimeLimit {
    /// `stop` ends the flows `after` the beginning; their receivers keep reading for `drain`.
    pub fn new(after: Option<Duration>, stop: &Arc<Stop>, drain: Duration) -> Self {
        Self { after, stop: Arc::clone(stop), drain }
    }

    /// When the limit is reached, if payload `began`; `None`: never, or it already was.
    pub fn ends(&self, began: Instant) -> Option<Instant> {
        began.checked_add(self.after?)
    }

    /// The limit is reached.
    pub fn reach(&mut self) {
        self.after = None;
        self.stop.finish(self.drain);
    }

    /// The stop signal of the flows.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// How long ago the flows should have ended; `None`: they need not yet.
    pub fn overdue(&self) -> Option<Duration> {
        self.stop.overdue()
    }

    #[cfg(test)]
    pub fn none() -> Self {
        Self { after: None, stop: Arc::new(Stop::new().unwrap()), drain: Duration::ZERO }
    }
}

/// The result of flows that have ended in good order.
pub struct EndedFlows {
    /// The last sample, with every flow in detail.
    pub last: Box<Sample>,
    /// What peers reported on the flows themselves, as iperf2 does over UDP.
    pub totals: Vec<FlowTotals>,
    /// Arrival times of each flow's datagrams, if they were kept.
    pub arrivals: Vec<FlowArrivals>,
    /// Pauses between the packets of each flow that arrived, if any received datagrams.
    pub gaps: Option<Gaps>,
    /// How busy the host was.
    pub host_cpu: Known<Vec<HostCpu>>,
    /// Where each flow's thread ran.
    pub placement: Placement,
    /// How long each shared rate held the flows back.
    pub held: Held,
    /// The clock of the samples, which began at their time zero.
    pub clock: OwnClock,
    /// Streams that were read here. Closing them before the sender has learned that it is over, as when its host is
    /// busy, would look as if this end had vanished.
    pub sockets: Vec<Arc<OwnedFd>>,
    /// Flows that were lost on the way; the others ended in good order.
    pub lost: Vec<LostFlow>,
}

/// How long each shared rate held back the flows that sent here, and those that received, microseconds, summed over all
/// flows; in the order of the rates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Sending flows.
    pub sent_us: Vec<u64>,
    /// Receiving flows.
    pub received_us: Vec<u64>,
}

impl Held {
    /// Adds what one flow counted.
    pub fn add(&mut self, role: Role, held_us: &[u64]) {
        let sums = match role {
            Role::Sender => &mut self.sent_us,
            Role::Receiver => &mut self.received_us,
        };
        sums.resize(sums.len().max(held_us.len()), 0);
        sums.iter_mut().zip(held_us).for_each(|(sum, own)| *sum = sum.saturating_add(*own));
    }

    /// The same for a report, by the limits that were in force. Limits that held nothing back are left out.
    pub fn to(&self, rate_limits: &RateLimits) -> Vec<HeldTo> {
        let roles = [(Role::Sender, &self.sent_us), (Role::Receiver, &self.received_us)];
        let held = roles.into_iter().flat_map(|(role, held_us)| {
            rate_limits.shared(role).iter().zip(held_us).map(move |(shared, held_us)| HeldTo {
                role,
                rate_bits_per_s: shared.rate.rate(),
                limit: shared.limit,
                held_us: *held_us,
            })
        });
        held.filter(|held| held.held_us > 0).collect()
    }
}

/// How a flow failed.
pub struct Failure {
    /// In words.
    pub why: String,
    /// Whether the peer broke it off, and therefore knows the reason.
    pub by_peer: bool,
    /// Whether this user's permissions are insufficient.
    pub not_permitted: bool,
}

impl From<&MoveError> for Failure {
    fn from(error: &MoveError) -> Self {
        let (by_peer, not_permitted) = (error.is_by_peer(), error.is_not_permitted());
        Self { why: error.to_string(), by_peer, not_permitted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::rate_limits::SharedLimit;
    use goodput_model::{BitRate, RateLimit};
    use goodput_mover::SharedRate;

    #[test]
    fn what_held_flows_is_reported_with_whose_limit_it_is() {
        let shared = |rate, limit| {
            let rate = SharedRate::new(BitRate(rate)).map(Arc::new).unwrap();
            SharedLimit { rate, limit }
        };
        let limits = || vec![shared(5e7, RateLimit::Client), shared(1e9, RateLimit::Total)];
        let rate_limits = RateLimits { rate: None, sent: limits(), received: limits() };
        let mut held = Held::default();
        held.add(Role::Receiver, &[30, 0]);
        held.add(Role::Receiver, &[40, 0]);
        let expected = HeldTo {
            role: Role::Receiver,
            rate_bits_per_s: BitRate(5e7),
            limit: RateLimit::Client,
            held_us: 70,
        };
        assert_eq!(held.to(&rate_limits), [expected]);
        held.add(Role::Sender, &[0, 9]);
        let limits: Vec<_> =
            held.to(&rate_limits).iter().map(|held| (held.role, held.limit)).collect();
        assert_eq!(limits[0], (Role::Sender, RateLimit::Total));
        assert_eq!(Held::default().to(&rate_limits), []);
    }
}
