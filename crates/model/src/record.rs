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
use crate::known::Known;
use crate::latency::Latency;
use crate::mount::MountUse;
use crate::nfs::ReadTable;
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
use crate::way::Step;

/// Version of the record's format. Grows when a reader of the old one would misread the new one.
pub const FORMAT: u32 = 1;

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Version of this format.
    pub format: u32,
    /// What kind of command made it.
    pub kind: Kind,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// What was measured, as the user typed it.
    pub target: String,
    /// What was agreed.
    pub plan: Plan,
    /// What both ends saw.
    pub ends: Ends,
    /// The addresses of each flow, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// What a far end that is not goodput reported of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_totals: Option<Totals>,
    /// The shown intervals, oldest first.
    pub intervals: Vec<Interval>,
    /// The numbers.
    pub result: Outcome,
    /// How long round trips took before and while the flows ran, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// What it was like to ask for the file, if the target is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetches: Option<Fetches>,
    /// The mount of the file, if the target is one on a mount.
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
    /// Rules that could not decide.
    pub undecided: Vec<Undecided>,
    /// Short runs that each changed one thing, to split two causes that look alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeRun>,
    /// The comparison, if the command was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// What was tried to make it better, if the command was to; `comparison` is then of all that was kept
    /// against the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// What each way to send a file cost, by size and number of clients, if files were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfers>,
    /// What the READs of each arm were like, if they read from an NFS server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs_reads: Option<ReadTable>,
    /// Which of disks and network is slowest, if that was asked (`goodput test files`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_parts: Option<FileParts>,
    /// What was found for each size of datagrams, if the highest rate without loss was searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_searches: Vec<RateSearch>,
    /// What a shaper gives, if that was asked (`goodput shaping`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaping: Option<Box<ShapingTest>>,
    /// What a capture of its packets shows, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Box<PacketCapture>>,
    /// Hosts without goodput whose settings were changed, and put back, by SSH.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_hosts: Vec<ChangedHost>,
    /// Why this is only a part of what was asked for, if it is: payload ended before its time, or the far
    /// end's report did not come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// How much of the detail was left out, if the measurement was too long to keep all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned: Option<Thinned>,
    /// Doubts about the measurement itself, for a person.
    pub doubts: Vec<String>,
}

/// A probe that was run, or that could not be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRun {
    /// Id of the probe.
    pub probe: String,
    /// What it changed, for a person.
    pub title: String,
    /// Ids of the two rules that it was to split.
    pub between: Vec<String>,
    /// Goodput before.
    pub before_bits_per_s: BitRate,
    /// Goodput of the probe's run, or why there was none.
    pub goodput_bits_per_s: Known<BitRate>,
    /// The number that decided: a ratio to before, or a share.
    pub reading: Known<f64>,
    /// The same in words.
    pub text: String,
    /// Id of the rule that it speaks for, or why it speaks for neither.
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
    /// trial, which confirmed, if one did.
    FindRate,
    /// A comparison of arms; `plan`, `ends` and `result` are those of the baseline's first run.
    Compare,
    /// A test of a shaper; `plan`, `ends` and `result` are those of its TCP.
    Shaping,
    /// A search for changes that help; `plan`, `ends` and `result` are those of the measurement before any.
    Tune,
}

/// Both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends {
    /// This host.
    pub near: Known<End>,
    /// The target; missing if the peer does not report.
    pub far: Known<End>,
}

/// One shown interval of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The end that sent.
    pub sender: EndName,
    /// Start on the receiver's clock, seconds; on the sender's if the receiver reports nothing.
    pub from_s: f64,
    /// End on the same clock, seconds.
    pub to_s: f64,
    /// Payload bytes the receiver's application read; if it does not report them, those that its TCP
    /// acknowledged, and missing if there is no TCP.
    pub received_bytes: Known<u64>,
    /// The same as a rate.
    pub goodput_bits_per_s: Known<BitRate>,
    /// Payload the sender's application wrote per second, if no end reports what arrived of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bits_per_s: Option<BitRate>,
}

