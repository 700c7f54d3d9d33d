//! What limits the rate of a path, as shown by datagrams that were sent faster than this rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::estimate::Estimate;
use crate::ethernet::{ETHERNET_CHECKSUM_BYTES, ETHERNET_HEADER_BYTES, ETHERNET_PAUSE_BYTES};
use crate::finding::Permanent;
use crate::known::Known;
use crate::shaper::{EnoughBucket, LocalShaper, NotProven, ShapingCause, ShapingProof, SinceLast};
use crate::shaping_class::ShapingClass;
use crate::units::{BitRate, Bytes};

/// How long the sender of a train rests before it, so that a bucket fills, seconds.
pub const REST_S: f64 = 1.0;
/// How long TCP sends at least, seconds.
pub const LEAST_TCP_S: f64 = 2.0;
/// A bucket that is deeper than any usual one, as the time in which it fills, seconds. A limit of nftables
/// holds one unit of its rate, and its burst (net/netfilter/nft_limit.c, `nft_limit_init`): one of `/second` holds a second. One of
/// `/minute` holds a minute, and shows in no test of seconds.
const DEEP_BUCKET_S: f64 = 2.0;

/// What limits the rate of a path, as a train of datagrams shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shaping {
    /// What happened to datagrams above the rate.
    pub kind: ShapingKind,
    /// Payload of each datagram, bytes.
    pub payload_bytes: Bytes,
    /// IP packet of each datagram, bytes.
    pub packet_bytes: Bytes,
    /// Ethernet frame of each datagram without preamble and checksum, bytes. Queueing disciplines count these
    /// bytes.
    pub frame_bytes: Bytes,
    /// Number of datagrams sent.
    pub sent: u64,
    /// Number of these datagrams that did not arrive.
    pub lost: u64,
    /// Number of the lost datagrams that a firewall rule of the sending host dropped; absent if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Average number of datagrams that left the sender in one packet (segmentation offload), which its queueing discipline
    /// may count with one header; absent if each left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<f64>,
    /// Time in which nothing came although datagrams were sent and none of them was lost, seconds: the path stood still;
    /// absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_s: Option<f64>,
    /// Time in which all datagrams that were sent were lost although a full bucket would have let some through, seconds;
    /// absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_s: Option<f64>,
    /// Number of these times; absent if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outages: u64,
    /// Rate at which the datagrams were sent, bits per second of frames.
    pub offered_bits_per_s: BitRate,
    /// Share of the time in which the sender waited for its own queue, percent.
    #[serde(default = "not_counted")]
    pub held_percent: Known<f64>,
    /// How often the sender's queueing discipline, or that of the router that was asked, held something back to keep its
    /// rate, per call that sent datagrams.
    #[serde(default = "not_counted")]
    pub rate_waits_per_call: Known<f64>,
    /// Long-term rate that passed, bits per second of frames.
    pub rate_bits_per_s: Known<Estimate>,
    /// Bytes of frames that passed after a pause before the rate applied: the bucket.
    pub bucket_bytes: Known<Estimate>,
    /// The queue in which the datagrams waited; missing if they did not wait.
    pub queue: Known<ShapingQueue>,
    /// Lowest and highest rate over windows of several lengths, after the bucket was empty.
    pub windows: Vec<WindowRates>,
    /// Pauses between arrivals, after the bucket was empty.
    pub gaps: Gaps,
    /// Bytes that had arrived, by time since the first arrival; thinned for a picture.
    pub curve: Vec<CurvePoint>,
}

impl Shaping {
    /// Rate of frames that came while the train was sent, bits per second: what was offered, without what was lost.
    pub fn came_bits_per_s(&self) -> BitRate {
        let lost_share = self.lost as f64 / (self.sent as f64).max(1.0);
        BitRate(self.offered_bits_per_s.0 * (1.0 - lost_share))
    }

    /// Whether nothing held the train, and more of it came than this rate, by more than the tolerance. A policer drops what
    /// exceeds its rate, so a train of which no more came than that shows nothing, however little was lost.
    pub fn exceeds(&self, rate: BitRate, tolerance_percent: f64) -> bool {
        let most = rate.0 * (1.0 + tolerance_percent / 100.0);
        self.kind == ShapingKind::None && self.came_bits_per_s().0 > most
    }

