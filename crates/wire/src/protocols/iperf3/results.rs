//! Results: JSON that each side sends to the other after the payload (3.21, `send_results` and `get_results` in
//! `iperf_api.c`).

use goodput_model::{EndName, FlowPlan, FlowTotals, Known, Plan, Role, Totals, Transport};
use serde::Serialize;
use serde_json::Value;

use super::number::{counted, finite};
use crate::plain;

/// Longest server output that is kept, lines and characters of each.
const MAX_OUTPUT_LINES: usize = 4000;
const MAX_LINE_CHARS: usize = 240;

/// Longest name of a congestion control (`TCP_CA_NAME_MAX`, include/net/tcp.h), its NUL not counted.
const MAX_NAME_CHARS: usize = 15;

/// iperf3's value for a count that was not made.
pub const NOT_COUNTED: i64 = -1;

/// What this end reports to the peer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Results {
    /// CPU time as a share of the duration, percent of one CPU.
    pub cpu_util_total: f64,
    /// User and system time separately: readers require the keys. goodput's flows count both together, so these stay
    /// 0.
    pub cpu_util_user: f64,
    pub cpu_util_system: f64,
    /// Whether a sender counts retransmits; -1 for a receiver.
    pub sender_has_retransmits: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_used: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_output_text: Option<String>,
    pub streams: Vec<StreamResult>,
}

/// The results of one stream. Readers require all but the last four.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamResult {
    pub id: u16,
    /// Without the warm-up.
    pub bytes: u64,
    pub retransmits: i64,
    /// Seconds.
    pub jitter: f64,
    /// Datagrams lost, including the warm-up.
    pub errors: u64,
    /// Datagrams sent, or the highest number received, including the warm-up.
    pub packets: u64,
    /// The warm-up's part of both (since 3.14).
    pub omitted_errors: u64,
    pub omitted_packets: u64,
    pub start_time: f64,
    pub end_time: f64,
}

/// Number of a stream on the wire: 1, 3, 4, 5, … (`iperf_add_stream` counts from 1 and leaves 2 out).
pub fn stream_id(flow: u16) -> u16 {
    if flow == 0 { 1 } else { flow + 2 }
}

/// A peer's report about itself. `program` names the peer.
pub fn read(json: &Value, plan: &Plan, peer: EndName, program: &str) -> Result<Totals, String> {
    let streams = json.get("streams").and_then(Value::as_array).ok_or("there are no streams")?;
    let flows = plan.flow_plans();
    if streams.len() > flows.len() {
        return Err(format!("{} streams reported, {} expected", streams.len(), flows.len()));
    }
    let totals = streams.iter().map(|stream| {
        let id = stream.get("id").and_then(counted).ok_or("a stream without a number")?;
        let known = |flow: &&FlowPlan| u64::from(stream_id(flow.id)) == id;
        let flow = flows.iter().find(known).ok_or_else(|| format!("there is no stream {id}"))?;
        Ok(of_stream(stream, *flow, plan.transport, peer))
    });
    let cpu = json.get("cpu_util_total").and_then(finite);
    let congestion = json.get("congestion_used").and_then(Value::as_str);
    // A program that counts both together has zeros here, as goodput does.
    let of = |key: &str| json.get(key).and_then(finite);
    let apart = of("cpu_util_user") > Some(0.0) || of("cpu_util_system") > Some(0.0);
    let part = |key: &str| of(key).filter(|_| apart);
    let text = ["server_output_text", "server_output_json"].into_iter().find_map(|k| json.get(k));
    Ok(Totals {
        program: program.into(),
        cpu_percent: cpu.map_or_else(|| Known::missing("it did not report it"), Known::Value),
        cpu_user_percent: part("cpu_util_user"),
        cpu_system_percent: part("cpu_util_system"),
        congestion: congestion.map(|name| plain::short(name, MAX_NAME_CHARS)),
        cookie: None,
        flows: totals.collect::<Result<_, String>>()?,
        // A server of 3.12 also sends its output to clients that come after one that asked for it.
        text: text.filter(|_| plan.peer_output).map(printed),
    })
}

fn of_stream(json: &Value, flow: FlowPlan, transport: Transport, peer: EndName) -> FlowTotals {
    let role = if flow.sender == peer { Role::Sender } else { Role::Receiver };
    let count = |key: &str| {
        let reported = json.get(key).and_then(counted);
        reported.map_or_else(|| Known::missing("it did not report it"), Known::Value)
    };
    // Both include the warm-up, which is also reported separately.
    let without_omitted = |key: &str, omitted: &str| {
        let omitted = json.get(omitted).and_then(counted).unwrap_or(0);
        count(key).map(|count| count.saturating_sub(omitted))
    };
    let second = |key: &str| json.get(key).and_then(finite);
    let duration = second("end_time").and_then(|end| Some(end - second("start_time")?));
    let unreported = FlowTotals::unreported(flow.id, role, "iperf3 does not report it");
    let base = FlowTotals {
        bytes: count("bytes"),
        duration_s: duration
            .filter(|seconds| *seconds >= 0.0)
            .map_or_else(|| Known::missing("it did not report its start and end"), Known::Value),
        ..unreported
    };
    match (transport, role) {
        (Transport::Tcp, Role::Sender) => FlowTotals { retransmits: count("retransmits"), ..base },
        (Transport::Tcp, Role::Receiver) => base,
        (Transport::Udp, Role::Sender) => {
            FlowTotals { datagrams: without_omitted("packets", "omitted_packets"), ..base }
        }
        (Transport::Udp, Role::Receiver) => FlowTotals {
            datagrams: without_omitted("packets", "omitted_packets"),
            lost: without_omitted("errors", "omitted_errors"),
            jitter_us: second("jitter").filter(|jitter| *jitter >= 0.0).map_or_else(
                || Known::missing("it did not report it"),
                |jitter| Known::Value(jitter * 1e6),
            ),
            ..base
        },
    }
}

