//! Evidence for tests: a healthy transfer, and how to change it.

mod causes;
mod crowd;
mod make;

use goodput_model::{
    BitRate, Bytes, Cache, Direction, EndName, Fact, Fetch, FetchTimes, Fetches, Finding, HeldTo,
    IdleAndLoaded, Known, Latency, Missing, Plan, RateLimit, Role, RoundTrips, Rpcs, Sink,
    Snapshot, Source, TcpInfo,
};

use crate::names;
use crate::remedy::holes;
use crate::rule::Rule;
use crate::view::View;

pub use crowd::{crowd, paced_crowd};

const SAMPLE_COUNT: u64 = 40;
const PERIOD_S: f64 = 0.1;
const SPAN_US: f64 = 4_200_000.0;

type TcpTweak = Box<dyn Fn(&mut TcpInfo, u64)>;

/// A flow's thread: shares of its time.
#[derive(Debug, Clone, Copy)]
struct Thread {
    blocked: f64,
    paced: f64,
    cpu: f64,
    waiting: Option<f64>,
}

/// A measurement under construction. Near sends, far receives; 1 Gbit/s links of MTU 1500; 4 s.
pub struct Case {
    plan: Plan,
    goodput: f64,
    wobble: f64,
    writer: Thread,
    reader: Thread,
    busy: f64,
    rwnd: f64,
    sndbuf: f64,
    app_limited: f64,
    retransmitted: f64,
    lost: f64,
    chance: bool,
    dropped: f64,
    refused: f64,
    joined: u64,
    sent_datagrams: Option<u64>,
    queued: u64,
    source: Option<f64>,
    sink: Option<f64>,
    stopped: bool,
    bursts: Option<f64>,
    chunk: u64,
    tcp: Vec<TcpTweak>,
    arriving: Vec<TcpTweak>,
    before: [Snapshot; 2],
    after: [Snapshot; 2],
    far: bool,
    silent_sender: bool,
    sender: EndName,
    reported_loss_share: Option<f64>,
    latency: Option<Latency>,
    fetches: Option<Fetches>,
    watched: bool,
    send_queue: f64,
    samples: u64,
    way_s: f64,
    waits_s: (f64, f64),
    late_s: [f64; 2],
    delivered_s: f64,
    held_to: [Option<Vec<HeldTo>>; 2],
}

impl Case {
    /// 800 Mbit/s through a path of 42 ms; nothing in particular limits it.
    pub fn healthy() -> Self {
        let (before, after) = (make::healthy_facts(), make::healthy_facts());
        let case = Self {
            plan: Plan { direction: Direction::Send, ..Plan::standard() },
            goodput: 800e6,
            wobble: 0.2,
            writer: Thread { blocked: 0.6, paced: 0.0, cpu: 0.3, waiting: None },
            reader: Thread { blocked: 0.6, paced: 0.0, cpu: 0.3, waiting: None },
            busy: 1.0,
            rwnd: 0.0,
            sndbuf: 0.0,
            app_limited: 0.0,
            retransmitted: 0.0,
            lost: 0.0,
            chance: false,
            dropped: 0.0,
            refused: 0.0,
            joined: 1,
            sent_datagrams: None,
            queued: 0,
            source: None,
            sink: None,
            stopped: false,
            bursts: None,
            chunk: 128 << 10,
            tcp: Vec::new(),
            arriving: Vec::new(),
            before: [before.clone(), before],
            after: [after.clone(), after],
            far: true,
            silent_sender: false,
            sender: EndName::Near,
            reported_loss_share: None,
            latency: None,
            fetches: None,
            watched: false,
            send_queue: 0.95,
            samples: SAMPLE_COUNT,
            way_s: 0.021,
            waits_s: (0.0, 0.0),
            late_s: [0.0; 2],
            delivered_s: 0.0,
            held_to: [Some(Vec::new()), Some(Vec::new())],
        };
        case.cpu(EndName::Near, 0.1, 0.3).cpu(EndName::Far, 0.1, 0.3)
    }

