//! Builds the evidence of a case: cumulative samples of one flow, and the facts of a healthy host.

use std::f64::consts::TAU;

use goodput_model::{
    BitRate, Clocks, DatagramCounts, End, EndName, Evidence, Exchange, FlowSample, Host, Known,
    Measured, OwnClock, Role, Sample, Snapshot, SocketMemory, TcpInfo, Transport,
};

use super::{Case, PERIOD_S, SAMPLE_COUNT};
use crate::names;

const IN_FLIGHT_SEGMENTS: u64 = 2000;

impl Case {
    /// What both ends saw.
    pub fn evidence(&self) -> Evidence {
        let far = Known::Value(self.end(EndName::Far).into());
        Evidence {
            plan: self.plan.clone(),
            sender_end: self.sender,
            near: match self.silent_sender {
                true => Known::missing("the peer does not report"),
                false => Known::Value(self.end(EndName::Near).into()),
            },
            far: if self.far { far } else { Known::missing("the peer does not report") },
            reported_loss_share: self
                .reported_loss_share
                .map_or(Known::missing("not reported"), Known::Value),
            latency: self.latency.clone(),
            fetches: self.fetches.clone(),
            clocks: self.clocks(),
            measured: Measured {
                goodput: BitRate(self.goodput),
                from_s: 0.45,
                to_s: PERIOD_S * SAMPLE_COUNT as f64,
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
        let clock = Some(self.clock(name));
        let (before, after) = (before.clone(), after.clone());
        let held_to = self.held_to[name as usize].clone();
        End { before, after, samples, clock, held_to, ..End::unobserved(host) }
    }

    /// What an end's clock reads this many seconds after the payload started.
    fn reads(end: EndName, after_s: f64) -> u64 {
        let zero: u64 = [1_000_000_000_000, 77_000_000_000_000][end as usize];
        zero.wrapping_add_signed((after_s * 1e9).round() as i64)
    }

    fn clock(&self, end: EndName) -> OwnClock {
        let began_ns = Self::reads(end, self.late_s[end as usize]);
        OwnClock { began_ns, kernel: Some(end.to_string()) }
    }

    /// Sixteen exchanges before the payload, one every 50 ms beside it, and sixteen after it.
    fn clocks(&self) -> Clocks {
        let over_s = PERIOD_S * SAMPLE_COUNT as f64;
        let before = (0..16).map(|n| f64::from(n) * 0.004 - 0.5);
        let during = (0..(over_s / 0.05) as u32).map(|n| f64::from(n) * 0.05);
        let after = (0..16).map(|n| over_s + 0.5 + f64::from(n) * 0.004);
        let exchange = |sent_s: f64| {
            let loaded = (0.0..over_s).contains(&sent_s);
            let (there_s, back_s) = if loaded { self.waits_s } else { (0.0, 0.0) };
            let received_s = sent_s + self.way_s + there_s;
            let back_s = received_s + self.way_s + back_s;
            Exchange {
                sent_ns: Self::reads(EndName::Near, sent_s),
                received_ns: Self::reads(EndName::Far, received_s),
                answered_ns: Self::reads(EndName::Far, received_s),
                back_ns: Self::reads(EndName::Near, back_s),
            }
        };
        let exchanges: Vec<_> = before.chain(during).chain(after).map(exchange).collect();
        Clocks { relation: crate::clocks::relation(&exchanges, false).into(), exchanges }
    }

    fn sample(&self, end: EndName, number: u64) -> Sample {
        let due = if self.stopped { number / 2 * 2 + 1 } else { number };
        let at_s = due as f64 * PERIOD_S;
        let on_its_way_s = if end == EndName::Far { self.delivered_s } else { 0.0 };
        let since_s = (at_s + self.late_s[end as usize] - on_its_way_s).max(0.0);
        let swing = self.wobble * (TAU * since_s).sin() / TAU;
        let moved_s = self.bursts.map_or(since_s, |uneven| {
            let burst = number / 2;
            (burst as f64 + uneven * ((burst * burst) as f64 * 0.618).fract()) * 2.0 * PERIOD_S
        });
        let bytes = (self.goodput / 8.0 * (moved_s + swing)) as u64;
        let near = end == EndName::Near;
        let flow = if near { self.writing(number, bytes) } else { self.reading(number, bytes) };
        let (sent_bytes, received_bytes) = if near { (bytes, 0) } else { (0, bytes) };
        Sample { at_s, sent_bytes, received_bytes, flows: vec![flow] }
    }

    fn writing(&self, number: u64, bytes: u64) -> FlowSample {
        let sent = self.sent_datagrams.map_or(bytes / 1400, |all| all * number / SAMPLE_COUNT);
        let refused = (sent as f64 * self.refused) as u64;
        let datagrams = DatagramCounts { sent, refused, ..Default::default() };
        FlowSample {
            tcp: self.tcp_info(number, bytes),
            ..self.flow(Role::Sender, number, bytes, datagrams)
        }
    }

    fn reading(&self, number: u64, bytes: u64) -> FlowSample {
        let received = bytes / 1400;
        let lost = (received as f64 * self.lost / (1.0 - self.lost)) as u64;
        let astray = self.astray(number, received + lost);
        let (received, lost) = (received.saturating_sub(astray), lost + astray);
        let joined = received - received / self.joined;
        let datagrams = DatagramCounts { received, lost, joined, ..Default::default() };
        let tcp = match (self.watched, self.arriving.is_empty()) {
            (true, _) => self.tcp_info(number, bytes),
            (_, false) => Known::Value(self.arriving_info(number, bytes)),
            (false, true) => Known::missing("not sampled"),
        };
        FlowSample { tcp, ..self.flow(Role::Receiver, number, bytes, datagrams) }
    }

    /// Datagrams, of `all`, lost by chance beyond their share so far: evenly spread steps of the standard
    /// deviation of a binomial distribution.
    fn astray(&self, number: u64, all: u64) -> u64 {
        let each = all as f64 / number.max(1) as f64;
        let deviation = (each * self.lost * (1.0 - self.lost)).sqrt();
        let step = |n: u64| ((n as f64 * 0.618).fract() - 0.5) * 12f64.sqrt() * deviation;
        let ahead = 9.0 * deviation;
        if self.chance { ((0..number).map(step).sum::<f64>() + ahead).max(0.0) as u64 } else { 0 }
    }

    fn flow(&self, role: Role, number: u64, bytes: u64, datagrams: DatagramCounts) -> FlowSample {
        let thread = if role == Role::Sender { self.writer } else { self.reader };
        let spent = |share: f64| (share * number as f64 * PERIOD_S * 1e6) as u64;
        let stored = |share: Option<f64>| match share {
            Some(share) => Known::Value(spent(share)),
            None => goodput_model::no_storage(),
        };
        let own = |count: u64| match self.watched {
            true => Known::missing("another program's"),
            false => Known::Value(count),
        };
        let sndbuf = self.sndbuf_bytes();
        let udp = self.plan.transport == Transport::Udp;
        let sent = (datagrams.received + datagrams.lost) as f64;
        let dropped = (sent * self.dropped) as u64;
        FlowSample {
            blocked_us: own(spent(thread.blocked)),
            paced_us: own(spent(thread.paced)),
            calls: own(bytes / self.chunk),
            cpu_us: Known::Value(spent(thread.cpu)),
            cpu_wait_us: match thread.waiting {
                Some(share) => Known::Value(spent(share)),
                None => Known::missing("this kernel keeps no schedstat of threads"),
            },
            source_us: stored(self.source.filter(|_| role == Role::Sender)),
            sink_us: stored(self.sink.filter(|_| role == Role::Receiver)),
            memory: Known::Value(SocketMemory {
                rmem_alloc_bytes: self.queued,
                rcvbuf_bytes: 1_000_000,
                wmem_alloc_bytes: 0,
                sndbuf_bytes: sndbuf,
                wmem_queued_bytes: (sndbuf as f64 * self.send_queue) as u64,
                backlog_bytes: 0,
                drops: dropped,
            }),
            queued_bytes: Known::Value(self.queued),
            datagrams: udp.then_some(datagrams),
            ..FlowSample::unreported(0, role, bytes, "not sampled")
        }
    }

    fn sndbuf_bytes(&self) -> u64 {
        self.plan.socket.sndbuf_bytes.map_or(4 << 20, |asked| asked.0 * 2)
    }

    /// What fills the send buffer and is not in flight; a writer that hardly waits leaves nothing there.
    fn unsent_bytes(&self) -> u64 {
        if self.writer.blocked < 0.25 {
            return 0;
        }
        let queued = (self.sndbuf_bytes() as f64 * self.send_queue) as u64;
        queued.saturating_sub(IN_FLIGHT_SEGMENTS * 1448)
    }

    /// What the receiver's kernel knows about an open connection.
    fn arriving_info(&self, number: u64, bytes: u64) -> TcpInfo {
        let mut info = TcpInfo {
            length_bytes: 280,
            options: Some(7),
            pmtu_bytes: Some(1500),
            rcv_mss_bytes: Some(1448),
            rcv_rtt_us: Some(42_500),
            min_rtt_us: Some(42_000),
            rcv_wnd_bytes: Some(32 << 20),
            received_bytes: Some(bytes),
            data_segs_in: Some(bytes / 1448),
            rcv_ooo_segments: Some(0),
            last_data_recv_ms: Some(0),
            ..TcpInfo::default()
        };
        for change in &self.arriving {
            change(&mut info, number);
        }
        info
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
            ca_state: Some(0),
            snd_wscale: Some(10),
            delivery_rate_app_limited: Some(u64::from(marked)),
            data_segs_out: Some((bytes + again).div_ceil(1448)),
            snd_mss_bytes: Some(1448),
            notsent_bytes: Some(if marked { 0 } else { self.unsent_bytes() }),
            pmtu_bytes: Some(1500),
            unacked_segments: Some(IN_FLIGHT_SEGMENTS),
            sacked_segments: Some(0),
            lost_segments: Some(0),
            retrans_out_segments: Some(0),
            snd_cwnd_segments: Some(3000),
            rtt_us: Some(42_500),
            min_rtt_us: Some(42_000),
            delivery_rate_bytes_per_s: Some((self.goodput / 8.0) as u64),
            busy_us: spent(self.busy),
            rwnd_limited_us: spent(self.rwnd),
            sndbuf_limited_us: spent(self.sndbuf),
            acked_bytes: Some(bytes),
            // One acknowledgement of two segments.
            segs_in: Some(bytes / 2896),
            sent_bytes: Some(bytes + again),
            retrans_bytes: Some(again),
            total_retrans_segments: Some(again / 1448),
            delivered_segments: Some(bytes / 1448),
            delivered_ce_segments: Some(0),
            dsack_dups: Some(0),
            reord_seen: Some(0),
            rto_us: Some(240_000),
            total_rto: Some(0),
            total_rto_time_ms: Some(0),
            snd_wnd_bytes: Some(8 << 20),
            ..TcpInfo::default()
        };
        for change in &self.tcp {
            change(&mut info, number);
        }
        Known::Value(info)
    }
}

/// What a healthy host reports about itself.
pub(super) fn healthy_facts() -> Snapshot {
    let mut facts = Snapshot::default();
    facts.put(names::LINK_DEVICE, "eth0");
    facts.put(names::LINK_SPEED, 1_000_000_000u64);
    facts.put(names::LINK_MTU, 1500u64);
    facts.put("bus.kind", "pci");
    facts.put("bus.pcie_gt_per_s", 5.0);
    facts.put("bus.pcie_max_gt_per_s", 5.0);
    facts.put("bus.pcie_lanes", 4u64);
    facts.put("bus.pcie_max_lanes", 4u64);
    facts.put(names::QDISC_KIND, "fq_codel");
    facts.put(names::OFFLOAD_TSO, "on");
    facts.put(names::OFFLOAD_GRO, "on");
    facts.put(names::TCP_RMEM, "4096 131072 33554432");
    facts.put(names::TCP_WMEM, "4096 65536 4194304");
    facts.put(names::TCP_CONGESTION, "bbr");
    facts.put(names::TCP_NOTSENT_LOWAT, "4294967295");
    facts.put(names::TCP_AVAILABLE, "reno bbr cubic");
    for counter in [
        names::LINK_RX_DROPPED,
        names::LINK_RX_MISSED,
        names::SOFTNET_DROPPED,
        names::SOFTNET_SQUEEZED,
        names::SOFTNET_PROCESSED,
        "link.rx_packets",
        "link.rx_crc_errors",
        "link.tx_window_errors",
        "pause.rx_frames",
        names::QDISC_PACKETS,
        names::QDISC_DROPS,
        names::QDISC_OVERLIMITS,
        names::THROTTLED_US,
        names::LINK_CARRIER_CHANGES,
        names::FRAGMENTED,
        names::FRAGMENTS_MADE,
        names::FRAGMENTS_RECEIVED,
        names::RECEIVED_CE,
        names::TCP_MEMORY_PRESSURES,
        names::TCP_RECEIVE_DROP,
    ] {
        facts.put(counter, 0u64);
    }
    facts
}
