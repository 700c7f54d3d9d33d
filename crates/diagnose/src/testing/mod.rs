//! Evidence for tests: a healthy transfer, and what each cause changes about it.

use std::f64::consts::TAU;

use goodput_model::{
    BitRate, Bytes, DatagramCounts, Direction, End, EndName, Evidence, Fact, Finding, FlowSample,
    Host, Known, Measured, Plan, Role, Sample, Snapshot, SocketMemory, TcpInfo, Transport,
};

use crate::names;
use crate::rule::Rule;
use crate::view::View;

const SAMPLES: u64 = 40;
const PERIOD_S: f64 = 0.1;
const SPAN_US: f64 = 4_200_000.0;

type TcpTweak = Box<dyn Fn(&mut TcpInfo, u64)>;

/// A flow's thread: shares of its time.
#[derive(Debug, Clone, Copy)]
struct Thread {
    blocked: f64,
    paced: f64,
    cpu: f64,
}

/// A measurement in the making. Near sends, far receives; 1 Gbit/s links of MTU 1500; 4 s.
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
    queued: u64,
    tcp: Vec<TcpTweak>,
    before: [Snapshot; 2],
    after: [Snapshot; 2],
    far: bool,
    samples: u64,
}

impl Case {
    /// 800 Mbit/s through a path of 42 ms; nothing in particular limits it.
    pub fn healthy() -> Self {
        let (before, after) = (healthy_facts(), healthy_facts());
        let case = Self {
            plan: Plan { direction: Direction::Send, ..Plan::standard() },
            goodput: 800e6,
            wobble: 0.2,
            writer: Thread { blocked: 0.6, paced: 0.0, cpu: 0.3 },
            reader: Thread { blocked: 0.6, paced: 0.0, cpu: 0.3 },
            busy: 1.0,
            rwnd: 0.0,
            sndbuf: 0.0,
            app_limited: 0.0,
            retransmitted: 0.0,
            lost: 0.0,
            queued: 0,
            tcp: Vec::new(),
            before: [before.clone(), before],
            after: [after.clone(), after],
            far: true,
            samples: SAMPLES,
        };
        case.cpu(EndName::Near, 0.1, 0.3).cpu(EndName::Far, 0.1, 0.3)
    }

    /// The same with datagrams.
    pub fn healthy_udp() -> Self {
        Self::healthy().plan(|plan| {
            plan.transport = Transport::Udp;
            plan.chunk_bytes = Bytes(1400);
        })
    }

    /// Nothing was read at all.
    pub fn empty() -> Self {
        let mut case = Self::healthy();
        case.before = Default::default();
        case.after = Default::default();
        case.samples = 0;
        case
    }

    /// 262144 bytes of receive buffer at most, 42 ms.
    pub fn receive_window() -> Self {
        Self::healthy()
            .goodput(25e6)
            .shares(1.0, 0.97, 0.0)
            .writer(0.99, 0.0, 0.01)
            .reader(0.97, 0.0, 0.02)
            .fact(EndName::Far, names::TCP_RMEM, "4096 131072 262144")
            .tcp(|tcp, _| tcp.snd_wnd_bytes = Some(131_072))
    }

    /// SO_SNDBUF 65536 at 20.4 ms, as measured: the kernel says application-limited.
    pub fn send_buffer() -> Self {
        Self::healthy()
            .goodput(51e6)
            .shares(1.0, 0.0, 0.02)
            .app_limited(1.0)
            .writer(0.99, 0.0, 0.01)
            .reader(0.98, 0.0, 0.01)
            .plan(|plan| plan.socket.sndbuf_bytes = Some(Bytes(65_536)))
            .tcp(|tcp, _| {
                tcp.unacked_segments = Some(90);
                tcp.snd_cwnd_segments = Some(300);
                tcp.rtt_us = Some(20_500);
                tcp.min_rtt_us = Some(20_400);
            })
    }

    /// 16 kB every 1 ms, as measured: the connection is busy throughout.
    pub fn sender_application() -> Self {
        Self::healthy()
            .goodput(116e6)
            .shares(1.0, 0.0, 0.0)
            .app_limited(1.0)
            .writer(0.0, 0.0, 0.05)
            .reader(0.95, 0.0, 0.05)
    }

    /// A receiver held to 20 % of a CPU, as measured: the sender sees nothing but a long RTT.
    pub fn throttled_receiver() -> Self {
        Self::healthy()
            .goodput(9.5e9)
            .without_links()
            .shares(1.0, 0.03, 0.0)
            .writer(0.8, 0.0, 0.2)
            .reader(0.02, 0.0, 0.2)
            .grows(EndName::Far, names::THROTTLED_US, 3_250_000)
            .tcp(|tcp, _| {
                tcp.rtt_us = Some(1645);
                tcp.min_rtt_us = Some(40);
            })
    }

