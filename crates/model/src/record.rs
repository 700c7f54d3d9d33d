//! The stored and printed result of one command: the contract of `--json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capture::PacketCapture;
use crate::ceiling::CeilingInputs;
use crate::changed_host::ChangedHost;
use crate::clocks::Clocks;
use crate::comparison::Comparison;
use crate::connection::Connection;
use crate::end::End;
use crate::end_name::EndName;
use crate::fetches::Fetches;
use crate::file_parts::FileParts;
use crate::finding::{Finding, Undecided};
use crate::host_limits::HostLimits;
use crate::known::Known;
use crate::latency::Latency;
use crate::mount::MountUse;
use crate::nfs::ReadTable;
use crate::path_steps::Step;
use crate::plan::Plan;
use crate::rate_search::RateSearch;
use crate::shaping::ShapingTest;
use crate::storage::StorageResult;
use crate::thinned::Thinned;
use crate::totals::Totals;
use crate::transfers::Transfers;
use crate::tuning::Tuning;
use crate::units::BitRate;
use crate::verdict::Verdict;

/// Version of the record's format. It increases if a reader of the old format would misread the new one.
pub const FORMAT_VERSION: u32 = 1;

/// The result of one command: what `--json` prints and the history keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Version of this format.
    pub format: u32,
    /// Kind of command that made this record.
    pub kind: Kind,
    /// Start of the command, RFC 3339, UTC.
    pub started: String,
    /// What was measured, as the user typed it.
    pub target: String,
    /// The sites between which it was measured, if a fleet did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites: Option<Sites>,
    /// The plan that both ends agreed on.
    pub plan: Plan,
    /// What each end observed.
    pub ends: Ends,
    /// Addresses of each flow; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// Totals that a far end reported, if it is not goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_totals: Option<Totals>,
    /// The shown intervals, oldest first.
    pub intervals: Vec<Interval>,
    /// Goodput, precision, ceiling, CPU and both directions' counts.
    pub result: Outcome,
    /// Round-trip times before and during the flows, if `--latency` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Times and counts of the fetches or uploads, if the target is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetches: Option<Fetches>,
    /// The mount of the file, if the target is a file on a mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<MountUse>,
    /// How the clocks of both ends relate.
    #[serde(default = "Clocks::not_compared")]
    pub clocks: Clocks,
    /// What limits the main direction: near to far, unless only the other one was measured.
    pub verdict: Verdict,
    /// The verdict of the opposite direction, if both were measured at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_reverse: Option<Verdict>,
    /// Every cause found, the most limiting first.
    pub findings: Vec<Finding>,
    /// Rules that could not decide, and why.
    pub undecided: Vec<Undecided>,
    /// Probes: short runs that each changed one thing, to decide between two causes that look alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeRun>,
    /// The comparison, if the command made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The changes that `goodput tune` tried. `comparison` then compares all kept changes with the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// Cost of each way to send a file, by size and number of clients, if such ways were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfers>,
    /// Sizes and times of each arm's READs, if the arms read from an NFS server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs_reads: Option<ReadTable>,
    /// Rates of the disks and of the network, and which one is slowest (`goodput test files`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_parts: Option<FileParts>,
    /// Results of the search for the highest rate without loss, one per datagram size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_searches: Vec<RateSearch>,
    /// Rate and burst of a shaper on the path, if tested (`goodput shaping`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaping: Option<Box<ShapingTest>>,
    /// What the packet capture shows, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Box<PacketCapture>>,
    /// What a packet capture at the far host shows, if one was asked for; missing if the far host captured nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_capture: Option<Known<Box<PacketCapture>>>,
    /// What copying, page references and empty system calls alone would allow on this host, if `--host-limits` was
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_limits: Option<Box<HostLimits>>,
    /// Hosts without goodput whose settings were changed and put back by SSH.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_hosts: Vec<ChangedHost>,
    /// Why the result is incomplete, if it is: the payload ended early, or the far end's report did not
    /// arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// How many details were left out, if the measurement was too long to keep all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned: Option<Thinned>,
    /// Doubts about the measurement itself, in words.
    pub doubts: Vec<String>,
}

