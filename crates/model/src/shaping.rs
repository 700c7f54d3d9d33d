//! What datagrams that were sent faster than a path lets them through show of what holds them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::estimate::Estimate;
use crate::ethernet::{ETHERNET_CHECKSUM_BYTES, ETHERNET_HEADER_BYTES, ETHERNET_PAUSE_BYTES};
use crate::finding::Permanent;
use crate::known::Known;
use crate::shaper::{EnoughBucket, LocalShaper, NotProven, ShapingCause, ShapingProof, SinceLast};
use crate::units::{BitRate, Bytes};

/// What holds the rate of a path, as a train of datagrams met it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shaping {
    /// What became of datagrams that exceed the rate.
    pub kind: ShapingKind,
    /// Payload of each datagram, bytes.
    pub payload_bytes: Bytes,
    /// IP packet of each datagram, bytes.
    pub packet_bytes: Bytes,
    /// Ethernet frame of each datagram without preamble and checksum, bytes: what qdiscs count.
    pub frame_bytes: Bytes,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Of these, datagrams that did not come.
    pub lost: u64,
    /// The rate at which they were sent, in frames, bits per second.
    pub offered_bits_per_s: BitRate,
    /// How long the sender had to wait for its own queue, percent of the time.
    #[serde(default = "not_counted")]
    pub held_percent: Known<f64>,
    /// How often the sender's queueing discipline made something wait for its rate, for each call that sent datagrams.
    #[serde(default = "not_counted")]
    pub rate_waits_per_call: Known<f64>,
    /// The rate that was let through in the long run, in frames, bits per second.
    pub rate_bits_per_s: Known<Estimate>,
    /// What was let through after a pause before the rate held, in frames, bytes: the bucket.
    pub bucket_bytes: Known<Estimate>,
    /// The queue in which they waited, if they did.
    pub queue: Known<ShapingQueue>,
    /// Lowest and highest rate over windows of several lengths, once the rate held.
    pub windows: Vec<WindowRates>,
    /// Pauses between arrivals, once the rate held.
    pub gaps: Gaps,
    /// Bytes that had come, in frames, against the time since the first came; thinned for a picture.
    pub curve: Vec<CurvePoint>,
}

/// What became of datagrams that exceed a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShapingKind {
    /// They waited.
    Shaper,
    /// They were dropped without having waited.
    Policer,
    /// Nothing: all came as fast as they were sent.
    None,
}

/// The queue of a shaper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingQueue {
    /// How long they waited in it at most, seconds.
    pub longest_wait_s: f64,
    /// What lay in it then, in frames, bytes.
    pub bytes: Bytes,
    /// How it drops.
    pub discipline: QueueDiscipline,
}

/// When a queue drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueDiscipline {
    /// It was never full.
    Unfilled,
    /// It drops what comes when it is full.
    DropTail,
    /// It drops before it is full, as CoDel and its kin do.
    ActiveManagement,
}

/// The lowest and the highest rate over all windows of one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowRates {
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Lowest rate, in frames, bits per second.
    pub lowest_bits_per_s: BitRate,
    /// Highest rate, in frames, bits per second.
    pub highest_bits_per_s: BitRate,
}

/// The pauses between arrivals.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Gaps {
    /// The longest, seconds.
    pub longest_s: f64,
    /// How many pauses had which length; bins without any are left out.
    pub histogram: Vec<GapBin>,
    /// The rhythm in which bursts came, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rhythm: Option<Rhythm>,
}

/// Pauses of similar length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapBin {
    /// The shortest pause that counts here, seconds; the next bin begins at twice as much.
    pub from_s: f64,
    /// How many.
    pub count: u64,
}

/// Bursts that come at even times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rhythm {
    /// From the beginning of one burst to that of the next, seconds.
    pub period_s: f64,
    /// What comes in a burst, in frames, bytes.
    pub burst_bytes: Bytes,
}

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Seconds since the first datagram came.
    pub at_s: f64,
    /// What had come by then, in frames, bytes.
    pub bytes: u64,
}