    /// A remote shaper of 100 Mbit/s.
    pub fn path_rate() -> Self {
        Self::healthy()
            .goodput(95.64e6)
            .wobble(0.0)
            .writer(0.98, 0.0, 0.02)
            .reader(0.96, 0.0, 0.03)
            .tcp(|tcp, _| {
                tcp.rtt_us = Some(40_000);
                tcp.min_rtt_us = Some(20_000);
                tcp.delivery_rate_bytes_per_s = Some(11_950_000);
            })
    }

    /// CUBIC at 20 ms and 0.1 % random loss.
    pub fn path_loss() -> Self {
        Self::healthy()
            .goodput(22e6)
            .writer(0.99, 0.0, 0.01)
            .reader(0.99, 0.0, 0.01)
            .retransmitted(0.001)
            .congestion("cubic")
            .tcp(|tcp, _| {
                tcp.rtt_us = Some(20_300);
                tcp.min_rtt_us = Some(20_000);
            })
    }

    /// A token bucket of 1600 bytes at 1 Gbit/s, as measured: 75 % of what it should give.
    pub fn shaper_burst() -> Self {
        Self::healthy()
            .goodput(0.75 * 956.4e6)
            .without_links()
            .tbf(1e9, 1600)
            .overlimits(0.98)
            .writer(0.95, 0.0, 0.05)
            .reader(0.6, 0.0, 0.3)
            .tcp(|tcp, _| {
                tcp.rtt_us = Some(1100);
                tcp.min_rtt_us = Some(1000);
            })
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
        self.writer = Thread { blocked, paced, cpu };
        self
    }