/// A probe that ran, or that could not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRun {
    /// Id of the probe.
    pub probe: String,
    /// What the probe changed, in words.
    pub title: String,
    /// Ids of the two rules that the probe should decide between.
    pub between: Vec<String>,
    /// Goodput before the probe, bits per second.
    pub before_bits_per_s: BitRate,
    /// Goodput of the probe's run, bits per second, or why there was none.
    pub goodput_bits_per_s: Known<BitRate>,
    /// The number that decided: the ratio to the goodput before, or a share.
    pub reading: Known<f64>,
    /// The deciding number in words.
    pub text: String,
    /// Id of the rule that the probe supports, or why it supports neither.
    pub answer: Known<String>,
}

/// What kind of command made a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One measurement.
    Test,
    /// Another program's transfer, watched from this end; `target` is its peer.
    Attach,
    /// A search for the highest rate without loss; `plan`, `ends` and `result` are those of the last
    /// trial, which confirms the rate unless none did.
    FindRate,
    /// A comparison of arms; `plan`, `ends` and `result` are those of the baseline's first run.
    Compare,
    /// A test of a shaper; `plan`, `ends` and `result` are those of its TCP measurement, with classes of that of the class
    /// furthest below its rate.
    Shaping,
    /// A search for changes that help; `plan`, `ends` and `result` are those of the measurement
    /// before the first change.
    Tune,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Test, Self::Attach, Self::FindRate, Self::Compare, Self::Shaping, Self::Tune];

    /// Whether the goodput is that of all the command did, and not of one run of several.
    pub fn is_single_run(self) -> bool {
        matches!(self, Self::Test | Self::Attach)
    }

    /// Its name in JSON, by which people search.
    pub fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Attach => "attach",
            Self::FindRate => "find-rate",
            Self::Compare => "compare",
            Self::Shaping => "shaping",
            Self::Tune => "tune",
        }
    }
}

/// The sites of a fleet that were the ends of a test, as its mesh file names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sites {
    /// The site whose agent measured.
    pub near: String,
    /// The site that it measured with.
    pub far: String,
}

/// What both ends observed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends {
    /// What this host observed.
    pub near: Known<End>,
    /// What the target observed; missing if it does not report.
    pub far: Known<End>,
}

/// One shown interval of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The end that sent in this direction.
    pub sender: EndName,
    /// Start, seconds on the receiver's clock, or on the sender's if the receiver reports nothing.
    pub from_s: f64,
    /// End, seconds on the same clock.
    pub to_s: f64,
    /// Payload bytes that the receiver's application read. If they are not reported, the bytes that the
    /// receiver's TCP acknowledged; missing without TCP.
    pub received_bytes: Known<u64>,
    /// Goodput of this interval, bits per second.
    pub goodput_bits_per_s: Known<BitRate>,
    /// Payload that the sender's application wrote, bits per second, if no end reports how much arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bits_per_s: Option<BitRate>,
}

/// Goodput, precision, ceiling, CPU and both directions' counts of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Payload that the receivers' applications read after slow start, bits per second; the sum of both
    /// directions if both were measured.
    pub goodput_bits_per_s: BitRate,
    /// Length of the window that the goodput is taken from, seconds; of two directions, the longer window. The
    /// whole run, which `received_bytes` and `sent_bytes` count, is longer.
    pub duration_s: f64,
    /// Half-width of the 95 % confidence interval of the mean goodput, percent of the mean.
    pub precision_percent: Known<f64>,
    /// The highest goodput that the path could carry, bits per second.
    pub ceiling_bits_per_s: Known<BitRate>,
    /// Inputs of the ceiling's computation, if the record keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_inputs: Option<CeilingInputs>,
    /// Results of each direction.
    pub directions: Vec<DirectionResult>,
    /// CPU use of this host.
    pub near: EndResult,
    /// CPU use of the target.
    pub far: EndResult,
}

