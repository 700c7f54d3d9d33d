//! `end`: what both ends counted over the whole run.

use goodput_model::{EndName, EndResult, Known, Record, Role, TcpInfo, Totals, Transport};
use serde::Serialize;

use super::counts::Counts;
use super::socket;
use super::spans::cwnd_bytes;
use crate::formats::counts::{self, DirectionCounts, FlowCounts, Side};

/// `end`.
#[derive(Debug, Default, Serialize)]
pub struct End {
    /// Each stream; absent if there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<Vec<Stream>>,
    /// All streams together; only for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<Counts>,
    /// The senders' counts; in a bidirectional test, those of this end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent: Option<Counts>,
    /// The receivers' counts of the same streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received: Option<Counts>,
    /// The other direction of a bidirectional test; only for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_bidir_reverse: Option<Counts>,
    /// The other direction of a bidirectional test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent_bidir_reverse: Option<Counts>,
    /// The other direction of a bidirectional test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received_bidir_reverse: Option<Counts>,
    /// CPU usage of both ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_utilization_percent: Option<Cpu>,
    /// Congestion control of the sender; only for TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_tcp_congestion: Option<String>,
    /// Congestion control of the receiver; only for TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_tcp_congestion: Option<String>,
}

/// One of `end.streams[]`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// A datagram flow: the receiver's losses with the sender's payload.
    Udp(Box<Counts>),
    /// A byte stream.
    #[serde(untagged)]
    Tcp {
        /// The sender's counts.
        sender: Box<Counts>,
        /// The receiver's counts.
        receiver: Box<Counts>,
    },
}

/// CPU of both programs, percent of one CPU.
#[derive(Debug, Serialize)]
pub struct Cpu {
    #[serde(skip_serializing_if = "Option::is_none")]
    host_total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_user: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_system: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_user: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_system: Option<f64>,
}

/// The end of a record.
pub fn end(record: &Record) -> End {
    let flows = counts::flows(record);
    let directions = counts::directions(record, &flows);
    let main = directions.first();
    let reverse = directions.get(1);
    let udp = record.plan.transport == Transport::Udp;
    let datagrams = |d: Option<&DirectionCounts>| d.filter(|_| udp).map(datagram_sum);
    End {
        streams: Some(flows.iter().map(|flow| stream(record, flow)).collect()),
        sum: datagrams(main),
        sum_sent: main.map(|d| sent(d, udp)),
        sum_received: main.map(received),
        sum_bidir_reverse: datagrams(reverse),
        sum_sent_bidir_reverse: reverse.map(|d| sent(d, udp)),
        sum_received_bidir_reverse: reverse.map(received),
        cpu_utilization_percent: Some(cpu(record)),
        sender_tcp_congestion: congestion(record, main, |s| s).filter(|_| !udp),
        receiver_tcp_congestion: congestion(record, main, EndName::other).filter(|_| !udp),
    }
}

fn counts(side: &Side, sender: bool) -> Counts {
    Counts {
        start: Some(0.0),
        end: side.seconds,
        seconds: side.seconds,
        bytes: side.bytes,
        bits_per_second: side.bits_per_s(),
        sender,
        ..Counts::default()
    }
}

fn stream(record: &Record, flow: &FlowCounts) -> Stream {
    let socket = Some(socket(flow.flow));
    // iperf3 reports in both objects whether this host sent.
    let near = flow.sender == EndName::Near;
    if record.plan.transport == Transport::Udp {
        let one = DirectionCounts {
            sender: flow.sender,
            sent: flow.sent.clone(),
            received: flow.received.clone(),
        };
        // iperf3's receivers do not report it; its sender then prints 0.
        let out_of_order = flow.received.reordered.or(near.then_some(0));
        return Stream::Udp(Box::new(Counts { socket, out_of_order, ..datagram_sum(&one) }));
    }
    let tcp = windows(record, flow);
    let sender = Counts { socket, retransmits: flow.sent.retransmits, ..counts(&flow.sent, near) };
    // A receiver that does not learn what the sender's kernel saw prints 0, as in iperf3.
    let unseen = (!near && tcp.is_empty()).then_some(0);
    let sender = Counts {
        reorder: tcp.last().and_then(|t| t.reord_seen).or(unseen),
        max_snd_cwnd: tcp.iter().filter_map(|t| cwnd_bytes(t)).max().or(unseen),
        max_snd_wnd: tcp.iter().filter_map(|t| t.snd_wnd_bytes).max().or(unseen),
        max_rtt: tcp.iter().filter_map(|t| t.rtt_us).max().or(unseen),
        min_rtt: tcp.iter().filter_map(|t| t.rtt_us).min().or(unseen),
        mean_rtt: mean(tcp.iter().filter_map(|t| t.rtt_us)).or(unseen),
        ..sender
    };
    let receiver = Counts { socket, ..counts(&flow.received, near) };
    Stream::Tcp { sender: Box::new(sender), receiver: Box::new(receiver) }
}

