//! `intervals[]`: what this end counted, for each stream and together.

use goodput_model::{Role, TcpInfo};
use serde::Serialize;

use super::counts::Counts;
use super::socket;
use crate::formats::counts::percent;
use crate::formats::cut::{FlowSpan, Span};

/// One of `intervals[]`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Interval {
    /// Each stream.
    pub streams: Vec<Counts>,
    /// All streams; in a bidirectional test, those that this end sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<Counts>,
    /// The streams that this end receives in a bidirectional test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_bidir_reverse: Option<Counts>,
}

/// One interval of this end.
pub fn interval(span: &Span) -> Interval {
    let streams = span.flows.iter().map(|flow| stream(span, flow)).collect();
    let mut sums = [Role::Sender, Role::Receiver].into_iter().filter_map(|role| sum(span, role));
    Interval { streams, sum: sums.next(), sum_bidir_reverse: sums.next() }
}

fn stream(span: &Span, flow: &FlowSpan) -> Counts {
    let sent = flow.role == Role::Sender;
    let datagrams = flow.datagrams;
    let received = datagrams.filter(|_| !sent);
    let counts = Counts {
        socket: Some(socket(flow.flow)),
        retransmits: flow.retransmits.filter(|_| sent && datagrams.is_none()),
        jitter_ms: received.map(|d| d.jitter_ms),
        lost_packets: received.map(|d| d.lost),
        packets: datagrams.map(|d| d.count),
        // iperf3 prints 0 if nothing came.
        lost_percent: received.map(|d| percent(d.lost, d.count).unwrap_or(0.0)),
        ..moved(span, flow.bytes, sent)
    };
    match &flow.tcp {
        Some(tcp) if sent => with_tcp(counts, tcp),
        _ => counts,
    }
}

fn with_tcp(counts: Counts, tcp: &TcpInfo) -> Counts {
    Counts {
        snd_cwnd: cwnd_bytes(tcp),
        snd_wnd: tcp.snd_wnd_bytes,
        rtt: tcp.rtt_us,
        rttvar: tcp.rttvar_us,
        pmtu: tcp.pmtu_bytes,
        reorder: tcp.reord_seen,
        ..counts
    }
}

/// The congestion window as in iperf3, segments times their size.
pub fn cwnd_bytes(tcp: &TcpInfo) -> Option<u64> {
    tcp.snd_cwnd_segments?.checked_mul(tcp.snd_mss_bytes?)
}

fn sum(span: &Span, role: Role) -> Option<Counts> {
    let flows: Vec<_> = span.flows.iter().filter(|flow| flow.role == role).collect();
    let sent = role == Role::Sender;
    let streams: Vec<_> = flows.iter().map(|flow| stream(span, flow)).collect();
    let add = |read: fn(&Counts) -> Option<u64>| {
        streams.iter().map(read).try_fold(0u64, |sum, one| sum.checked_add(one?))
    };
    let jitters: Option<Vec<f64>> = streams.iter().map(|s| s.jitter_ms).collect();
    let (lost, packets) = (add(|s| s.lost_packets), add(|s| s.packets));
    (!streams.is_empty()).then(|| Counts {
        retransmits: add(|s| s.retransmits),
        jitter_ms: jitters.map(|all| all.iter().sum::<f64>() / all.len() as f64),
        lost_packets: lost,
        packets,
        lost_percent: lost.zip(packets).map(|(lost, all)| percent(lost, all).unwrap_or(0.0)),
        ..moved(span, flows.iter().map(|flow| flow.bytes).sum(), sent)
    })
}

fn moved(span: &Span, bytes: u64, sender: bool) -> Counts {
    let seconds = span.seconds();
    Counts {
        start: Some(span.from_s),
        end: Some(span.to_s),
        seconds: Some(seconds),
        bytes: Some(bytes),
        bits_per_second: Some(if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }),
        omitted: Some(span.omitted),
        sender,
        ..Counts::default()
    }
}
