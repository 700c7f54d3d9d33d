//! One end's run of a measurement, the same at both ends: its flows begin, are watched and end, and this host is
//! observed before and afterwards. It does not handle the messages between the ends.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::{
    End, FlowArrivals, FlowTotals, Gaps, HeldTo, HostCpu, Known, LostFlow, OwnClock, Placement,
    Plan, Sample, Snapshot, no_host_cpu,
};
use goodput_mover::LastHeard;

use crate::error::EngineError;
use crate::run::flow_events::{Failure, FlowsEvent};
use crate::run::observe::{usage_after, usage_before};
use crate::run::prepared::Prepared;
use crate::run::rate_limits::RateLimits;
use crate::run::traffic::{Connected, Traffic};

/// The run of one end whose flows exist.
pub struct EndRun {
    own: Arc<Prepared>,
    traffic: Traffic,
    before: Snapshot,
    /// CPU time and memory at the moment when the flows had ended.
    used: Snapshot,
    limit_reached: bool,
    has_ended: bool,
    placement: Option<Placement>,
    /// Arrival times of each flow's datagrams, once the flows have ended.
    arrivals: Vec<FlowArrivals>,
    /// Pauses between the packets that arrived, once the flows have ended.
    gaps: Option<Gaps>,
    /// How busy the host was, once the flows have ended.
    host_cpu: Known<Vec<HostCpu>>,
    /// The clock of the samples, once they have ended.
    clock: Option<OwnClock>,
    /// The rates that its flows keep to.
    rate_limits: RateLimits,
    /// The limits that held the flows back, once these have ended.
    held_to: Option<Vec<HeldTo>>,
    /// Flows that were lost, once the others have ended.
    lost_flows: Vec<LostFlow>,
    /// Sockets that this end has read, kept open until the run is over.
    sockets: Vec<Arc<OwnedFd>>,
}

/// Events of an end's flows.
pub enum Seen {
    /// Counters at one instant.
    Sample(Box<Sample>),
    /// Payload has moved until its time limit, and was asked to end.
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
    /// Starts the threads of `flows`, which wait for [`EndRun::begin`]. Over UDP, none sends to a peer that shows no
    /// more signs of life, neither on `control` nor in its echoes.
    pub fn start(
        own: Arc<Prepared>,
        flows: Vec<Connected>,
        rate_limits: &RateLimits,
        control: Option<OwnedFd>,
        echoes: LastHeard,
    ) -> Result<Self, EngineError> {
        let traffic = Traffic::start(&own, flows, rate_limits)?;
        traffic.watch_peer(&own.plan, control, echoes)?;
        Ok(Self {
            own,
            traffic,
            before: Snapshot::default(),
            used: Snapshot::default(),
            limit_reached: false,
            has_ended: false,
            placement: None,
            arrivals: Vec::new(),
            gaps: None,
            host_cpu: no_host_cpu(),
            clock: None,
            rate_limits: rate_limits.clone(),
            held_to: None,
            lost_flows: Vec::new(),
            sockets: Vec::new(),
        })
    }

    /// Sets this host's facts before payload moves, in addition to what is known of this end's files.
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

    fn watched(&mut self, watched: FlowsEvent) -> Result<Seen, Failure> {
        match watched {
            FlowsEvent::Sample(sample) => Ok(Seen::Sample(sample)),
            FlowsEvent::Limit => {
                self.limit_reached = true;
                Ok(Seen::Limit)
            }
            FlowsEvent::Ended(outcome) => {
                self.has_ended = true;
                self.used = usage_after(self.own.observes, &self.own.context);
                let ended = *outcome?;
                (self.arrivals, self.gaps) = (ended.arrivals, ended.gaps);
                self.host_cpu = ended.host_cpu;
                self.held_to = Some(ended.held.to(&self.rate_limits));
                (self.placement, self.clock) = (Some(ended.placement), Some(ended.clock));
                (self.sockets, self.lost_flows) = (ended.sockets, ended.lost);
                Ok(Seen::Ended { last: ended.last, totals: ended.totals })
            }
        }
    }

    /// Whether payload has moved until the plan's time limit.
    pub fn limit_reached(&self) -> bool {
        self.limit_reached
    }

    /// Whether every flow has ended, in good order or not.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The limits that held its flows back, once these have ended.
    pub fn held_to(&self) -> &[HeldTo] {
        self.held_to.as_deref().unwrap_or_default()
    }

