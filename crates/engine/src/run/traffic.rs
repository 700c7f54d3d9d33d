//! One end's share of a measurement: its flows, and the thread that watches them.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_framing::Framing;
use goodput_model::{Connection, EndName, FlowPlan, Plan, Role, Transport};
use goodput_mover::{
    BodySource, EarlyPayload, FlowConfig, Gate, LastHeard, Lockstep, MountedFile, Phase,
    RunningFlow, Stop, no_thread, queue_bytes,
};
use tokio::sync::mpsc;

use crate::error::EngineError;
use crate::run::cadence::Cadence;
use crate::run::flow_events::{Failure, FlowsEvent, TimeLimit};
use crate::run::host_load::HostLoad;
use crate::run::lost_flows::may_lose_flows;
use crate::run::prepared::Prepared;
use crate::run::rate_limits::RateLimits;
use crate::run::sampler::{self, OwnHost, Start};

/// How long receivers keep reading after the senders were stopped. What is still on its way then is given up and shows
/// as the difference between both ends' counts.
const DRAIN_TIME: Duration = Duration::from_secs(3);
/// The same if somebody waits for the end. If one of the last segments was lost, its sender retransmits it after 200 ms
/// and after 400 ms more (`TCP_RTO_MIN`, include/net/tcp.h), if its path is short.
const SHORT_DRAIN_TIME: Duration = Duration::from_secs(1);

/// The same if somebody waits for the end, and the far end can't be asked to hurry: it would go on until it hears of the end,
/// or until all that it has in its sockets has arrived, at the cost of whoever waits. What is on its way then is given up.
const CUT_TIME: Duration = Duration::from_millis(100);

/// How long receivers keep reading from a far end that stops only when it hears of the end, and may have to wait for a CPU
/// or behind a full queue. The same as the longest silence of a far end that is alive (`MAX_STANDSTILL`).
const FAR_END_DRAIN_TIME: Duration = Duration::from_secs(15);

/// The connection of a flow, ready to move payload.
pub struct Connected {
    /// The flow.
    pub flow: FlowPlan,
    /// Its connected socket.
    pub socket: OwnedFd,
    /// How its payload looks on the wire.
    pub framing: Framing,
    /// Payload that was already read.
    pub early: EarlyPayload,
    /// Source of the payload, if it comes in bodies.
    pub bodies: Option<Arc<BodySource>>,
    /// The part of a file on a mount, if the flow is one; its socket is the open file.
    pub file: Option<MountedFile>,
}

/// The addresses that `flows` connect. A flow whose socket does not report them is left out.
pub fn connections(flows: &[Connected]) -> Vec<Connection> {
    let addresses = |flow: &Connected| {
        let socket = socket2::SockRef::from(&flow.socket);
        let local = socket.local_addr().ok()?.as_socket()?;
        let remote = socket.peer_addr().ok()?.as_socket()?;
        Some(Connection { flow: flow.flow.id, local, remote, expected_queue: None })
    };
    flows.iter().filter_map(addresses).collect()
}

/// The flows of one end, started and waiting at the gate, or running.
pub struct Traffic {
    gate: Arc<Gate>,
    stop: Arc<Stop>,
    /// Shared by the sending flows that are read in turn.
    lockstep: Arc<Lockstep>,
    flows: Vec<RunningFlow>,
    /// How long receivers keep reading after the senders were stopped.
    drain: Duration,
    watched: mpsc::UnboundedReceiver<FlowsEvent>,
    report: mpsc::UnboundedSender<FlowsEvent>,
}

impl Traffic {
    /// Starts a thread for each flow; nothing moves before [`Traffic::begin`]. `rate_limits` bounds this end's
    /// rate in addition to the plan's own rate.
    pub fn start(
        own: &Prepared,
        flows: Vec<Connected>,
        rate_limits: &RateLimits,
    ) -> Result<Self, EngineError> {
        let stop = Stop::new().map_err(EngineError::io("make the stop signal of the flows"))?;
        let (report, watched) = mpsc::unbounded_channel();
        let mut traffic = Self {
            gate: Arc::default(),
            stop: Arc::new(stop),
            lockstep: Arc::default(),
            flows: Vec::new(),
            drain: DRAIN_TIME,
            watched,
            report,
        };
        for flow in flows {
            traffic.add(own, rate_limits, flow)?;
        }
        Ok(traffic)
    }