/// The sender's kernel statistics of a flow while it ran.
pub fn windows<'a>(record: &'a Record, flow: &FlowCounts) -> Vec<&'a TcpInfo> {
    let sending = match flow.sender {
        EndName::Near => record.ends.near.value(),
        EndName::Far => record.ends.far.value(),
    };
    let samples = sending.into_iter().flat_map(|end| &end.samples).flat_map(|s| &s.flows);
    samples
        .filter(|f| f.flow == flow.flow && f.role == Role::Sender)
        .filter_map(|f| f.tcp.value())
        .collect()
}

/// The mean, rounded down; unknown if there are no values.
pub fn mean(values: impl Iterator<Item = u64>) -> Option<u64> {
    let (sum, count) = values.fold((0u128, 0u128), |(s, n), v| (s + u128::from(v), n + 1));
    (count > 0).then(|| (sum / count) as u64)
}

/// UDP's single object: the sender's payload and the receiver's losses.
fn datagram_sum(direction: &DirectionCounts) -> Counts {
    let DirectionCounts { sender, sent, received } = direction;
    let side = if sent.bytes.is_some() { sent } else { received };
    Counts {
        jitter_ms: received.jitter_ms,
        lost_packets: received.lost,
        packets: sent.packets.or(received.packets),
        lost_percent: received.lost_percent(),
        ..counts(side, *sender == EndName::Near)
    }
}

fn sent(direction: &DirectionCounts, udp: bool) -> Counts {
    let sums = counts(&direction.sent, direction.sender == EndName::Near);
    if !udp {
        return Counts { retransmits: direction.sent.retransmits, ..sums };
    }
    // A sender sees neither jitter nor loss; iperf3 prints zeros here.
    Counts {
        jitter_ms: Some(0.0),
        lost_packets: Some(0),
        packets: direction.sent.packets,
        lost_percent: Some(0.0),
        sender: true,
        ..sums
    }
}

fn received(direction: &DirectionCounts) -> Counts {
    let side = &direction.received;
    let udp = side.packets.is_some();
    Counts {
        jitter_ms: side.jitter_ms,
        lost_packets: side.lost,
        packets: side.packets,
        lost_percent: side.lost_percent(),
        // As in iperf3: for TCP whether this host sent, for UDP whether these are senders' counts.
        ..counts(side, direction.sender == EndName::Near && !udp)
    }
}

fn cpu(record: &Record) -> Cpu {
    let total = |end: &EndResult| end.cpu_percent.value().copied();
    let host_total = total(&record.result.near);
    let share = |part: &str| Some(host_total? * process_share(record, part)?);
    let reported = record.far_totals.as_ref().and_then(|t| t.cpu_percent.value().copied());
    let reported_part =
        |read: fn(&Totals) -> Option<f64>| record.far_totals.as_ref().and_then(read);
    let far = |part: &str| {
        let far = record.ends.far.value()?;
        Some(total(&record.result.far)? * share_of(&far.before, &far.after, part)?)
    };
    Cpu {
        host_total,
        host_user: share("process.user_us"),
        host_system: share("process.system_us"),
        remote_total: total(&record.result.far).or(reported),
        remote_user: far("process.user_us").or(reported_part(|totals| totals.cpu_user_percent)),
        remote_system: far("process.system_us")
            .or(reported_part(|totals| totals.cpu_system_percent)),
    }
}

fn process_share(record: &Record, part: &str) -> Option<f64> {
    let near = record.ends.near.value()?;
    share_of(&near.before, &near.after, part)
}

/// The share of `part` in the process's CPU time.
fn share_of(
    before: &goodput_model::Snapshot,
    after: &goodput_model::Snapshot,
    part: &str,
) -> Option<f64> {
    let grown = |name: &str| before.grown(after, name).ok().map(|us| us as f64);
    let all = grown("process.user_us")? + grown("process.system_us")?;
    (all > 0.0).then_some(grown(part)? / all)
}

/// The congestion control of the end that `of` derives from the sender: as requested, else the host's
/// default.
fn congestion(
    record: &Record,
    direction: Option<&DirectionCounts>,
    of: fn(EndName) -> EndName,
) -> Option<String> {
    let at = of(direction?.sender);
    let reported = record.far_totals.as_ref().filter(|_| at == EndName::Far);
    if let Some(reported) = reported.and_then(|totals| totals.congestion.clone()) {
        return Some(reported);
    }
    let end = match at {
        EndName::Near => &record.ends.near,
        EndName::Far => &record.ends.far,
    };
    let default = || match end {
        Known::Value(end) => {
            end.after.text("sysctl.net.ipv4.tcp_congestion_control").ok().map(String::from)
        }
        Known::Missing(_) => None,
    };
    record.plan.socket.congestion.clone().or_else(default)
}