    pub fn reader(mut self, blocked: f64, paced: f64, cpu: f64) -> Self {
        self.reader = Thread { blocked, paced, cpu };
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

    /// Bytes that wait for the reader, of 1 MB.
    pub fn queued(mut self, bytes: u64) -> Self {
        self.queued = bytes;
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

    /// Takes every fact of an area away.
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

    /// Overlimits for each packet.
    pub fn overlimits(self, each: f64) -> Self {
        self.grows(EndName::Near, names::QDISC_OVERLIMITS, (100_000.0 * each) as u64)
    }

    /// What both ends saw.
    pub fn evidence(&self) -> Evidence {
        let far = Known::Value(self.end(EndName::Far));
        Evidence {
            plan: self.plan.clone(),
            sender_end: EndName::Near,
            near: Known::Value(self.end(EndName::Near)),
            far: if self.far { far } else { Known::missing("the peer does not report") },
            measured: Measured {
                goodput: BitRate(self.goodput),
                from_s: 0.45,
                to_s: PERIOD_S * SAMPLES as f64,
                precision_percent: Known::Value(1.0),
            },
        }
    }

    fn end(&self, name: EndName) -> End {
        let host = Host {
            name: name.to_string(),
            kernel: "Linux 6.18.44".into(),
            goodput: "0.1.0".into(),
            cpus: 2,
        };
        let (before, after) = (&self.before[name as usize], &self.after[name as usize]);
        let samples = match self.samples {
            0 => Vec::new(),
            n => (0..=n).map(|n| self.sample(name, n)).collect(),
        };
        End { host, before: before.clone(), after: after.clone(), samples }
    }

    fn sample(&self, end: EndName, number: u64) -> Sample {
        let at_s = number as f64 * PERIOD_S;
        let swing = self.wobble * (TAU * at_s).sin() / TAU;
        let bytes = (self.goodput / 8.0 * (at_s + swing)) as u64;
        let near = end == EndName::Near;
        let flow = if near { self.writing(number, bytes) } else { self.reading(number, bytes) };
        let (sent_bytes, received_bytes) = if near { (bytes, 0) } else { (0, bytes) };
        Sample { at_s, sent_bytes, received_bytes, flows: vec![flow] }
    }

    fn writing(&self, number: u64, bytes: u64) -> FlowSample {
        let datagrams = DatagramCounts { sent: bytes / 1400, ..Default::default() };
        FlowSample {
            tcp: self.tcp_info(number, bytes),
            ..self.flow(Role::Sender, number, bytes, datagrams)
        }
    }

    fn reading(&self, number: u64, bytes: u64) -> FlowSample {
        let received = bytes / 1400;
        let lost = (received as f64 * self.lost / (1.0 - self.lost)) as u64;
        let datagrams = DatagramCounts { received, lost, ..Default::default() };
        self.flow(Role::Receiver, number, bytes, datagrams)
    }

    fn flow(&self, role: Role, number: u64, bytes: u64, datagrams: DatagramCounts) -> FlowSample {
        let thread = if role == Role::Sender { self.writer } else { self.reader };
        let spent = |share: f64| (share * number as f64 * PERIOD_S * 1e6) as u64;
        let sndbuf = self.plan.socket.sndbuf_bytes.map_or(4 << 20, |asked| asked.0 * 2);
        let udp = self.plan.transport == Transport::Udp;
        FlowSample {
            flow: 0,
            role,
            bytes,
            blocked_us: spent(thread.blocked),
            paced_us: spent(thread.paced),
            calls: bytes >> 17,
            cpu_us: Known::Value(spent(thread.cpu)),
            tcp: Known::missing("not sampled"),
            memory: Known::Value(SocketMemory {
                rmem_alloc_bytes: self.queued,
                rcvbuf_bytes: 1_000_000,
                wmem_alloc_bytes: 0,
                sndbuf_bytes: sndbuf,
                wmem_queued_bytes: sndbuf * 95 / 100,
                backlog_bytes: 0,
                drops: 0,
            }),
            queued_bytes: Known::Value(self.queued),
            datagrams: udp.then_some(datagrams),
        }
    }

    fn tcp_info(&self, number: u64, bytes: u64) -> Known<TcpInfo> {
        if self.plan.transport == Transport::Udp {
            return Known::missing("not a TCP flow");
        }
        let spent = |share: f64| Some((share * number as f64 * PERIOD_S * 1e6) as u64);
        let again = (bytes as f64 * self.retransmitted) as u64;
        let marked = (number as f64 * 0.618).fract() < self.app_limited;
        let mut info = TcpInfo {
            length_bytes: 280,
            options: Some(7),
            delivery_rate_app_limited: Some(u64::from(marked)),
            snd_mss_bytes: Some(1448),
            pmtu_bytes: Some(1500),
            unacked_segments: Some(2000),
            snd_cwnd_segments: Some(3000),
            rtt_us: Some(42_500),
            min_rtt_us: Some(42_000),
            delivery_rate_bytes_per_s: Some((self.goodput / 8.0) as u64),
            busy_us: spent(self.busy),
            rwnd_limited_us: spent(self.rwnd),
            sndbuf_limited_us: spent(self.sndbuf),
            sent_bytes: Some(bytes + again),
            retrans_bytes: Some(again),
            total_retrans_segments: Some(again / 1448),
            dsack_dups: Some(0),
            total_rto: Some(0),
            snd_wnd_bytes: Some(8 << 20),
            ..TcpInfo::default()
        };
        for change in &self.tcp {
            change(&mut info, number);
        }
        Known::Value(info)
    }
}

/// The finding of a rule that must fire; its evidence is never empty.
pub fn fires(rule: &Rule, case: Case) -> Finding {
    let finding = (rule.check)(&View::new(&case.evidence())).unwrap().expect("the rule fires");
    assert_eq!(finding.rule, rule.id);
    assert!(!finding.evidence.is_empty());
    assert!(finding.evidence.iter().all(|w| w.value.is_finite()), "{finding:?}");
    finding
}

/// A rule that must stay quiet.
pub fn quiet(rule: &Rule, case: Case) {
    assert_eq!((rule.check)(&View::new(&case.evidence())), Ok(None), "{}", rule.id);
}

/// The reason of a rule that must not be able to tell.
pub fn cannot_tell(rule: &Rule, case: Case) -> String {
    (rule.check)(&View::new(&case.evidence())).unwrap_err().to_string()
}

/// What a healthy host says of itself.
fn healthy_facts() -> Snapshot {
    let mut facts = Snapshot::default();
    facts.put(names::LINK_DEVICE, "eth0");
    facts.put(names::LINK_SPEED, 1_000_000_000u64);
    facts.put(names::LINK_MTU, 1500u64);
    facts.put(names::QDISC_KIND, "fq_codel");
    facts.put(names::OFFLOAD_TSO, "on");
    facts.put(names::TCP_RMEM, "4096 131072 33554432");
    facts.put(names::TCP_WMEM, "4096 65536 4194304");
    facts.put(names::TCP_CONGESTION, "bbr");
    facts.put(names::TCP_AVAILABLE, "reno bbr cubic");
    for counter in [
        names::LINK_RX_DROPPED,
        names::LINK_RX_MISSED,
        names::SOFTNET_DROPPED,
        names::QDISC_PACKETS,
        names::QDISC_DROPS,
        names::QDISC_OVERLIMITS,
        names::THROTTLED_US,
    ] {
        facts.put(counter, 0u64);
    }
    facts
}