    pub fn goodput(mut self, bits_per_s: f64) -> Self {
        self.goodput = bits_per_s;
        self
    }

    /// How far the rate swings around its mean.
    pub fn wobble(mut self, share: f64) -> Self {
        self.wobble = share;
        self
    }

    pub fn writer(mut self, blocked: f64, paced: f64, cpu: f64) -> Self {
        self.writer = Thread { blocked, paced, cpu, ..self.writer };
        self
    }

    pub fn reader(mut self, blocked: f64, paced: f64, cpu: f64) -> Self {
        self.reader = Thread { blocked, paced, cpu, ..self.reader };
        self
    }

    /// Shares of the time in which the writer and the reader waited for a CPU.
    pub fn waiting(mut self, writer: f64, reader: f64) -> Self {
        (self.writer.waiting, self.reader.waiting) = (Some(writer), Some(reader));
        self
    }

    /// A sender that sends a file and spends this share of the time in the calls that read the file.
    pub fn source(mut self, share: f64) -> Self {
        let source = Source::File { name: "big".into(), cache: Cache::Cold };
        (self.plan.storage.source, self.source) = (Some(source), Some(share));
        self
    }

    /// A receiver that writes to a file and spends this share of the time in the calls that write.
    pub fn sink(mut self, share: f64) -> Self {
        let sink = Sink { name: "copy".into(), direct: false, fsync: true };
        (self.plan.storage.sink, self.sink) = (Some(sink), Some(share));
        self
    }

    /// Processes that are stopped for 150 of 200 ms: two samples at once, then none.
    pub fn stopped(mut self) -> Self {
        self.stopped = true;
        self
    }

    /// Payload that moves in one burst every 200 ms, and how unequal the bursts are, 0 to 1.
    pub fn in_bursts(mut self, uneven: f64) -> Self {
        self.bursts = Some(uneven);
        self
    }

    /// The chronographs.
    pub fn shares(mut self, busy: f64, rwnd: f64, sndbuf: f64) -> Self {
        (self.busy, self.rwnd, self.sndbuf) = (busy, rwnd, sndbuf);
        self
    }

    pub fn app_limited(mut self, share: f64) -> Self {
        self.app_limited = share;
        self
    }

    pub fn retransmitted(mut self, share: f64) -> Self {
        self.retransmitted = share;
        self
    }

    /// Share of the datagrams lost.
    pub fn lost(mut self, share: f64) -> Self {
        self.lost = share;
        self
    }

    /// The same, lost by chance rather than above a rate.
    pub fn lost_by_chance(mut self, share: f64) -> Self {
        self.chance = true;
        self.lost(share)
    }

    /// Share of the datagrams that the receiving socket dropped.
    pub fn dropped(mut self, share: f64) -> Self {
        self.dropped = share;
        self
    }

    /// Share of the datagrams that a firewall rule of the sender's host dropped.
    pub fn refused(mut self, share: f64) -> Self {
        self.refused = share;
        self
    }

    /// How many datagrams came in each packet.
    pub fn joined(mut self, datagrams: u64) -> Self {
        self.joined = datagrams;
        self
    }

    /// Datagrams sent, however many arrive.
    pub fn datagrams_sent(mut self, count: u64) -> Self {
        self.sent_datagrams = Some(count);
        self
    }

    /// Both hosts on one link: no router between.
    pub fn on_one_link(mut self) -> Self {
        for snapshot in [&mut self.before, &mut self.after].into_iter().flatten() {
            snapshot.facts.remove(names::ROUTE_GATEWAY);
        }
        self
    }

    /// Bytes that wait for the reader, of 1 MB.
    pub fn queued(mut self, bytes: u64) -> Self {
        self.queued = bytes;
        self
    }

    /// Bytes per system call.
    pub fn chunk(mut self, bytes: u64) -> Self {
        self.chunk = bytes;
        self
    }

