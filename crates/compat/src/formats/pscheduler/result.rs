//! The result of one direction: `RESULT_SCHEMA`.

use goodput_model::{EndName, Record, Verdict};
use serde::Serialize;

use super::data::Data;
use super::intervals::{self, Interval};
use crate::formats::counts::{FlowCounts, directions};
use crate::formats::iperf3::end::{mean, windows};

/// The result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Throughput {
    schema: u8,
    /// Whether the test was complete.
    succeeded: bool,
    /// Why it is only a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// For a person: the verdict and doubts.
    diags: String,
    /// Size of the sender's segments at the end, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    mss: Option<u64>,
    /// MTU of the path at the end, as the sender's kernel knows it, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<u64>,
    /// Size of the buffers that was asked for, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_tcp_window_size: Option<u64>,
    intervals: Vec<Interval>,
    summary: Summary,
}

/// All of the run.
#[derive(Debug, Serialize)]
struct Summary {
    streams: Vec<Data>,
    summary: Data,
}

impl Throughput {
    /// How long payload was counted, seconds.
    pub fn seconds(&self) -> Option<f64> {
        self.summary.summary.end
    }
}

/// The result of what `sender` sent; `flows` are its flows.
pub fn of(record: &Record, sender: EndName, flows: &[FlowCounts]) -> Throughput {
    let kernel = flows.iter().rev().find_map(|flow| windows(record, flow).pop());
    let (mss, mtu) = kernel.map_or((None, None), |tcp| (tcp.snd_mss_bytes, tcp.pmtu_bytes));
    let socket = &record.plan.socket;
    Throughput {
        schema: 1,
        succeeded: record.incomplete.is_none(),
        error: record.incomplete.clone(),
        diags: diagnosis(record, sender),
        mss,
        mtu,
        requested_tcp_window_size: socket.sndbuf_bytes.or(socket.rcvbuf_bytes).map(|size| size.0),
        intervals: intervals::of(record, sender, flows),
        summary: Summary {
            streams: flows.iter().map(|flow| stream(record, flow)).collect(),
            summary: sum(record, sender, flows),
        },
    }
}

fn stream(record: &Record, flow: &FlowCounts) -> Data {
    let round_trips = windows(record, flow).into_iter().filter_map(|tcp| tcp.rtt_us);
    Data {
        stream_id: Some(flow.flow),
        rtt: mean(round_trips).map(|us| us as f64),
        ..Data::of_run(&flow.sent, &flow.received)
    }
}

fn sum(record: &Record, sender: EndName, flows: &[FlowCounts]) -> Data {
    let all = directions(record, flows);
    let own = all.iter().find(|direction| direction.sender == sender);
    let result = record.result.directions.iter().find(|direction| direction.sender == sender);
    Data {
        rtt: result.and_then(|result| result.rtt_us.value().copied()),
        ..own.map(|own| Data::of_run(&own.sent, &own.received)).unwrap_or_default()
    }
}

/// The verdict of this direction, and doubts about the measurement.
fn diagnosis(record: &Record, sender: EndName) -> String {
    let verdicts = [Some(&record.verdict), record.verdict_reverse.as_ref()];
    let own = verdicts.into_iter().flatten().find(|verdict| verdict.sender == sender);
    let limit = own.map(|Verdict { limit, summary, .. }| format!("limit: {limit}\n{summary}"));
    limit.into_iter().chain(record.doubts.iter().cloned()).collect::<Vec<_>>().join("\n")
}
