//! What pScheduler, the scheduler of perfSONAR, hands to an archiver about a throughput test: one JSON object in a line
//! for each direction, since a test of pScheduler has one.
//!
//! The keys beside the result are those of `result` in pscheduler-server/daemons/archiver.raw. The specification and the
//! result are those of `SPEC_SCHEMA` and `RESULT_SCHEMA` in pscheduler-test-throughput/throughput/validate.py. Units that
//! the schema leaves open are those of pScheduler's own tool for iperf3
//! (pscheduler-tool-iperf3/iperf3/iperf3_parser.py). All are of pScheduler 5.2.5 (github.com/perfsonar/pscheduler).
//!
//! pScheduler gives tasks and runs an id and an address. A record has neither, so they are left out.

mod data;
mod intervals;
mod result;
mod spec;

use goodput_model::{EndName, Kind, Record};
use serde::Serialize;

use self::spec::{Host, Test, duration, host};
use super::counts::flows;
use super::{Format, Writer};

/// The format.
pub const FORMAT: Format = Format {
    id: "pscheduler",
    summary: "JSON for perfSONAR's archive, as pScheduler's archivers get it",
    refuses: |record| {
        let why = unfit(record)?;
        Some(format!("this result is no throughput test of pScheduler: {why}"))
    },
    writer: |_| Box::new(Archived),
};

/// Why pScheduler's throughput test can't say what is in this record; none if it can.
pub fn unfit(record: &Record) -> Option<&'static str> {
    let file = !record.plan.storage.is_memory() || record.fetches.is_some();
    if !record.kind.is_single_run() {
        Some("several runs")
    } else if record.kind == Kind::Attach {
        Some("a connection of another program")
    } else if file || record.mount.is_some() || record.file_parts.is_some() {
        Some("payload from or to a file")
    } else if record.result.directions.is_empty() {
        Some("no payload was counted")
    } else if [EndName::Near, EndName::Far].into_iter().any(|end| host(record, end).is_none()) {
        Some("a host without a name or address")
    } else {
        None
    }
}

struct Archived;

impl Writer for Archived {
    fn finish(&mut self, record: &Record) -> String {
        if unfit(record).is_some() {
            return String::new();
        }
        let mut senders: Vec<_> = record.plan.flow_plans().iter().map(|f| f.sender).collect();
        senders.dedup();
        let mut text = String::new();
        for sender in senders {
            // No key of these objects can fail to be written.
            text += &serde_json::to_string(&Run::of(record, sender)).unwrap_or_default();
            text.push('\n');
        }
        text
    }
}

/// A run of a test.
#[derive(Debug, Serialize)]
struct Run {
    schedule: Schedule,
    run: Times,
    test: Test,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Tool>,
    /// Sender and receiver.
    participants: Vec<Host>,
    result: result::Throughput,
}

/// When.
#[derive(Debug, Serialize)]
struct Schedule {
    /// When the command began.
    start: String,
    /// How long payload moved, as the sender or else the receiver counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<String>,
}

/// What perfSONAR's archive takes the time from (02-pscheduler_common.conf of github.com/perfsonar/logstash).
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Times {
    start_time: String,
}

/// What measured.
#[derive(Debug, Serialize)]
struct Tool {
    name: &'static str,
    version: String,
}

impl Run {
    fn of(record: &Record, sender: EndName) -> Self {
        let flows: Vec<_> = flows(record).into_iter().filter(|f| f.sender == sender).collect();
        let result = result::of(record, sender, &flows);
        let near = record.ends.near.value().map(|end| end.host.goodput.clone());
        Self {
            schedule: Schedule {
                start: record.started.clone(),
                duration: result.seconds().map(duration),
            },
            run: Times { start_time: record.started.clone() },
            test: spec::of(record, sender),
            tool: near
                .filter(|version| !version.is_empty())
                .map(|version| Tool { name: "goodput", version }),
            participants: [sender, sender.other()]
                .into_iter()
                .filter_map(|end| host(record, end))
                .collect(),
            result,
        }
    }
}