/// The numbers of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Payload the receivers' applications read per second, after slow start; both directions
    /// together if both were measured.
    pub goodput_bits_per_s: BitRate,
    /// Length of the window it was taken from, the longer one of two directions; not that of the whole run, of
    /// which `received_bytes` and `sent_bytes` are.
    pub duration_s: f64,
    /// Half-width of the 95 % interval of the mean, percent of it.
    pub precision_percent: Known<f64>,
    /// What the path could carry at best, and why.
    pub ceiling_bits_per_s: Known<BitRate>,
    /// What the ceiling is computed from, if the record keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_inputs: Option<CeilingInputs>,
    /// Each direction.
    pub directions: Vec<DirectionResult>,
    /// This host.
    pub near: EndResult,
    /// The target.
    pub far: EndResult,
}

/// The numbers of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionResult {
    /// The end that sent.
    pub sender: EndName,
    /// Receiver's count over the window: `window_bytes` in `window_s`.
    pub goodput_bits_per_s: BitRate,
    /// The end whose count the goodput is: the receiver; or the sender, if the receiver reports nothing
    /// meanwhile and the sender's TCP heard what arrived. Absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<EndName>,
    /// Payload bytes of the window that the goodput is taken from, by that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// Length of that window, seconds; each direction has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// Payload bytes the receiver's application read over the whole run, slow start included. Not the bytes of
    /// the window: the goodput is not this divided by its length.
    pub received_bytes: Known<u64>,
    /// Payload bytes the sender's application wrote over the whole run.
    pub sent_bytes: Known<u64>,
    /// Bytes retransmitted over the whole run.
    pub retransmitted_bytes: Known<u64>,
    /// Segments retransmitted over the whole run.
    pub retransmits: Known<u64>,
    /// Smoothed round-trip time under load, median over samples.
    pub rtt_us: Known<f64>,
    /// Smallest round-trip time seen.
    pub min_rtt_us: Known<f64>,
    /// Datagrams lost, percent of those sent; only for UDP.
    pub lost_percent: Known<f64>,
    /// Interarrival jitter (RFC 3550), microseconds, the worst of the flows; only for UDP. Gaps within
    /// a packet of several datagrams (`joined_percent`) are unknown and left out.
    pub jitter_us: Known<f64>,
    /// Datagrams that came after one with a higher number; only for UDP. They are not lost.
    #[serde(default = "unkept_count")]
    pub reordered: Known<u64>,
    /// Datagrams that came more than once; only for UDP.
    #[serde(default = "unkept_count")]
    pub duplicated: Known<u64>,
    /// Datagrams that came joined behind another in one packet, percent of those received; only for
    /// UDP.
    #[serde(default = "unkept_share")]
    pub joined_percent: Known<f64>,
    /// Gaps between datagrams that were within 20 % of what the rate gives, percent of those between
    /// two with consecutive numbers that each came alone, by the receiving kernel's times of arrival;
    /// only for paced UDP.
    #[serde(default = "unkept_share")]
    pub even_gaps_percent: Known<f64>,
    /// CPU time that the sender spun to hold its rate, microseconds, all flows together; only for paced
    /// UDP.
    #[serde(default = "unkept_count")]
    pub spun_us: Known<u64>,
    /// Time that the sender lost because its thread was held up for longer than is made up, microseconds,
    /// all flows together; what the rate gives in it was not sent. Only for paced UDP.
    #[serde(default = "unkept_count")]
    pub stalled_us: Known<u64>,
    /// What its files were found to be, unless payload is memory at both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageResult>,
    /// Where the payload passed and where it was dropped, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub way: Vec<Step>,
}

/// Why a record lacks what is kept by now.
const UNKEPT: &str = "an older goodput made this record";

fn unkept_count() -> Known<u64> {
    Known::missing(UNKEPT)
}

fn unkept_share() -> Known<f64> {
    Known::missing(UNKEPT)
}

/// What the measurement cost one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndResult {
    /// CPU of goodput's own process, or of the program that it measured with, percent of one CPU.
    pub cpu_percent: Known<f64>,
    /// CPU of the whole host, percent of all its CPUs, everything but idle.
    pub host_cpu_percent: Known<f64>,
    /// Softirq time, percent of one CPU.
    pub softirq_percent: Known<f64>,
    /// Time a hypervisor took away, percent of one CPU.
    pub steal_percent: Known<f64>,
}
