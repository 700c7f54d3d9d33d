//! What the sending host's queueing discipline is set to, which bucket would be enough for it, and what that explains of
//! what was measured (`goodput shaping`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::CeilingLine;
use crate::end_name::EndName;
use crate::finding::Permanent;
use crate::known::Known;
use crate::units::{BitRate, Bytes};

/// The token bucket that the traffic passes at the sending host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LocalShaper {
    /// The host.
    pub end: EndName,
    /// The device.
    pub device: String,
    /// The queueing discipline: `tbf` or `htb`.
    pub kind: String,
    /// The class of htb that the traffic went through, as tc(8) writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The rate that it may reach, in what it counts: of a class, the lowest ceil from there to the root.
    pub rate_bits_per_s: BitRate,
    /// What the bucket holds at that rate.
    pub burst_bytes: Known<Bytes>,
    /// What its queue holds.
    pub limit_bytes: Known<Bytes>,
    /// What it counts for a frame of the train, bytes.
    pub counted_frame_bytes: Bytes,
}

/// A bucket that is enough for a rate, with its arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnoughBucket {
    /// What is enough for the rate.
    pub for_rate_bytes: Bytes,
    /// What is enough for the rate and leaves super-packets of segmentation offload whole.
    pub bytes: Bytes,
    /// The arithmetic.
    pub lines: Vec<CeilingLine>,
    /// How late timers of the shaper's host are that run as long as a frame takes at the rate.
    pub timers: Known<TimerLateness>,
    /// The same of timers that run as long as a super-packet takes.
    #[serde(default = "not_watched")]
    pub super_packet_timers: Known<TimerLateness>,
}

fn not_watched() -> Known<TimerLateness> {
    Known::missing("an older goodput made this record")
}

/// How late timers were, before the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerLateness {
    /// How many timers were watched.
    pub count: u64,
    /// How long each ran, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_us: Option<f64>,
    /// The lateness that half of them exceed, microseconds.
    pub median_us: f64,
    /// The longest, microseconds.
    pub longest_us: f64,
    /// What a bucket has to bridge, so that late timers cost at most 1 % of the rate, microseconds.
    pub bridged_us: f64,
    /// How many were later than timers of an idle machine are: it did something else first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<u64>,
}

/// What explains a rate, a queue or a loss, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingCause {
    /// Which: `late-timers`, `second-shaper` and others.
    pub id: String,
    /// In words.
    pub text: String,
}

/// What a comparison of the settings in question shows (`goodput shaping --prove`). The comparison itself is in the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingProof {
    /// The rate that TCP gets with each arm of the comparison, in their order.
    pub arms: Vec<ArmRate>,
    /// The number of the arm that gives the configured rate with the fewest changes, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gives: Option<usize>,
    /// What was not compared, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The commands of other programs that make the changes of that arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Files that keep them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permanent: Vec<Permanent>,
}

/// The rate that TCP gets with one arm, in what the shaper counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmRate {
    /// The median of the runs, bits per second.
    pub median_bits_per_s: Known<BitRate>,
    /// The interval in which the median lies with 95 % confidence.
    pub interval_bits_per_s: Known<[BitRate; 2]>,
}

/// Why nothing was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotProven {
    /// In words.
    pub why: String,
    /// Whether a privilege was missing.
    pub not_permitted: bool,
    /// Whether no setting was in question, so that nothing failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_in_question: bool,
}

/// What changed since an earlier test of the same shaper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinceLast {
    /// When that test began, RFC 3339, UTC.
    pub started: String,
    /// What differs, a sentence each; empty if nothing that counts does.
    pub changes: Vec<String>,
}