/// Results of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionResult {
    /// The end that sent in this direction.
    pub sender: EndName,
    /// Goodput over the window, bits per second: `window_bytes` in `window_s`.
    pub goodput_bits_per_s: BitRate,
    /// Half-width of the 95 % confidence interval of the mean goodput, percent of the mean. Absent in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_percent: Option<Known<f64>>,
    /// The highest goodput that the path could carry in this direction, bits per second, if both were measured. Absent in
    /// records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_bits_per_s: Option<Known<BitRate>>,
    /// The end that counted the goodput: the receiver, or the sender from its TCP's acknowledgements if the
    /// receiver reports nothing during the run. Absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<EndName>,
    /// Payload bytes counted in the window that the goodput is taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// Length of this window, seconds. Each direction has its own window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// Payload bytes that the receiver's application read over the whole run, slow start included. `window_bytes`,
    /// not this number, gives the goodput.
    pub received_bytes: Known<u64>,
    /// Payload bytes that the sender's application wrote over the whole run.
    pub sent_bytes: Known<u64>,
    /// Bytes retransmitted over the whole run.
    pub retransmitted_bytes: Known<u64>,
    /// Segments retransmitted over the whole run.
    pub retransmits: Known<u64>,
    /// Smoothed round-trip time under load, microseconds, median of the samples.
    pub rtt_us: Known<f64>,
    /// Smallest round-trip time, microseconds.
    pub min_rtt_us: Known<f64>,
    /// Datagrams lost, percent of those sent; only for UDP.
    pub lost_percent: Known<f64>,
    /// Interarrival jitter (RFC 3550), microseconds, of the flow with the most jitter; only for UDP. Gaps
    /// between datagrams that arrived in one packet (`joined_percent`) are unknown and left out.
    pub jitter_us: Known<f64>,
    /// Datagrams that arrived after one with a higher number; only for UDP. They do not count as lost.
    #[serde(default = "unkept_count")]
    pub reordered: Known<u64>,
    /// Datagrams that arrived more than once; only for UDP.
    #[serde(default = "unkept_count")]
    pub duplicated: Known<u64>,
    /// Datagrams that arrived behind another in the same packet, percent of those received; only for
    /// UDP.
    #[serde(default = "unkept_share")]
    pub joined_percent: Known<f64>,
    /// Gaps between datagrams that were within 20 % of the rate's gap, percent; only for paced UDP. Gaps
    /// count if both datagrams have consecutive numbers and came in packets of their own. The receiving
    /// kernel's timestamps give the gaps.
    #[serde(default = "unkept_share")]
    pub even_gaps_percent: Known<f64>,
    /// CPU time that the sender spent in busy-waiting to keep its rate, microseconds, all flows together;
    /// only for paced UDP.
    #[serde(default = "unkept_count")]
    pub spun_us: Known<u64>,
    /// Time in which the sender's threads were held up and for which they did not catch up, microseconds,
    /// all flows together; so less was sent than requested. Only for paced UDP.
    #[serde(default = "unkept_count")]
    pub stalled_us: Known<u64>,
    /// Results of the files at both ends, unless payload is memory at both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageResult>,
    /// Steps of the path in order, with what passed and what was dropped at each.
    #[serde(rename = "way", default, skip_serializing_if = "Vec::is_empty")]
    pub path_steps: Vec<Step>,
}

/// Why an old record lacks a newer field.
const UNKEPT: &str = "an older goodput made this record";

fn unkept_count() -> Known<u64> {
    Known::missing(UNKEPT)
}

fn unkept_share() -> Known<f64> {
    Known::missing(UNKEPT)
}

/// CPU use of one end during the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndResult {
    /// CPU time of goodput's own process, or of the program that moved the payload, percent of one CPU.
    pub cpu_percent: Known<f64>,
    /// CPU time of the whole host that was not idle, percent of all its CPUs.
    pub host_cpu_percent: Known<f64>,
    /// Softirq time, percent of one CPU.
    pub softirq_percent: Known<f64>,
    /// Time that a hypervisor took away (steal), percent of one CPU.
    pub steal_percent: Known<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_searched_by_its_name_in_json() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
