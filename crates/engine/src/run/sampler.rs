//! The one thread that reads the flows' counters while they run.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::{
    EndName, FlowArrivals, FlowPlacement, FlowSample, Gaps, Known, Role, Sample, Transport,
    no_storage,
};
use goodput_mover::{Counters, MountedFile, RunningFlow, Stop};
use tokio::sync::mpsc::UnboundedSender;

use crate::clock;
use crate::run::affinity::Affinity;
use crate::run::cadence::Cadence;
use crate::run::flow_events::{EndedFlows, Failure, FlowsEvent, Held, TimeLimit};
use crate::run::host_load::HostLoad;
use crate::run::lost_flows::{Joined, end_without_a_direction, lost};
use crate::run::stuck_flows::given_up;
use crate::run::unsent;

/// How often to check whether the flows have ended, so that short transfers don't wait for a sample.
const END_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// What is watched beside the flows.
pub struct OwnHost {
    /// Which end this is.
    pub end: EndName,
    /// The CPUs of the flows.
    pub affinity: Affinity,
    /// How busy the host is.
    pub load: HostLoad,
    /// Whether the measurement may go on without flows that it loses.
    pub may_lose_flows: bool,
}

/// What the samples count from.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// The instant of their clock's zero.
    pub at: Instant,
    /// Payload bytes that had come by then: what the sample of [`first`] has received.
    pub came_bytes: u64,
}

impl Start {
    /// What flows have done by `at_s`. What waits in a socket is not read at once, and has come all the same; what was never
    /// read did not arrive.
    fn sample(&self, flows: &[RunningFlow], at_s: f64, detailed: bool) -> Sample {
        let sample = take(flows, at_s, detailed);
        let least = if flows.iter().all(RunningFlow::is_finished) { 0 } else { self.came_bytes };
        Sample { received_bytes: sample.received_bytes.max(least), ..sample }
    }
}

/// The sample before anything is read. A sampling thread may start too late for it. Its received bytes are those that
/// came before its time, because the peer began earlier: they would pass for the first interval's.
pub fn first(flows: &[RunningFlow], cadence: Cadence) -> Sample {
    let received_bytes = flows.iter().map(came_before).sum();
    Sample { received_bytes, ..take(flows, 0.0, cadence.detail.is_some()) }
}

/// Payload bytes that have come to a flow that reads nothing yet. None of bodies and files have: they come when this end
/// asks for them.
fn came_before(flow: &RunningFlow) -> u64 {
    let config = flow.config();
    let is_stream = (config.role, config.transport) == (Role::Receiver, Transport::Tcp)
        && config.bodies.is_none()
        && config.file.is_none();
    if !is_stream {
        return flow.waiting_datagram_bytes();
    }
    let waiting = goodput_kernel::queued_input(flow.socket());
    config.early.bytes + waiting.value().copied().unwrap_or_default()
}