    /// Whether the train, with what is known of `tcp` in the same bytes, shows that nothing holds this rate. A bucket that is
    /// deeper than what came above the rate lets all of it through; it is deeper than any that is usual if TCP, which comes
    /// afterwards, gets no more than the rate.
    pub fn is_unheld(&self, rate: BitRate, tolerance_percent: f64, tcp: Option<&Estimate>) -> bool {
        let most = rate.0 * (1.0 + tolerance_percent / 100.0);
        let least = rate.0 * (1.0 - tolerance_percent / 100.0);
        let may_be_held = tcp.is_some_and(|tcp| tcp.low <= most && tcp.high >= least);
        let of_tcp_s = tcp.map_or(0.0, |tcp| (tcp.low / rate.0 - 1.0).max(0.0) * LEAST_TCP_S);
        let beyond_s = self.excess_bytes(rate).0 as f64 * 8.0 / rate.0 + of_tcp_s;
        self.exceeds(rate, tolerance_percent) && !may_be_held && beyond_s >= DEEP_BUCKET_S
    }

    /// How long the bucket takes to fill, seconds, if that is longer than the sender rests before a train: then it may not have
    /// been full, and holds at least what was seen.
    pub fn fills_for_longer(&self) -> Option<f64> {
        let (bucket, rate) = (self.bucket_bytes.value()?, self.rate_bits_per_s.value()?);
        let fills_s = bucket.value * 8.0 / rate.value;
        (fills_s.is_finite() && fills_s > REST_S).then_some(fills_s)
    }

    /// What came above this rate in the whole train. A bucket that is deeper than this would have let all of it through.
    pub fn excess_bytes(&self, rate: BitRate) -> Bytes {
        let sent_bytes = self.sent as f64 * self.frame_bytes.0 as f64;
        let excess_share = (self.came_bits_per_s().0 - rate.0) / self.offered_bits_per_s.0.max(1.0);
        Bytes((sent_bytes * excess_share).max(0.0).round() as u64)
    }
}

/// What happens to datagrams above a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShapingKind {
    /// They wait.
    Shaper,
    /// They are dropped without waiting first.
    Policer,
    /// There is no limit: all arrived as fast as they were sent.
    None,
}

/// The queue of a shaper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingQueue {
    /// Longest time that a datagram waited in the queue, seconds.
    pub longest_wait_s: f64,
    /// Bytes of frames in the queue at that time.
    pub bytes: Bytes,
    /// When the queue drops; missing if what was lost does not show it.
    pub discipline: Known<QueueDiscipline>,
    /// Whether a second flow waits behind the first.
    #[serde(default = "not_sent_beside")]
    pub between_flows: Known<FlowSharing>,
}

fn not_sent_beside() -> Known<FlowSharing> {
    Known::missing("an older goodput made this record")
}

/// When a queue drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueDiscipline {
    /// Unknown: it was never full.
    Unfilled,
    /// It drops what arrives when it is full.
    DropTail,
    /// When it is full, it drops the oldest, as those of fq_codel and cake do. Whether it also drops earlier is unknown.
    DropHead,
    /// It drops before it is full, as CoDel and similar algorithms do.
    ActiveManagement,
}

/// Whether the packets of one flow wait behind those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowSharing {
    /// They do: one queue holds all flows.
    OneQueue,
    /// They do not: each flow has its turn, as in fq_codel, cake, fq and sfq.
    FairQueue,
}

/// The lowest and the highest rate over all windows of one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowRates {
    /// Length of the windows, seconds.
    pub window_s: f64,
    /// Lowest rate, bits per second of frames.
    pub lowest_bits_per_s: BitRate,
    /// Highest rate, bits per second of frames.
    pub highest_bits_per_s: BitRate,
}

/// Pauses between arrivals.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Gaps {
    /// Longest pause, seconds.
    pub longest_s: f64,
    /// Number of pauses by length; empty bins are left out.
    pub histogram: Vec<GapBin>,
    /// Rhythm of bursts; absent if packets did not arrive in bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rhythm: Option<Rhythm>,
}

impl Gaps {
    /// The pauses of both together, which have no rhythm. Bins are one if they begin at the same time.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut histogram = self.histogram.clone();
        for bin in &other.histogram {
            match histogram.iter_mut().find(|own| own.from_s.total_cmp(&bin.from_s).is_eq()) {
                Some(own) => own.count = own.count.saturating_add(bin.count),
                None => histogram.push(*bin),
            }
        }
        histogram.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        Self { longest_s: self.longest_s.max(other.longest_s), histogram, rhythm: None }
    }
}

/// Pauses of similar length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapBin {
    /// Shortest pause of this bin, seconds. The next bin begins at twice this time. The bin of 1 µs also counts shorter
    /// pauses.
    pub from_s: f64,
    /// Number of pauses.
    pub count: u64,
}

/// Bursts that arrive at regular intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rhythm {
    /// Time from the beginning of one burst to the beginning of the next, seconds.
    pub period_s: f64,
    /// Bytes of frames in one burst.
    pub burst_bytes: Bytes,
}

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Seconds since the first datagram arrived.
    pub at_s: f64,
    /// Bytes of frames that had arrived by then.
    pub bytes: u64,
}

