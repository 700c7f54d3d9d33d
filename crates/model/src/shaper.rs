//! How the sending host's queueing discipline is configured, which bucket would be enough, and what this explains
//! (`goodput shaping`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::CeilingLine;
use crate::end_name::EndName;
use crate::finding::Permanent;
use crate::known::Known;
use crate::units::{BitRate, Bytes};

/// The shaper that the traffic passes at the sending host, or at a router that goodput could ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LocalShaper {
    /// The end that the sending host is.
    pub end: EndName,
    /// The router at which the shaper is, as typed, if it is not at the sending host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<String>,
    /// Name of the network device.
    pub device: String,
    /// The queueing discipline: `tbf`, `htb` or `cake`.
    pub kind: String,
    /// Class of htb that the traffic passed, as tc(8) writes it; absent for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Highest rate that the shaper allows, bits per second, in the bytes that it counts. For a class: the lowest
    /// ceil from the class to the root.
    pub rate_bits_per_s: BitRate,
    /// Size of the bucket at this rate, bytes.
    pub burst_bytes: Known<Bytes>,
    /// Size of the shaper's queue, bytes.
    pub limit_bytes: Known<Bytes>,
    /// Bytes that the shaper counts for one frame of the train.
    pub counted_frame_bytes: Bytes,
}

/// The smallest bucket that is enough for a rate, with its arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnoughBucket {
    /// Bucket that is enough for the rate, bytes.
    pub for_rate_bytes: Bytes,
    /// Bucket that is enough for the rate and for whole super-packets of segmentation offload, bytes.
    pub bytes: Bytes,
    /// The arithmetic, in order.
    pub lines: Vec<CeilingLine>,
    /// Lateness of timers at the shaper's host that ran for the time of one frame at this rate.
    pub timers: Known<TimerLateness>,
    /// Lateness of timers that ran for the time of one super-packet.
    #[serde(default = "not_watched")]
    pub super_packet_timers: Known<TimerLateness>,
}

fn not_watched() -> Known<TimerLateness> {
    Known::missing("an older goodput made this record")
}

/// How late timers were, measured before the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerLateness {
    /// Number of timers.
    pub count: u64,
    /// Time that each timer ran, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_us: Option<f64>,
    /// Median lateness, microseconds.
    pub median_us: f64,
    /// Longest lateness, microseconds.
    pub longest_us: f64,
    /// Time that the bucket has to bridge so that late timers cost at most 1 % of the rate, microseconds.
    pub bridged_us: f64,
    /// Number of timers that were later than on an idle machine, because the machine did something else first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<u64>,
}

/// What explains a rate, a queue or a loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingCause {
    /// Id of the explanation: `late-timers`, `second-shaper` and others.
    pub id: String,
    /// The explanation in words.
    pub text: String,
}

/// What a comparison of the settings in question shows (`goodput shaping --prove`). The record has the comparison
/// itself too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingProof {
    /// Rate of TCP with each arm, in the order of the comparison.
    pub arms: Vec<ArmRate>,
    /// Number of the arm that reaches the configured rate with the fewest changes; 0 is what is set now. Absent if none is
    /// shown to reach it, or if what is set now is not shown to miss it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gives: Option<usize>,
    /// Settings that were not compared, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Commands of other programs that make the changes of this arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// The changes of the queueing discipline as lines of a `.network` file of systemd-networkd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networkd: Vec<String>,
    /// Files to write so that the changes outlive a reboot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permanent: Vec<Permanent>,
}

/// Rate of TCP with one arm, in the bytes that the shaper counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmRate {
    /// Median of the runs, bits per second.
    pub median_bits_per_s: Known<BitRate>,
    /// 95 % confidence interval of the median, bits per second.
    pub interval_bits_per_s: Known<[BitRate; 2]>,
    /// Whether it is the configured rate: the median is within the tolerance, or the whole interval is not. Missing if
    /// the runs don't show it.
    #[serde(default = "not_judged")]
    pub gives: Known<bool>,
}

fn not_judged() -> Known<bool> {
    Known::missing("an older goodput made this record")
}

/// Why goodput did not compare settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotProven {
    /// The reason in words.
    pub why: String,
    /// Whether a privilege was missing.
    pub not_permitted: bool,
    /// Whether no setting was in question. Then nothing failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_in_question: bool,
}

/// What changed since an earlier test of the same shaper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinceLast {
    /// Start of the earlier test, RFC 3339, UTC.
    pub started: String,
    /// The differences, one sentence each; empty if nothing important changed.
    pub changes: Vec<String>,
}
