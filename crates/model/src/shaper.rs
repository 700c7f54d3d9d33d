//! What the sending host's queueing discipline is set to, which bucket would be enough for it, and what that explains of
//! what was measured (`goodput shaping`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::CeilingLine;
use crate::end_name::EndName;
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
    /// What its bucket holds at that rate.
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
    /// How late the timers of the shaper's host are.
    pub timers: Known<TimerLateness>,
}

/// How late timers were, before the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerLateness {
    /// How many timers were watched.
    pub count: u64,
    /// The lateness that half of them exceed, microseconds.
    pub median_us: f64,
    /// The longest, microseconds.
    pub longest_us: f64,
    /// What a bucket has to bridge, so that late timers cost at most 1 % of the rate, microseconds.
    pub bridged_us: f64,
}

/// What explains a rate, a queue or a loss, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingCause {
    /// Which: `late-timers`, `second-shaper` and others.
    pub id: String,
    /// In words.
    pub text: String,
}