/// The configured rate of a shaper, the measured rate, and whether they agree (`goodput shaping`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingTest {
    /// Rate for which the shaper is configured, bits per second.
    #[serde(alias = "told_bits_per_s")]
    pub configured_bits_per_s: BitRate,
    /// By how much the measured rate may differ from the configured rate, percent.
    pub tolerance_percent: f64,
    /// Largest burst that the shaper may let through, bytes; absent if there is no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_burst_bytes: Option<Bytes>,
    /// What a train of datagrams shows.
    pub train: Known<Shaping>,
    /// Which bytes of a packet the shaper counts, judging by the measured rate.
    pub counts: Known<CountedLayer>,
    /// Rate of datagrams, bits per second, in the bytes that the shaper counts.
    pub datagrams_bits_per_s: Known<Estimate>,
    /// Rate of TCP, bits per second, in the bytes that the shaper counts.
    pub tcp_bits_per_s: Known<Estimate>,
    /// Whether the shaper gives the configured rate.
    pub confirmation: Confirmation,
    /// Reasons for this answer, one sentence each.
    pub reasons: Vec<String>,
    /// What each class got, if `--class` was given. The rates above are then those of all classes together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ShapingClass>,
    /// The shaper that the traffic passes at the sending host; missing if there is none.
    #[serde(default = "not_read")]
    pub shaper: Known<LocalShaper>,
    /// The bucket that would be enough for the rate.
    #[serde(default = "not_computed")]
    pub enough_bucket: Known<EnoughBucket>,
    /// Explanations of what was measured, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<ShapingCause>,
    /// Changes to make at the sending host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The same changes as commands of tc(8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// The same changes as lines of a `.network` file of systemd-networkd (systemd.network(5)).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networkd: Vec<String>,
    /// Files to write so that the changes outlive a reboot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permanent: Vec<Permanent>,
    /// What a comparison of the settings in question shows, if `--prove` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ShapingProof>,
    /// Why nothing was compared although `--prove` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_proven: Option<NotProven>,
    /// What changed since the last test of the same shaper; absent if the history has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<SinceLast>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn not_counted() -> Known<f64> {
    Known::missing("an older goodput made this record")
}

impl ShapingTest {
    /// A test of a shaper with this configured rate, before anything is measured.
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
            classes: Vec::new(),
            shaper: Known::missing("not looked for"),
            enough_bucket: Known::missing("not computed"),
            causes: Vec::new(),
            changes: Vec::new(),
            commands: Vec::new(),
            networkd: Vec::new(),
            permanent: Vec::new(),
            proof: None,
            not_proven: None,
            since: None,
        }
    }
}

impl ShapingTest {
    /// Whether nothing holds the rate, as far as the train and TCP show.
    pub fn is_unheld(&self) -> bool {
        let (rate, tcp) = (self.configured_bits_per_s, self.tcp_bits_per_s.value());
        self.train.value().is_some_and(|train| train.is_unheld(rate, self.tolerance_percent, tcp))
    }

    /// The place among the classes of the one that is furthest below its rate, beside the others or else alone. The
    /// record has the TCP measurement of this class.
    pub fn furthest_below(&self) -> Option<usize> {
        let share = |class: &ShapingClass| {
            let got = class.beside_bits_per_s.value().or(class.alone_bits_per_s.value());
            got.map_or(f64::INFINITY, |got| got.value / class.rate_bits_per_s.0)
        };
        let all = self.classes.iter().map(share).enumerate();
        all.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(place, _)| place)
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
    /// The IP packet and the Ethernet header, as Linux's queueing disciplines count.
    Frame,
    /// The IP packet, the Ethernet header and the frame's checksum.
    CheckedFrame,
    /// Everything that occupies an Ethernet wire, preamble and gap included.
    Wire,
}

impl CountedLayer {
    /// Every layer, the smallest first.
    pub const ALL: [Self; 4] = [Self::Packet, Self::Frame, Self::CheckedFrame, Self::Wire];

    /// Bytes that count in addition to the IP packet.
    pub fn extra_bytes(self) -> f64 {
        let checked = ETHERNET_HEADER_BYTES + ETHERNET_CHECKSUM_BYTES;
        f64::from(match self {
            Self::Packet => 0,
            Self::Frame => ETHERNET_HEADER_BYTES,
            Self::CheckedFrame => checked,
            Self::Wire => checked + ETHERNET_PAUSE_BYTES,
        })
    }

    /// The counted bytes in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Packet => "IP packets",
            Self::Frame => "Ethernet frames without checksum",
            Self::CheckedFrame => "Ethernet frames with checksum",
            Self::Wire => "all bytes of the wire",
        }
    }
}

/// Whether a shaper gives the configured rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// It gives the configured rate.
    Confirmed,
    /// It gives another rate.
    Missed,
    /// The measurement does not show it.
    Inconclusive,
}