    pub fn congestion(self, name: &str) -> Self {
        self.plan(|plan| plan.socket.congestion = Some(name.into()))
    }

    pub fn plan(mut self, change: impl Fn(&mut Plan)) -> Self {
        change(&mut self.plan);
        self
    }

    /// Changes the sender's tcp_info of every sample.
    pub fn tcp(mut self, change: impl Fn(&mut TcpInfo, u64) + 'static) -> Self {
        self.tcp.push(Box::new(change));
        self
    }

    /// The receiver's tcp_info is known: round trips of 42 ms, an open window and continuous arrivals. `change` alters
    /// each sample.
    pub fn arriving(mut self, change: impl Fn(&mut TcpInfo, u64) + 'static) -> Self {
        self.arriving.push(Box::new(change));
        self
    }

    /// The same, from a sender that reports nothing, like a server of files.
    pub fn silent_sender(mut self, change: impl Fn(&mut TcpInfo, u64) + 'static) -> Self {
        self.silent_sender = true;
        self.arriving(change)
    }

    /// The end that sent, for code that reads only facts: the samples stay those of a near end that sends.
    pub fn sent_by(mut self, end: EndName) -> Self {
        self.sender = end;
        self
    }

    pub fn fact(mut self, end: EndName, name: &str, fact: impl Into<Fact>) -> Self {
        let fact = fact.into();
        self.before[end as usize].put(name, fact.clone());
        self.after[end as usize].put(name, fact);
        self
    }

    /// A counter that went from 0 to `by`.
    pub fn grows(mut self, end: EndName, name: &str, by: u64) -> Self {
        self.before[end as usize].put(name, 0u64);
        self.after[end as usize].put(name, by);
        self
    }

    /// Removes every fact of an area.
    pub fn without(mut self, end: EndName, area: &str) -> Self {
        for snapshot in [&mut self.before[end as usize], &mut self.after[end as usize]] {
            snapshot.facts.retain(|name, _| name.split('.').next() != Some(area));
            snapshot.lacks(area, "not permitted");
        }
        self
    }

    /// Virtual devices at both ends.
    pub fn without_links(self) -> Self {
        let near = self.fact(EndName::Near, names::LINK_KIND, "veth");
        near.fact(EndName::Far, names::LINK_KIND, "veth")
    }

    /// A peer that does not report.
    pub fn without_far(mut self) -> Self {
        self.far = false;
        self
    }

    /// The share of datagrams that such a peer reports missing, 0 to 1.
    pub fn reported_loss(mut self, share: f64) -> Self {
        self.reported_loss_share = Some(share);
        self
    }

    /// A file was fetched, and this share of the time passed between two fetches.
    pub fn asking(mut self, share: f64) -> Self {
        let first_byte_us = Known::Value(500.0);
        let cpu_wait_us = Known::Value(0.0);
        let first = Fetch { bytes: 1000, whole: true, first_byte_us, took_s: 0.001, cpu_wait_us };
        self.fetches = Some(Fetches {
            version: Known::Value("HTTP/1.1".into()),
            server: Known::missing("not reported"),
            tls: None,
            proxy: None,
            moved_to: None,
            remarks: std::collections::BTreeMap::new(),
            first: Known::Value(first),
            file_bytes: Known::Value(1000),
            answers: 1000,
            connections: Known::Value(1),
            first_byte_us: Known::Value(500.0),
            longest_first_byte_us: Known::Value(900.0),
            whole_s: Known::Value(0.001),
            confirmed_us: None,
            whole_times: Known::missing("not kept"),
            alone_times: Known::missing("not kept"),
            asking_share: Known::Value(share),
            rpcs: None,
        });
        self
    }