/// A server's output, made safe for a terminal.
fn printed(output: &Value) -> String {
    let text = match output.as_str() {
        Some(text) => text.to_owned(),
        // A server that runs with -J sends its own JSON.
        None => serde_json::to_string_pretty(output).unwrap_or_default(),
    };
    let lines = text.lines().take(MAX_OUTPUT_LINES).map(|line| plain::short(line, MAX_LINE_CHARS));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Direction;

    fn totals_of(json: &str, plan: &Plan) -> Result<Totals, String> {
        read(&serde_json::from_str(json).unwrap(), plan, EndName::Far, "iperf3")
    }

    #[test]
    fn the_report_of_a_3_12_server_is_read() {
        let json = r#"{"cpu_util_total":12.5,"cpu_util_user":1,"cpu_util_system":11.5,
            "sender_has_retransmits":18446744073709551615,"congestion_used":"bbr","streams":[{"id":1,
            "bytes":2048,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,
            "start_time":0,"end_time":8.2e-05}]}"#;
        let totals = totals_of(json, &Plan::standard()).unwrap();
        assert_eq!(totals.cpu_percent, Known::Value(12.5));
        assert_eq!((totals.cpu_user_percent, totals.cpu_system_percent), (Some(1.0), Some(11.5)));
        assert_eq!(totals.congestion.as_deref(), Some("bbr"));
        let flow = &totals.flows[0];
        assert_eq!((flow.flow, flow.role), (0, Role::Receiver));
        assert_eq!(flow.bytes, Known::Value(2048));
        assert_eq!(flow.duration_s, Known::Value(8.2e-5));
        assert!(matches!(flow.retransmits, Known::Missing(_)));
        assert!(matches!(flow.datagrams, Known::Missing(_)));
    }

    #[test]
    fn a_udp_receiver_of_3_14_leaves_the_warm_up_out() {
        let plan = Plan { transport: Transport::Udp, ..Plan::standard() };
        let json = r#"{"streams":[{"id":1,"bytes":1e3,"retransmits":-1,"jitter":0.0005,"errors":7,
            "omitted_errors":2,"packets":100,"omitted_packets":10}]}"#;
        let totals = totals_of(json, &plan).unwrap();
        let flow = &totals.flows[0];
        assert_eq!((&flow.datagrams, &flow.lost), (&Known::Value(90), &Known::Value(5)));
        assert_eq!((&flow.bytes, &flow.jitter_us), (&Known::Value(1000), &Known::Value(500.0)));
        assert!(matches!(totals.cpu_percent, Known::Missing(_)));
    }

    #[test]
    fn both_directions_are_distinguished_by_their_numbers() {
        let plan = Plan { direction: Direction::Both, flows: 2, ..Plan::standard() };
        let stream = |id: u16| format!(r#"{{"id":{id},"bytes":{id},"retransmits":3}}"#);
        let streams = [1, 3, 4, 5].map(stream).join(",");
        let totals = totals_of(&format!(r#"{{"streams":[{streams}]}}"#), &plan).unwrap();
        let flows: Vec<_> =
            totals.flows.iter().map(|f| (f.flow, f.role, f.retransmits.value())).collect();
        use Role::{Receiver, Sender};
        let wanted = [
            (0, Receiver, None),
            (1, Receiver, None),
            (2, Sender, Some(&3)),
            (3, Sender, Some(&3)),
        ];
        assert_eq!(flows, wanted);
    }

    #[test]
    fn streams_that_were_not_there_are_an_error() {
        let plan = Plan::standard();
        for odd in [
            "{}",
            r#"{"streams":7}"#,
            r#"{"streams":[{"id":2}]}"#,
            r#"{"streams":[{}]}"#,
            r#"{"streams":[{"id":1},{"id":1}]}"#,
        ] {
            assert!(totals_of(odd, &plan).is_err(), "{odd}");
        }
    }

    #[test]
    fn what_a_server_printed_is_plain_text() {
        let json = "{\"streams\":[],\"server_output_text\":\"a\\u001b[2J\\n[  5] b\\n\"}";
        let plan = Plan { peer_output: true, ..Plan::standard() };
        let totals = totals_of(json, &plan).unwrap();
        assert_eq!(totals.text.as_deref(), Some("a\u{fffd}[2J\n[  5] b"));
        assert_eq!(totals_of(json, &Plan::standard()).unwrap().text, None);
    }
}