/// Samples `flows` until all have ended, then joins them; [`first`] was taken before. Ends at the latest when their
/// stop signal has ended them, which its holder guarantees, or when calls to files are given up.
pub fn watch(
    flows: Vec<RunningFlow>,
    start: Start,
    cadence: Cadence,
    mut limit: TimeLimit,
    host: OwnHost,
    report: &UnboundedSender<FlowsEvent>,
) {
    let OwnHost { end, affinity, mut load, may_lose_flows } = host;
    let began = beginning(&flows, start.at, &mut limit, report);
    let clock = clock::own(began);
    let mut next_detail = began + cadence.detail.unwrap_or_default();
    let mut period = cadence.period(Duration::ZERO);
    let mut next = began + period;
    let mut enough = cadence.enough;
    let over = loop {
        let finished = match wait_until(next, limit.ends(began), &flows, enough, limit.stop()) {
            WaitEnd::Limit => {
                limit.reach();
                let _ = report.send(FlowsEvent::Limit);
                continue;
            }
            WaitEnd::Enough => {
                enough = None;
                let at_s = sample_time(&flows, began, Instant::now(), false);
                let _ =
                    report.send(FlowsEvent::Sample(Box::new(start.sample(&flows, at_s, false))));
                continue;
            }
            waited => waited == WaitEnd::Ended,
        };
        let now = Instant::now();
        // Half a period early is on time: a sample that came a little late must not skip the next.
        let due = next_detail.checked_sub(period / 2).unwrap_or(next_detail);
        let detailed = cadence.detail.is_some_and(|_| finished || now >= due);
        let sample = start.sample(&flows, sample_time(&flows, began, now, finished), detailed);
        load.look(now.saturating_duration_since(began).as_secs_f64());
        // Nobody listens after the measurement was broken off; the flows end anyway.
        let _ = report.send(FlowsEvent::Sample(Box::new(sample)));
        if finished {
            break now;
        }
        if let Some(why) = limit.overdue().and_then(|overdue| given_up(&flows, overdue)) {
            // Their threads end with this process.
            let _ = report.send(FlowsEvent::Ended(Err(why)));
            return;
        }
        if detailed {
            next_detail = next + cadence.detail.unwrap_or_default();
        }
        period = cadence.period(next.saturating_duration_since(began));
        next += period;
        // What still comes is not payload; the last sample is from the payload's end.
        while is_over(&flows)
            && wait_until(next, None, &flows, None, limit.stop()) != WaitEnd::Ended
        {
            next += period;
        }
    };
    let sent = if end == EndName::Far { streams(&flows, Role::Sender) } else { Vec::new() };
    let ended = EndedFlows {
        last: Box::new(start.sample(&flows, sample_time(&flows, began, over, true), true)),
        totals: flows.iter().filter_map(RunningFlow::reported_by_peer).collect(),
        arrivals: Vec::new(),
        gaps: None,
        host_cpu: load.end(over.saturating_duration_since(began).as_secs_f64()),
        placement: affinity.placement(flows.iter().map(placed).collect()),
        held: held(&flows),
        clock,
        sockets: streams(&flows, Role::Receiver),
        lost: Vec::new(),
    };
    let ended = joined(flows, began, may_lose_flows, ended);
    let _ = report.send(FlowsEvent::Ended(ended));
    unsent::discard(sent, limit.stop());
}

/// Joins the flows, and adds what only their ends show: what was lost, and when datagrams arrived.
fn joined(
    flows: Vec<RunningFlow>,
    began: Instant,
    may_lose_flows: bool,
    ended: EndedFlows,
) -> Result<Box<EndedFlows>, Failure> {
    let counted: Vec<_> = flows.iter().map(counted).collect();
    let joined = flows.into_iter().map(|flow| Joined::of(flow, began)).collect();
    let (arrivals, gaps) = (arrivals(&counted), gaps(&counted));
    let lost = lost(joined, may_lose_flows)?;
    Ok(Box::new(EndedFlows { arrivals, gaps, lost, ..ended }))
}

/// The number of a flow if it keeps the times of its datagrams, and its counters.
type Counted = (Option<u16>, Arc<Counters>);

fn counted(flow: &RunningFlow) -> Counted {
    let config = flow.config();
    (config.keeps_arrivals.then_some(config.id), Arc::clone(flow.counters()))
}

/// When each datagram of flows that have ended arrived, of those that keep it.
fn arrivals(flows: &[Counted]) -> Vec<FlowArrivals> {
    let kept = flows.iter().filter_map(|(flow, counters)| Some(((*flow)?, counters)));
    kept.map(|(flow, counters)| FlowArrivals { flow, datagrams: counters.arrivals().to_vec() })
        .collect()
}

/// The pauses between packets of flows that have ended, all together.
fn gaps(flows: &[Counted]) -> Option<Gaps> {
    let each = flows.iter().filter_map(|(_, counters)| counters.gaps().cloned());
    each.reduce(|all, more| all.with(&more))
}

/// How long the shared rates held the flows back.
fn held(flows: &[RunningFlow]) -> Held {
    let mut held = Held::default();
    for flow in flows {
        held.add(flow.config().role, &flow.counters().held_us());
    }
    held
}