    /// The flows that it lost, once the others have ended.
    pub fn lost_flows(&self) -> &[LostFlow] {
        &self.lost_flows
    }

    /// Senders stop now and finish their streams; receivers read to the end, within bounds. If `soon`, they hardly wait
    /// for what is still on its way.
    pub fn finish(&self, soon: bool) {
        if soon {
            self.traffic.finish_soon();
        } else {
            self.traffic.finish();
        }
    }

    /// Senders stop now, and receivers without waiting for a far end that can't be asked to hurry.
    pub fn cut(&self) {
        self.traffic.cut();
    }

    /// The far end's senders end on their own, which it `announces` on the control connection or not; see
    /// [`Traffic::await_far_end`].
    pub fn await_far_end(&mut self, announces: bool) {
        self.traffic.await_far_end(announces);
    }

    /// The far end announces that it has stopped sending.
    pub fn far_end_stopped(&self) {
        self.traffic.far_end_stopped();
    }

    /// Nobody waits for the far end any longer: it is gone, or the user waits.
    pub fn forsake_far_end(&mut self) {
        self.traffic.forsake_far_end();
    }

    /// This host's facts now that the flows have ended, without what the flows used.
    pub async fn look_again(&self) -> Result<Snapshot, EngineError> {
        self.own.look_again().await
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
            arrivals: self.arrivals,
            gaps: self.gaps,
            host_cpu: self.host_cpu,
            clock: self.clock,
            held_to: self.held_to,
            lost_flows: self.lost_flows,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use goodput_framing::Framing;
    use goodput_kernel::Context;
    use goodput_model::{Bytes, EndName, FlowPlan, Length};
    use goodput_mover::EarlyPayload;

    use super::*;
    use crate::run::affinity::Affinity;
    use crate::run::movers::Movers;
    use crate::run::storage::OpenFiles;

    fn end_run(plan: &Plan, end: EndName, socket: TcpStream) -> EndRun {
        let own = Prepared {
            plan: plan.clone(),
            end,
            stores: OpenFiles::default(),
            affinity: Affinity::free("the scheduler".into()),
            movers: Movers::of(plan, end).unwrap(),
            context: Context::default(),
            observes: false,
        };
        let flow = FlowPlan { id: 0, sender: EndName::Near };
        let (framing, early) = (Framing::default(), EarlyPayload::default());
        let flows = vec![Connected {
            flow,
            socket: socket.into(),
            framing,
            early,
            bodies: None,
            file: None,
        }];
        EndRun::start(Arc::new(own), flows, &RateLimits::default(), None, LastHeard::default())
            .unwrap()
    }

    async fn last(run: &mut EndRun) -> Sample {
        loop {
            if let Seen::Ended { last, .. } = run.next().await.map_err(|f| f.why).unwrap() {
                return *last;
            }
        }
    }

    #[tokio::test]
    async fn both_ends_run_alike_and_say_what_they_saw() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let plan = Plan { length: Length::Bytes(Bytes(100_000)), ..Plan::standard() };
        let mut near = end_run(&plan, EndName::Near, near);
        let mut far = end_run(&plan, EndName::Far, listener.accept().unwrap().0);
        far.begin(None).unwrap();
        near.begin(None).unwrap();
        let (sent, received) = (last(&mut near).await, last(&mut far).await);
        assert_eq!((sent.sent_bytes, received.received_bytes), (100_000, 100_000));
        assert!(near.has_ended() && far.has_ended() && !near.limit_reached());
        let end = far.into_end(Snapshot::default(), vec![received]);
        assert_eq!(end.placement.unwrap().flows.len(), 1);
        assert!(end.clock.is_some() && end.samples.len() == 1);
        assert_eq!(end.held_to, Some(Vec::new()), "no limit, and that is known");
    }

    #[tokio::test]
    async fn payload_ends_at_the_limit_and_the_end_hears_of_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _far = listener.accept().unwrap().0;
        let mut near = end_run(&Plan::standard(), EndName::Near, near);
        near.begin(Some(Duration::from_millis(1))).unwrap();
        while !near.limit_reached() {
            near.next().await.map_err(|f| f.why).unwrap();
        }
        assert!(!near.has_ended(), "what is sent is still on its way");
    }
}
