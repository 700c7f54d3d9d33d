//! `intervals`: the receiver's counts, and the sender's if the receiver's are unknown. Round trips, windows and what was
//! sent again are the sender's, of its own interval with the same number.

use goodput_model::{EndName, Interval as Shown, Record, Role};
use serde::Serialize;

use super::data::Data;
use crate::formats::counts::FlowCounts;
use crate::formats::cut::{FlowSpan, IntervalCutter, Span};
use crate::formats::iperf3::spans::cwnd_bytes;

/// Most that both ends' intervals may lie apart to be the same, as a share of their length.
const APART_SHARE: f64 = 0.1;

/// One of `intervals`.
#[derive(Debug, Serialize)]
pub struct Interval {
    streams: Vec<Data>,
    summary: Data,
}

/// The intervals of what `sender` sent; `flows` are its flows.
pub fn of(record: &Record, sender: EndName, flows: &[FlowCounts]) -> Vec<Interval> {
    let sent = spans(record, sender, Role::Sender);
    let received = spans(record, sender.other(), Role::Receiver);
    let base = if received.is_empty() { &sent } else { &received };
    if base.is_empty() {
        let own = record.intervals.iter().filter(|shown| shown.sender == sender);
        return own.map(without_streams).collect();
    }
    let cut = base.iter().enumerate().filter_map(|(number, span)| {
        let other = sent.get(number).filter(|other| is_same(span, other));
        let data = |flow| stream(span, flow, other, flows);
        let streams: Vec<_> = span.flows.iter().map(data).collect();
        let summary = Data::together(&streams)?;
        Some(Interval { streams, summary })
    });
    cut.collect()
}

/// What one end's samples show of the flows on which it has this role.
fn spans(record: &Record, end: EndName, role: Role) -> Vec<Span> {
    let seen = match end {
        EndName::Near => record.ends.near.value(),
        EndName::Far => record.ends.far.value(),
    };
    let mut cutter = IntervalCutter::new(&record.plan);
    let samples = seen.into_iter().flat_map(|end| &end.samples);
    let mut spans: Vec<_> = samples.filter_map(|sample| cutter.push(sample)).collect();
    spans.extend(cutter.close());
    spans.iter_mut().for_each(|span| span.flows.retain(|flow| flow.role == role));
    spans.retain(|span| !span.flows.is_empty());
    spans
}

fn is_same(one: &Span, other: &Span) -> bool {
    let most = one.seconds() * APART_SHARE;
    (one.from_s - other.from_s).abs() <= most && (one.to_s - other.to_s).abs() <= most
}

fn stream(span: &Span, flow: &FlowSpan, other: Option<&Span>, flows: &[FlowCounts]) -> Data {
    let received = flow.role == Role::Receiver;
    let bits = (span.seconds() > 0.0).then(|| flow.bytes as f64 * 8.0 / span.seconds());
    let sender = other.and_then(|span| span.flows.iter().find(|own| own.flow == flow.flow));
    let tcp = sender.and_then(|own| own.tcp.as_ref()).filter(|_| flow.datagrams.is_none());
    // Datagrams without a number or time show nothing about loss and jitter, in no interval either.
    let whole = flows.iter().find(|known| known.flow == flow.flow).map(|known| &known.received);
    let arrived = flow.datagrams.filter(|_| received);
    let datagrams = sender.and_then(|own| own.datagrams).or(flow.datagrams);
    Data {
        stream_id: Some(flow.flow),
        start: Some(span.from_s),
        end: Some(span.to_s),
        throughput_bits: bits,
        throughput_bytes: Some(flow.bytes),
        receiver_throughput_bits: bits.filter(|_| received),
        sent: datagrams.map(|datagrams| datagrams.count),
        lost: whole.and_then(|whole| whole.lost).and(arrived).map(|arrived| arrived.lost),
        jitter: whole.and_then(|whole| whole.jitter_ms).and(arrived).map(|a| a.jitter_ms),
        rtt: tcp.and_then(|tcp| tcp.rtt_us).map(|us| us as f64),
        tcp_window_size: tcp.and_then(cwnd_bytes),
        retransmits: tcp.and(sender).and_then(|own| own.retransmits),
        omitted: Some(span.omitted),
    }
}

/// An interval of a record without samples of its flows.
fn without_streams(shown: &Shown) -> Interval {
    let received = shown.goodput_bits_per_s.value().map(|rate| rate.0);
    let summary = Data {
        start: Some(shown.from_s),
        end: Some(shown.to_s),
        throughput_bits: received.or(shown.sent_bits_per_s.map(|rate| rate.0)),
        throughput_bytes: shown.received_bytes.value().copied(),
        receiver_throughput_bits: received,
        ..Data::default()
    };
    Interval { streams: Vec::new(), summary }
}