/// The streams in this role of a protocol whose control connection, and not their end, ends the test: a sender must
/// learn there that all is over before its receiver closes, and a receiver stops reading before its sender has sent all.
fn streams(flows: &[RunningFlow], role: Role) -> Vec<Arc<OwnedFd>> {
    let is_wanted = |flow: &&RunningFlow| {
        let config = flow.config();
        (config.role, config.transport) == (role, Transport::Tcp)
            && config.framing.ends_by_control()
    };
    flows.iter().filter(is_wanted).map(RunningFlow::shared_socket).collect()
}

/// When the payload's clock began: when the gate opened or, if the payload itself marks the beginning,
/// when the first flow saw the mark. Waits for this.
fn beginning(
    flows: &[RunningFlow],
    gate: Instant,
    limit: &mut TimeLimit,
    report: &UnboundedSender<FlowsEvent>,
) -> Instant {
    let announces = |flow: &RunningFlow| {
        flow.config().transport == Transport::Udp && flow.config().framing.announces_its_beginning()
    };
    while flows.iter().any(announces) {
        let over = flows.iter().all(RunningFlow::is_finished);
        if let Some(began) = flows.iter().filter_map(RunningFlow::began_at).min() {
            return began;
        }
        if over {
            break;
        }
        if limit.ends(gate).is_some_and(|ends| ends <= Instant::now()) {
            limit.reach();
            let _ = report.send(FlowsEvent::Limit);
        }
        std::thread::sleep(END_POLL_INTERVAL);
    }
    gate
}

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
enum WaitEnd {
    /// The next sample is due.
    Due,
    /// The awaited number of bytes has been received.
    Enough,
    /// Payload has moved for as long as it may.
    Limit,
    /// All flows have ended.
    Ended,
}

/// Waits for the time of the next sample, for `limit`, for `enough` received bytes, or for the end of all flows. A
/// sample that is due comes before the limit. Ends the flows by `stop` if a direction has lost all of its own.
fn wait_until(
    next: Instant,
    limit: Option<Instant>,
    flows: &[RunningFlow],
    enough: Option<u64>,
    stop: &Stop,
) -> WaitEnd {
    loop {
        if flows.iter().all(RunningFlow::is_finished) {
            return WaitEnd::Ended;
        }
        end_without_a_direction(flows, stop);
        if enough.is_some_and(|enough| total(flows, Role::Receiver) >= enough) {
            return WaitEnd::Enough;
        }
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return WaitEnd::Due;
        }
        let to_limit = limit.map(|at| at.saturating_duration_since(Instant::now()));
        if to_limit.is_some_and(|left| left.is_zero()) {
            return WaitEnd::Limit;
        }
        std::thread::sleep(left.min(END_POLL_INTERVAL).min(to_limit.unwrap_or(END_POLL_INTERVAL)));
    }
}

/// Whether all payload has moved, and only the flows' threads still run.
fn is_over(flows: &[RunningFlow]) -> bool {
    let has_ended = |flow: &RunningFlow| flow.finished_at().is_some();
    flows.iter().all(has_ended) || flows.iter().any(|flow| ends_all(flow) && has_ended(flow))
}

/// Whether the end of this flow ends all flows.
fn ends_all(flow: &RunningFlow) -> bool {
    let config = flow.config();
    config.role == Role::Receiver
        && config.transport == Transport::Udp
        && config.framing.ends_together()
}

/// The instant that a sample stands for: now, or when the last flow ended, so that idle time does not count.
fn sample_time(flows: &[RunningFlow], began: Instant, now: Instant, finished: bool) -> f64 {
    let last_end = flows.iter().filter_map(RunningFlow::finished_at).max();
    let at = if finished || is_over(flows) { last_end.unwrap_or(now) } else { now };
    at.saturating_duration_since(began).as_secs_f64()
}

fn take(flows: &[RunningFlow], at_s: f64, detailed: bool) -> Sample {
    Sample {
        at_s,
        sent_bytes: total(flows, Role::Sender),
        received_bytes: total(flows, Role::Receiver),
        flows: if detailed { flows.iter().map(detail).collect() } else { Vec::new() },
    }
}

/// Bytes that the flows of a role have moved.
fn total(flows: &[RunningFlow], role: Role) -> u64 {
    flows.iter().filter(|f| f.config().role == role).map(|f| f.counters().bytes()).sum()
}