    /// The file was read by 4 READs of 64 KiB in flight, each of which took 20 ms, with gaps between answers.
    pub fn calls(mut self, change: impl FnOnce(&mut Rpcs)) -> Self {
        let us = |time: f64| Known::Value(time);
        let mut calls = Rpcs {
            call_bytes: Bytes(64 << 10),
            slots: 4,
            answered: 1000,
            short: 0,
            retransmitted: Known::Value(0),
            put_off: Known::Value(0),
            reconnects: Known::Value(0),
            round_trip_us: us(20_500.0),
            mean_round_trip_us: us(20_500.0),
            p99_round_trip_us: us(21_000.0),
            longest_round_trip_us: us(22_000.0),
            shortest_round_trip_us: us(20_000.0),
            idle_share: Known::Value(0.75),
            reconnecting_share: Known::Value(0.0),
        };
        change(&mut calls);
        self.fetches.iter_mut().for_each(|fetches| fetches.rpcs = Some(calls.clone()));
        self
    }

    /// The first of these fetches took this many seconds for this many bytes, and the other fetches took `others`.
    pub fn fetch_times(mut self, first_s: f64, bytes: u64, others: FetchTimes) -> Self {
        if let Some(fetches) = &mut self.fetches {
            let first_byte_us = Known::Value(500.0);
            let cpu_wait_us = Known::Value(0.0);
            let first = Fetch { bytes, whole: true, first_byte_us, took_s: first_s, cpu_wait_us };
            fetches.first = Known::Value(first);
            fetches.whole_times = Known::Value(others);
        }
        self
    }

    /// Changes the fetches.
    pub fn fetched(mut self, change: impl FnOnce(&mut Fetches)) -> Self {
        if let Some(fetches) = &mut self.fetches {
            change(fetches);
        }
        self
    }

    /// Changes the first fetch.
    pub fn first_fetch(&mut self, change: impl FnOnce(&mut Fetch)) {
        if let Some(Fetches { first: Known::Value(first), .. }) = &mut self.fetches {
            change(first);
        }
    }

    /// The fetched file is an upload, which has no first fetch.
    pub fn uploaded(mut self) -> Self {
        if let Some(fetches) = &mut self.fetches {
            fetches.first = Known::missing("an upload has none");
        }
        self
    }

    /// Medians of probes before the flows began and under load, microseconds; echoes took 100 longer.
    pub fn probed(mut self, idle_us: f64, loaded_us: f64) -> Self {
        let trips = |us: f64| {
            let (n, lost) = (100, Known::Value(0));
            let (p90_us, p99_us, max_us) = (us, us, us);
            Known::Value(RoundTrips {
                n,
                lost,
                min_us: us,
                p50_us: us,
                p90_us,
                p99_us,
                max_us,
                of_every: None,
            })
        };
        let way =
            |more: f64| IdleAndLoaded { idle: trips(idle_us), loaded: trips(loaded_us + more) };
        let unknown = Missing::because("not sampled");
        self.latency = Some(Latency {
            tcp_connect: way(0.0),
            udp_echo: way(100.0),
            tcp_rtt: IdleAndLoaded::missing(&unknown),
            unsent: Known::Missing(unknown.clone()),
            loaded_rpm: Known::Missing(unknown.clone()),
            idle_rpm: Known::Missing(unknown),
        });
        self
    }

    /// How long clock exchanges wait under load on the way there and back, seconds.
    pub fn waits(mut self, there_s: f64, back_s: f64) -> Self {
        self.waits_s = (there_s, back_s);
        self
    }

    /// How long a clock exchange takes on each way when nothing is in the way, seconds; 0.021 at first.
    pub fn far_apart(mut self, way_s: f64) -> Self {
        self.way_s = way_s;
        self
    }

    /// An end that starts counting this many seconds after the payload started.
    pub fn began_late(mut self, end: EndName, by_s: f64) -> Self {
        self.late_s[end as usize] = by_s;
        self
    }

    /// How long payload takes to reach the receiver, seconds.
    pub fn delivered(mut self, after_s: f64) -> Self {
        self.delivered_s = after_s;
        self
    }