    fn add(
        &mut self,
        own: &Prepared,
        rate_limits: &RateLimits,
        connected: Connected,
    ) -> Result<(), EngineError> {
        let Connected { flow, socket, framing, early, bodies, file } = connected;
        let plan = &own.plan;
        let config = flow_config(plan, own.end, rate_limits, flow);
        // Datagrams sent at full speed would leave the others behind without bound.
        let keeps_step = plan.transport == Transport::Tcp || config.rate.is_some();
        let in_turn = framing.is_read_in_turn() && keeps_step && plan.flows > 1;
        let storage = own.stores.of(plan, flow.id, config.role);
        let pin = own.affinity.of_flow(flow.id);
        let may_be_lost = may_lose_flows(plan) && plan.flows > 1;
        let mut config =
            FlowConfig { framing, early, bodies, file, storage, pin, may_be_lost, ..config };
        if config.bodies.is_some() || config.file.is_some() || config.role == Role::Sender {
            config.limit_bytes = byte_limit(plan, flow.id, 1);
        }
        if in_turn && config.role == Role::Sender {
            config.lockstep = Some(Arc::clone(&self.lockstep));
            config.limit_bytes = byte_limit(plan, flow.id, plan.chunk_bytes.0);
        }
        let mover = own.movers.of_role(config.role).map_err(EngineError::Flow)?;
        let (gate, stop) = (Arc::clone(&self.gate), Arc::clone(&self.stop));
        let running = goodput_mover::start(mover, config, socket, gate, stop)
            .map_err(EngineError::io(format!("start the thread of flow {}", flow.id)))?;
        self.flows.push(running);
        Ok(())
    }

    /// Stops sending datagrams to a far end that shows no more signs of life, neither on `control` nor in its echoes.
    /// Streams notice on their own that nobody acknowledges.
    pub fn watch_peer(
        &self,
        plan: &Plan,
        control: Option<OwnedFd>,
        echoes: LastHeard,
    ) -> Result<(), EngineError> {
        match control.filter(|_| plan.transport == Transport::Udp) {
            Some(control) => self
                .stop
                .watch_peer(control, echoes)
                .map_err(EngineError::io("set a time-out on the silent control connection")),
            None => Ok(()),
        }
    }

    /// Opens the gate and begins to watch. Payload ends after `longest` at the latest. Returns when payload began to
    /// move.
    pub fn begin(
        &mut self,
        own: &Prepared,
        longest: Option<Duration>,
    ) -> Result<Instant, EngineError> {
        let flows = std::mem::take(&mut self.flows);
        let cadence = Cadence::of(&own.plan);
        let first = sampler::first(&flows, cadence);
        let start = Start { at: Instant::now(), came_bytes: first.received_bytes };
        // The receiver lives in `self`.
        let _ = self.report.send(FlowsEvent::Sample(Box::new(first)));
        let report = self.report.clone();
        let load = HostLoad::begin(own.observes, &own.context.root);
        let (affinity, may_lose_flows) = (own.affinity.clone(), may_lose_flows(&own.plan));
        let host = OwnHost { end: own.end, affinity, load, may_lose_flows };
        let limit = TimeLimit::new(longest, &self.stop, self.drain);
        std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || sampler::watch(flows, start, cadence, limit, host, &report))
            .map_err(|cause| no_thread(&cause))
            .map_err(EngineError::io("watch the flows"))?;
        self.gate.open();
        Ok(start.at)
    }

    /// The next report of the watching thread. Waits for ever before [`Traffic::begin`].
    pub async fn next(&mut self) -> FlowsEvent {
        match self.watched.recv().await {
            Some(watched) => watched,
            // Unreachable while `report` lives in `self`; if it ever were, the flows are gone.
            None => {
                let why = "the sampling thread vanished".into();
                FlowsEvent::Ended(Err(Failure { why, by_peer: false, not_permitted: false }))
            }
        }
    }

    /// Senders stop now and finish their streams; receivers read to the end, within bounds.
    pub fn finish(&self) {
        self.stop.finish(self.drain);
    }

    /// The far end's senders end on their own: receivers read until they do, or for 15 s after the stop at most. If the
    /// far end `announces` this on its control connection, no silence ends a flow before. Must be called before
    /// [`Traffic::begin`].
    pub fn await_far_end(&mut self, announces: bool) {
        self.drain = FAR_END_DRAIN_TIME;
        if announces {
            self.stop.await_far_end();
        }
    }

    /// The far end announces that it has stopped sending.
    pub fn far_end_stopped(&self) {
        self.stop.far_end_stopped();
    }

    /// Nobody waits for the far end any longer: it is gone, or the user waits.
    pub fn forsake_far_end(&mut self) {
        self.drain = DRAIN_TIME;
        self.stop.far_end_stopped();
        if self.stop.phase() == Phase::Finish {
            self.stop.finish(self.drain);
        }
    }

    /// Senders stop now and finish their streams; receivers hardly wait for what is still on its way.
    pub fn finish_soon(&self) {
        self.stop.finish(SHORT_DRAIN_TIME);
    }

    /// Senders stop now; receivers wait for nothing of a far end that does not hurry.
    pub fn cut(&self) {
        self.stop.finish(CUT_TIME);
    }

    /// Everything stops at once.
    pub fn abort(&self) {
        self.stop.abort();
    }
}