fn placed(flow: &RunningFlow) -> FlowPlacement {
    let config = flow.config();
    FlowPlacement {
        flow: config.id,
        role: config.role,
        pinned_to: config.pin,
        seen_on: flow.seen_on(),
    }
}

fn detail(flow: &RunningFlow) -> FlowSample {
    flow.look_where();
    let (config, counters, socket) = (flow.config(), flow.counters(), flow.socket());
    let tcp = config.transport == Transport::Tcp;
    let confirmed = match (&config.bodies, &config.file) {
        _ if config.role == Role::Receiver => None,
        (Some(bodies), _) => bodies.confirmed_bytes(),
        (None, file) => file.as_ref().map(MountedFile::confirmed_bytes),
    };
    // Read after the confirmed bytes and before the queued ones, so that acknowledged bytes never exceed it.
    let bytes = counters.bytes();
    let queued_bytes = match config.role {
        Role::Sender => goodput_kernel::queued_output(socket),
        Role::Receiver => goodput_kernel::queued_input(socket),
    };
    let stored = config.bodies.as_ref().filter(|_| config.role == Role::Sender);
    let acknowledged = stored.zip(queued_bytes.value());
    let acknowledged = acknowledged.map(|(to, waiting)| to.acknowledged_bytes(bytes, *waiting));
    let acked_payload_bytes = confirmed.or(acknowledged);
    FlowSample {
        flow: config.id,
        role: config.role,
        bytes,
        blocked_us: Known::Value(counters.blocked_us()),
        paced_us: Known::Value(counters.paced_us()),
        calls: Known::Value(counters.calls()),
        cpu_us: flow.cpu_us(),
        cpu_wait_us: flow.cpu_wait_us(),
        source_us: match config.storage.source {
            Some(_) => Known::Value(counters.source_us()),
            None => no_storage(),
        },
        sink_us: match config.storage.sink {
            Some(_) => Known::Value(counters.sink_us()),
            None => no_storage(),
        },
        copied_sends: counters.copied_anyway(),
        mapped_bytes: counters.mapped_bytes(),
        exhausted_buffers: counters.exhausted_buffers(),
        tcp: match &config.bodies {
            Some(bodies) => bodies.tcp_info(socket),
            None if tcp => goodput_kernel::tcp_info(socket),
            None => Known::missing("not a TCP flow"),
        },
        mptcp_subflows: goodput_kernel::mptcp_subflows(socket),
        memory: goodput_kernel::socket_memory(socket),
        queued_bytes,
        acked_payload_bytes,
        datagrams: (!tcp).then(|| counters.datagrams()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    use goodput_mover::{FlowConfig, Gate};
    use rustix::net::sockopt::set_socket_linger;

    use super::*;

    fn receiver(socket: TcpStream, stop: &Arc<Stop>) -> RunningFlow {
        flow(Role::Receiver, socket, stop)
    }

    fn flow(role: Role, socket: TcpStream, stop: &Arc<Stop>) -> RunningFlow {
        let config = FlowConfig::new(role, Transport::Tcp, 1000);
        let gate = Arc::new(Gate::default());
        gate.open();
        let mover = goodput_mover::find("copy").unwrap();
        goodput_mover::start(mover, config, socket.into(), gate, Arc::clone(stop)).unwrap()
    }

    fn now() -> Start {
        Start { at: Instant::now(), came_bytes: 0 }
    }

    fn unobserved() -> OwnHost {
        let load = HostLoad::begin(false, &goodput_kernel::Root::default());
        let affinity = Affinity::free(String::new());
        OwnHost { end: EndName::Near, affinity, load, may_lose_flows: true }
    }

    /// A peer that begins earlier fills the first interval with what came before.
    #[test]
    fn what_came_before_the_clock_began_is_no_part_of_the_first_interval() {
        let listener = TcpListener::bind("localhost:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stop = Arc::new(Stop::new().unwrap());
        let gate = Arc::new(Gate::default());
        let waiting = listener.accept().unwrap().0;
        sender.write_all(&[0; 6000]).unwrap();
        while waiting.peek(&mut [0; 6000]).unwrap() < 6000 {}
        let mut config = FlowConfig::new(Role::Receiver, Transport::Tcp, 1000);
        config.early.bytes = 7;
        let mover = goodput_mover::find("copy").unwrap();
        let own = goodput_mover::start(mover, config, waiting.into(), Arc::clone(&gate), stop);
        let flows = vec![own.unwrap()];
        let cadence = Cadence::counting(Duration::from_secs(86_400), None);
        let first = first(&flows, cadence);
        assert_eq!((first.at_s, first.received_bytes), (0.0, 6007));
        let (report, mut watched) = tokio::sync::mpsc::unbounded_channel();
        let start = Start { came_bytes: 6007, ..now() };
        drop(sender);
        gate.open();
        watch(flows, start, cadence, TimeLimit::none(), unobserved(), &report);
        let Some(FlowsEvent::Sample(last)) = watched.blocking_recv() else { panic!("no sample") };
        assert_eq!(last.received_bytes, 6007, "and is counted once");
    }

    /// A sender that counts nothing goes on until it is stopped; the next sample is a day away.
    #[test]
    fn what_is_enough_is_reported_at_once() {
        let listener = TcpListener::bind("localhost:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stop = Arc::new(Stop::new().unwrap());
        let flows = vec![receiver(listener.accept().unwrap().0, &stop)];
        let cadence = Cadence::counting(Duration::from_secs(86_400), Some(5000));
        let (report, mut watched) = tokio::sync::mpsc::unbounded_channel();
        let host = unobserved();
        let thread = std::thread::spawn(move || {
            watch(flows, now(), cadence, TimeLimit::none(), host, &report);
        });
        sender.write_all(&[0; 6000]).unwrap();
        let Some(FlowsEvent::Sample(sample)) = watched.blocking_recv() else { panic!("no sample") };
        assert!((5000..=6000).contains(&sample.received_bytes), "{sample:?}");
        drop(sender);
        thread.join().unwrap();
    }

    /// The other direction would go on for ever: nobody reads what it sends.
    #[test]
    fn a_direction_that_has_lost_all_its_flows_ends_the_other_one() {
        let listener = TcpListener::bind("localhost:0").unwrap();
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stop = Arc::new(Stop::new().unwrap());
        let broken = connect();
        let lost = receiver(listener.accept().unwrap().0, &stop);
        let _unread = connect();
        let others = flow(Role::Sender, listener.accept().unwrap().0, &stop);
        set_socket_linger(&broken, Some(Duration::ZERO)).unwrap();
        drop(broken);
        let cadence = Cadence::counting(Duration::from_secs(86_400), None);
        let limit = TimeLimit::new(None, &stop, Duration::ZERO);
        let (report, mut watched) = tokio::sync::mpsc::unbounded_channel();
        watch(vec![lost, others], now(), cadence, limit, unobserved(), &report);
        drop(report);
        let mut last = None;
        while let Some(event) = watched.blocking_recv() {
            last = Some(event);
        }
        let Some(FlowsEvent::Ended(Err(failure))) = last else { panic!("it ended well") };
        assert!(failure.by_peer, "not that it was aborted: {}", failure.why);
    }

    /// Nobody takes the samples, as when the measurement's driver is held up.
    #[test]
    fn payload_ends_at_its_limit_whoever_listens() {
        let listener = TcpListener::bind("localhost:0").unwrap();
        let _sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stop = Arc::new(Stop::new().unwrap());
        let flows = vec![receiver(listener.accept().unwrap().0, &stop)];
        let day = Duration::from_secs(86_400);
        let cadence = Cadence::counting(day, None);
        let limit = TimeLimit::new(Some(Duration::from_millis(20)), &stop, Duration::ZERO);
        let (report, mut watched) = tokio::sync::mpsc::unbounded_channel();
        watch(flows, now(), cadence, limit, unobserved(), &report);
        assert!(matches!(watched.blocking_recv(), Some(FlowsEvent::Limit)));
        assert!(matches!(watched.blocking_recv(), Some(FlowsEvent::Sample(_))), "the last");
    }
}