    /// An operator whose limit for one client holds the flows of an end for this share of the time.
    pub fn held_to(mut self, end: EndName, role: Role, rate: f64, share: f64) -> Self {
        let held_us = (share * SAMPLE_COUNT as f64 * PERIOD_S * 1e6) as u64;
        let (rate_bits_per_s, limit) = (BitRate(rate), RateLimit::Client);
        self.held_to[end as usize] = Some(vec![HeldTo { role, rate_bits_per_s, limit, held_us }]);
        self
    }

    /// The same, with this limit.
    pub fn limited_by(mut self, end: EndName, limit: RateLimit) -> Self {
        self.held_to[end as usize].iter_mut().flatten().for_each(|held| held.limit = limit);
        self
    }

    /// The same, with one more limit that held this end's receiver.
    pub fn also_held_to(mut self, end: EndName, limit: RateLimit, rate: f64, share: f64) -> Self {
        let first = self.held_to[end as usize].take().unwrap_or_default();
        self = self.held_to(end, Role::Receiver, rate, share).limited_by(end, limit);
        self.held_to[end as usize].iter_mut().for_each(|held| held.extend(&first));
        self
    }

    /// An end that no limit held.
    pub fn not_held(mut self, end: EndName) -> Self {
        self.held_to[end as usize] = Some(Vec::new());
        self
    }

    /// An end that knows nothing of such reports.
    pub fn silent_on_limits(mut self, end: EndName) -> Self {
        self.held_to[end as usize] = None;
        self
    }

    /// Another program's flow: how long its threads waited is unknown.
    pub fn watched(mut self) -> Self {
        self.watched = true;
        self
    }

    /// Share of the send buffer in use.
    pub fn send_queue(mut self, share: f64) -> Self {
        self.send_queue = share;
        self
    }

    /// Both CPUs of an end: shares of softirq and of everything but idle.
    pub fn cpu(mut self, end: EndName, softirq: f64, busy: f64) -> Self {
        for cpu in 0..2 {
            for kind in names::CPU_KINDS {
                let share = match kind {
                    "idle" => 1.0 - busy,
                    "softirq" => softirq,
                    "system" => busy - softirq,
                    _ => 0.0,
                };
                self = self.grows(end, &format!("cpu.{cpu}.{kind}_us"), (share * SPAN_US) as u64);
            }
        }
        self
    }

    /// A token bucket on the sender's device that never makes a packet wait.
    pub fn tbf(self, rate: f64, burst: u64) -> Self {
        let near = EndName::Near;
        self.fact(near, names::QDISC_KIND, "tbf")
            .fact(near, names::QDISC_RATE, rate as u64)
            .fact(near, names::QDISC_BURST, burst)
            .grows(near, names::QDISC_PACKETS, 100_000)
            .overlimits(0.0)
    }

    /// Overlimits per packet.
    pub fn overlimits(self, each: f64) -> Self {
        self.grows(EndName::Near, names::QDISC_OVERLIMITS, (100_000.0 * each) as u64)
    }
}

/// The finding of a rule that must fire; its evidence is never empty, and its commands can be pasted.
pub fn fires(rule: &Rule, case: Case) -> Finding {
    let finding = (rule.check)(&View::new(&case.evidence())).unwrap().expect("the rule fires");
    assert_eq!(finding.rule, rule.id);
    assert!(!finding.evidence.is_empty());
    assert!(finding.evidence.iter().all(|w| w.value.is_finite()), "{finding:?}");
    assert_eq!(finding.advice.iter().flat_map(|a| holes(a)).collect::<Vec<_>>(), [""; 0]);
    finding
}

/// A rule that must stay quiet.
pub fn quiet(rule: &Rule, case: Case) {
    assert_eq!((rule.check)(&View::new(&case.evidence())), Ok(None), "{}", rule.id);
}

/// The reason of a rule that must not be able to decide.
pub fn cannot_tell(rule: &Rule, case: Case) -> String {
    (rule.check)(&View::new(&case.evidence())).unwrap_err().to_string()
}