/// What a shaper is configured for, what it gives, and whether that is the same (`goodput shaping`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingTest {
    /// The rate that it is configured for, bits per second.
    #[serde(alias = "told_bits_per_s")]
    pub configured_bits_per_s: BitRate,
    /// By how much the rate that it gives may differ, percent.
    pub tolerance_percent: f64,
    /// The largest burst that it may let through, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_burst_bytes: Option<Bytes>,
    /// What a train of datagrams shows of it.
    pub train: Known<Shaping>,
    /// What it counts, by the rate that it gives.
    pub counts: Known<CountedLayer>,
    /// The rate that datagrams get, in what it counts, bits per second.
    pub datagrams_bits_per_s: Known<Estimate>,
    /// The rate that TCP gets, in what it counts, bits per second.
    pub tcp_bits_per_s: Known<Estimate>,
    /// Whether it gives the rate that it is configured for.
    pub confirmation: Confirmation,
    /// Why, a sentence each.
    pub reasons: Vec<String>,
    /// The shaper that the traffic passes at the sending host, if one is there.
    #[serde(default = "not_read")]
    pub shaper: Known<LocalShaper>,
    /// The bucket that would be enough for the rate.
    #[serde(default = "not_computed")]
    pub enough_bucket: Known<EnoughBucket>,
    /// What explains what was seen, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<ShapingCause>,
    /// What to change at the sending host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The same as commands of tc(8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Files that keep it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permanent: Vec<Permanent>,
    /// What a comparison of the settings in question shows, if that was asked (`--prove`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ShapingProof>,
    /// Why nothing was compared, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_proven: Option<NotProven>,
    /// What changed since the last test of the same shaper, if the history has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<SinceLast>,
}

fn not_counted() -> Known<f64> {
    Known::missing("an older goodput made this record")
}

impl ShapingTest {
    /// A test of a shaper that is configured for this rate, before anything was measured.
    pub fn of(configured_bits_per_s: BitRate) -> Self {
        Self {
            configured_bits_per_s,
            tolerance_percent: 0.0,
            max_burst_bytes: None,
            train: Known::missing("not measured"),
            counts: Known::missing("not measured"),
            datagrams_bits_per_s: Known::missing("not measured"),
            tcp_bits_per_s: Known::missing("not measured"),
            confirmation: Confirmation::Inconclusive,
            reasons: Vec::new(),
            shaper: Known::missing("not looked for"),
            enough_bucket: Known::missing("not computed"),
            causes: Vec::new(),
            changes: Vec::new(),
            commands: Vec::new(),
            permanent: Vec::new(),
            proof: None,
            not_proven: None,
            since: None,
        }
    }
}

fn not_read() -> Known<LocalShaper> {
    Known::missing("an older goodput made this record")
}

fn not_computed() -> Known<EnoughBucket> {
    Known::missing("an older goodput made this record")
}

/// Which bytes of a packet count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountedLayer {
    /// The IP packet.
    Packet,
    /// With the Ethernet header, as qdiscs of Linux count.
    Frame,
    /// With the checksum of the frame as well.
    CheckedFrame,
    /// With preamble and gap as well: all that occupies an Ethernet wire.
    Wire,
}

impl CountedLayer {
    /// All, the smallest first.
    pub const ALL: [Self; 4] = [Self::Packet, Self::Frame, Self::CheckedFrame, Self::Wire];

    /// Bytes that count beside the IP packet.
    pub fn extra_bytes(self) -> f64 {
        let checked = ETHERNET_HEADER_BYTES + ETHERNET_CHECKSUM_BYTES;
        f64::from(match self {
            Self::Packet => 0,
            Self::Frame => ETHERNET_HEADER_BYTES,
            Self::CheckedFrame => checked,
            Self::Wire => checked + ETHERNET_PAUSE_BYTES,
        })
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Packet => "IP packets",
            Self::Frame => "Ethernet frames without checksum",
            Self::CheckedFrame => "Ethernet frames with checksum",
            Self::Wire => "all bytes of the wire",
        }
    }
}

/// Whether a shaper gives the rate that it is configured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// It does.
    Confirmed,
    /// It does not.
    Missed,
    /// What was seen does not say.
    Inconclusive,
}