impl Drop for Traffic {
    /// Whatever ends the measurement also ends its threads.
    fn drop(&mut self) {
        self.abort();
    }
}

fn flow_config(plan: &Plan, end: EndName, rate_limits: &RateLimits, flow: FlowPlan) -> FlowConfig {
    let role = if flow.sender == end { Role::Sender } else { Role::Receiver };
    let own = plan.rate_per_flow();
    // A receiver keeps only to shared rates: what a path has held up comes faster afterwards.
    let rate = match role {
        Role::Receiver => None,
        Role::Sender => own.into_iter().chain(rate_limits.rate).min_by(|a, b| a.0.total_cmp(&b.0)),
    };
    let shared: Vec<_> =
        rate_limits.shared(role).iter().map(|shared| Arc::clone(&shared.rate)).collect();
    let narrowest = shared.iter().map(|shared| shared.rate()).min_by(|a, b| a.0.total_cmp(&b.0));
    let size = plan.chunk_bytes.0 as usize;
    FlowConfig {
        id: flow.id,
        rate,
        rate_is_shared: rate.is_some() && own.is_none_or(|own| rate < Some(own)),
        queue_bytes: narrowest.map(|rate| queue_bytes(rate, plan.flows, size)),
        shared_rates: shared,
        burst_bytes: plan.burst_bytes.map(|burst| usize::try_from(burst.0).unwrap_or(usize::MAX)),
        quickack: plan.socket.quickack,
        keeps_arrivals: plan.arrivals && role == Role::Receiver,
        expected_rate: plan.rate_per_flow(),
        ..FlowConfig::new(role, plan.transport, size)
    }
}

/// Bytes that this flow sends, or asks for, if the plan ends after a number of bytes: an even share in whole units of `unit`
/// bytes. If the number does not divide evenly, the first flows have one unit more, and the last unit of all may be shorter.
pub fn byte_limit(plan: &Plan, id: u16, unit: u64) -> Option<u64> {
    let goodput_model::Length::Bytes(total) = plan.length else { return None };
    let (flows, units) = (u64::from(plan.flows), total.0.div_ceil(unit));
    let place = u64::from(id) % flows;
    let own = units / flows + u64::from(place < units % flows);
    let short = units * unit - total.0;
    let has_last = short > 0 && place == (units - 1) % flows;
    Some(own * unit - if has_last { short } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::rate_limits::SharedLimit;
    use goodput_model::{BitRate, RateLimit};
    use goodput_model::{Bytes, Length};
    use goodput_mover::SharedRate;

    #[test]
    fn shares_of_a_byte_limit_add_up() {
        let plan = Plan { flows: 3, length: Length::Bytes(Bytes(10)), ..Plan::standard() };
        let shares = |unit| [0, 1, 2].map(|id| byte_limit(&plan, id, unit).unwrap());
        assert_eq!(shares(1), [4, 3, 3]);
        assert_eq!(shares(3), [4, 3, 3], "3 and 1, 3, 3");
        assert_eq!(shares(4), [4, 4, 2]);
        assert_eq!(shares(100), [10, 0, 0]);
        assert_eq!(byte_limit(&Plan::standard(), 0, 1), None);
    }

    #[test]
    fn a_cap_holds_in_both_roles_and_the_rate_only_for_the_sender() {
        let plan = Plan { rate_bits_per_s: Some(BitRate(1e6)), flows: 2, ..Plan::standard() };
        let flow = FlowPlan { id: 0, sender: EndName::Near };
        let shared = |rate| {
            let rate = SharedRate::new(BitRate(rate)).map(Arc::new).unwrap();
            vec![SharedLimit { rate, limit: RateLimit::Client }]
        };
        let rate_limits = |rate| RateLimits {
            rate: Some(BitRate(rate)),
            sent: shared(3.0),
            received: shared(4.0),
        };
        let rates = |end, rate_limits: &RateLimits| {
            let config = flow_config(&plan, end, rate_limits, flow);
            let shared = config.shared_rates.iter().map(|shared| shared.rate().0).collect();
            (config.rate.map(|rate| rate.0), config.rate_is_shared, shared)
        };
        assert_eq!(rates(EndName::Near, &RateLimits::default()), (Some(5e5), false, vec![]));
        assert_eq!(rates(EndName::Near, &rate_limits(2e5)), (Some(2e5), true, vec![3.0]));
        assert_eq!(rates(EndName::Near, &rate_limits(2e6)), (Some(5e5), false, vec![3.0]));
        assert_eq!(rates(EndName::Far, &RateLimits::default()), (None, false, vec![]));
        assert_eq!(rates(EndName::Far, &rate_limits(2e5)), (None, false, vec![4.0]));
    }
}
