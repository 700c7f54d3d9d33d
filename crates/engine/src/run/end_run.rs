//! One end's run of a measurement, the same at both ends: its flows begin, are watched, end, and this host is
//! looked at before and afterwards. What the ends tell each other meanwhile is theirs.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::{End, FlowTotals, OwnClock, Placement, Plan, Sample, Snapshot};

use crate::error::EngineError;
use crate::run::observe::{usage_after, usage_before};
use crate::run::prepared::Prepared;
use crate::run::traffic::{Cap, Connected, Traffic};
use crate::run::watched::{Ending, Failure, Watched};

/// The run of one end, whose flows are there.
pub struct EndRun {
    own: Arc<Prepared>,
    traffic: Traffic,
    before: Snapshot,
    /// CPU time and memory in the moment in which the flows had ended.
    used: Snapshot,
    limit_reached: bool,
    has_ended: bool,
    placement: Option<Placement>,
    /// The clock of the samples, once they have ended.
    clock: Option<OwnClock>,
    /// What this end has read, kept open until the run is over.
    sockets: Vec<Arc<OwnedFd>>,
}

/// What has happened to the flows of an end.
pub enum Seen {
    /// Counters at one instant.
    Sample(Box<Sample>),
    /// Payload has moved for as long as it may, and was told to end.
    Limit,
    /// Every flow has ended in good order.
    Ended {
        /// The last sample, with every flow in detail.
        last: Box<Sample>,
        /// What peers reported on the flows themselves.
        totals: Vec<FlowTotals>,
    },
}

impl EndRun {
    /// Starts the threads of `flows`, which wait for [`EndRun::begin`]. Over UDP, none sends to a peer that shows
    /// no sign of life on `control` any more.
    pub fn start(
        own: Arc<Prepared>,
        flows: Vec<Connected>,
        cap: &Cap,
        control: Option<OwnedFd>,
    ) -> Result<Self, EngineError> {
        let traffic = Traffic::start(&own, flows, cap)?;
        traffic.hear(&own.plan, control)?;
        Ok(Self {
            own,
            traffic,
            before: Snapshot::default(),
            used: Snapshot::default(),
            limit_reached: false,
            has_ended: false,
            placement: None,
            clock: None,
            sockets: Vec::new(),
        })
    }

    /// What this host was before payload moves, beside what is known of this end's files.
    pub fn set_before(&mut self, before: Snapshot) {
        self.before = before;
        self.own.stores.note(&mut self.before);
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.own.plan
    }

    /// Lets payload move, for `longest` at most. Returns when it began.
    pub fn begin(&mut self, longest: Option<Duration>) -> Result<Instant, EngineError> {
        usage_before(self.own.observes, &self.own.context, &mut self.before);
        self.traffic.begin(&self.own, longest)
    }

    /// The next thing that happens. Waits for ever before [`EndRun::begin`]. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Seen, Failure> {
        let watched = self.traffic.next().await;
        self.watched(watched)
    }

    fn watched(&mut self, watched: Watched) -> Result<Seen, Failure> {
        match watched {
            Watched::Sample(sample) => Ok(Seen::Sample(sample)),
            Watched::Limit => {
                self.limit_reached = true;
                Ok(Seen::Limit)
            }
            Watched::Ended(outcome) => {
                self.has_ended = true;
                self.used = usage_after(self.own.observes, &self.own.context);
                let Ending { last, totals, placement, clock, sockets } = outcome?;
                (self.placement, self.clock) = (Some(placement), Some(clock));
                self.sockets = sockets;
                Ok(Seen::Ended { last, totals })
            }
        }
    }

    /// Whether payload has moved for as long as the plan lets it.
    pub fn limit_reached(&self) -> bool {
        self.limit_reached
    }

    /// Whether every flow has ended, in good order or not.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Senders stop now and finish their streams; receivers read to the end, within bounds, and if `soon` hardly
    /// wait for what is still on its way.
    pub fn finish(&self, soon: bool) {
        if soon {
            self.traffic.finish_soon();
        } else {
            self.traffic.finish();
        }
    }

    /// What this host is now that the flows have ended, without what they used.
    pub async fn look_again(&self) -> Result<Snapshot, EngineError> {
        self.own.look().await
    }

    /// Everything that this end saw; `after` is [`EndRun::look_again`]'s.
    pub fn into_end(self, mut after: Snapshot, samples: Vec<Sample>) -> End {
        let mut used = self.used;
        after.facts.append(&mut used.facts);
        End {
            host: goodput_kernel::host(),
            before: self.before,
            after,
            samples,
            placement: self.placement,
            movers: self.own.movers.chosen(),
            clock: self.clock,
        }
    }
}
