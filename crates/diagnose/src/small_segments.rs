//! Segments that are smaller than the devices at both ends allow.

use goodput_ceiling::Packet;
use goodput_model::{BitRate, Confidence, Known, Missing, Place};

use crate::account::{Part, held_share};
use crate::cpu_bound::cpu_bound;
use crate::finding::{Draft, percent};
use crate::framing::{QDISC_EXTRA_BYTES, packet};
use crate::loss::{loss, may_be_a_limit};
use crate::names::{LINK_MTU, ROUTE_ADVMSS, ROUTE_MTU};
use crate::parts;
use crate::rule::Rule;
use crate::thresholds::{MIN_LIMITING_TIME_SHARE, MIN_WORTHWHILE_RATE_RATIO};
use crate::view::{Side, View};

/// Name of the headers' share as evidence.
pub const WITNESS_NAME: &str = "header_percent";
/// Part of the largest possible segment below which one is small.
const MAX_SMALL_SEGMENT_SHARE: f64 = 0.7;
/// Segments that no handshake lets grow further, bytes: a sender keeps them within half of the largest
/// window that it has seen by then (`tcp_bound_to_half_wnd`, include/net/tcp.h of Linux 6.18), which has
/// 16 bits in a SYN (RFC 7323 section 2.2). It concerns devices with an MTU beyond that, like loopback.
const MAX_MSS_BY_WINDOW_BYTES: f64 = 32_767.0;
/// Segments below what every host takes (RFC 9293 section 3.7.1), bytes, are nobody's intention. Without
/// options, of which timestamps take 12.
const MIN_PLAUSIBLE_MSS_BYTES: f64 = 536.0 - 12.0;

/// Segments that cost goodput by being small.
pub struct SmallSegments {
    /// What they carry, bytes of payload.
    mss: f64,
    /// What the MTUs of both ends allow, bytes of payload.
    pub possible: f64,
    /// Goodput with full segments over the measured; `None` if it is unknown.
    gain: Option<f64>,
    confidence: Confidence,
}

impl SmallSegments {
    /// Whether the segments are small, and that costs goodput.
    pub fn of(view: &View) -> Result<Option<Self>, Missing> {
        view.needs_tcp()?;
        let packet = packet(view)?;
        let headers = packet.ip - packet.payload;
        let [one, other] = view.sides().map(|side| side.count(LINK_MTU));
        let both_known = one.is_ok() && other.is_ok();
        let mtu = match (one, other) {
            (Ok(one), Ok(other)) => one.min(other),
            (one, other) => one.or(other)?,
        };
        let possible = (mtu - headers).min(MAX_MSS_BY_WINDOW_BYTES);
        if packet.payload >= MAX_SMALL_SEGMENT_SHARE * possible {
            return Ok(None);
        }
        let full = Packet { payload: possible, ip: mtu, frames: 1.0 };
        let by_headers = full.share(QDISC_EXTRA_BYTES) / packet.share(QDISC_EXTRA_BYTES);
        let gain = match () {
            () if loss_limits(view) => possible / packet.payload,
            () if holds(view, &[parts::PATH_RATE]) => by_headers,
            () => {
                let confidence = without_gain(view, packet.payload, both_known);
                let small =
                    |confidence| Self { mss: packet.payload, possible, gain: None, confidence };
                return Ok(confidence.map(small));
            }
        };
        let confidence = if both_known { Confidence::Likely } else { Confidence::Possible };
        let small = Self { mss: packet.payload, possible, gain: Some(gain), confidence };
        Ok((gain >= MIN_WORTHWHILE_RATE_RATIO).then_some(small))
    }

    /// What shows that the segments are small, for any rule that knows why.
    pub fn draft(&self, view: &View, rule: &Rule, end: Place) -> Draft {
        let place = view.sender.place();
        let summary =
            format!("small segments: {:.0} bytes instead of {:.0}", self.mss, self.possible);
        let draft = Draft::new(rule.id, end, self.confidence, summary)
            .saw(
                place,
                "tcp_info.snd_mss_bytes",
                self.mss,
                format!(
                    "segments carry {:.0} bytes (tcp_info snd_mss); the devices at both ends allow {:.0}",
                    self.mss, self.possible
                ),
            )
            .saw_if(place, WITNESS_NAME, header_percent(view), |headers| {
                format!("headers are {} of each frame", percent(headers / 100.0))
            });
        match (self.gain, view.goodput()) {
            (Some(gain), Ok(goodput)) => draft.predicted(Known::Value(BitRate(gain * goodput))),
            _ => draft,
        }
    }
}

/// Whether losses by chance hold the sender most of the time; the rate at such a loss is proportional to the segment size. A
/// limit that drops what exceeds it counts bytes, and leaves as much to small segments.
fn loss_limits(view: &View) -> bool {
    let by_a_limit = loss(view).is_ok_and(may_be_a_limit);
    view.backs_off_at_loss().unwrap_or(false) && holds(view, parts::LOSSES) && !by_a_limit
}

fn holds(view: &View, parts: &[Part]) -> bool {
    held_share(view, parts).is_ok_and(|share| share >= MIN_LIMITING_TIME_SHARE)
}

/// How sure it is if neither a rate nor loss limits: small segments take more of a CPU that is full, and
/// absurdly small ones are worth a word whatever limits.
fn without_gain(view: &View, mss: f64, both_known: bool) -> Option<Confidence> {
    match (cpu_limits(view), mss < MIN_PLAUSIBLE_MSS_BYTES) {
        (true, true) if both_known => Some(Confidence::Likely),
        (false, false) => None,
        _ => Some(Confidence::Possible),
    }
}

fn cpu_limits(view: &View) -> bool {
    view.sides().into_iter().any(|side| cpu_bound(side).is_ok_and(|bound| bound.is_some()))
}

/// What keeps the segments small.
pub enum Cause<'v, 'a> {
    /// `--mss`.
    Plan(u32),
    /// A metric of one side's route: its name and value.
    Route(&'v Side<'a>, &'static str, f64),
    /// A hop of the path with a small MTU, which TCP learned of.
    PathMtu(f64),
    /// Nothing that either end knows of.
    OnTheWay,
}

impl<'v, 'a> Cause<'v, 'a> {
    /// The first that explains their size.
    pub fn of(view: &'v View<'a>, small: &SmallSegments) -> Self {
        if let Some(asked) = view.plan().socket.mss_bytes {
            return Self::Plan(asked);
        }
        let largest = |name| if name == ROUTE_MTU { f64::INFINITY } else { small.possible };
        let (sender, receiver) = (&view.sender, &view.receiver);
        let metrics = [(receiver, ROUTE_ADVMSS), (receiver, ROUTE_MTU), (sender, ROUTE_MTU)];
        for (side, name) in metrics {
            let set = side.count(name).ok().filter(|value| *value > 0.0 && *value < largest(name));
            // Headers and options make up the difference.
            if let Some(value) = set.filter(|value| (small.mss..=small.mss + 72.0).contains(value))
            {
                return Self::Route(side, name, value);
            }
        }
        match sender.path_mtu_bytes() {
            Ok(mtu) if mtu <= small.mss + 72.0 => Self::PathMtu(mtu),
            _ => Self::OnTheWay,
        }
    }
}

/// Headers as a percentage of the frame, as a queueing discipline counts it.
pub fn header_percent(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    Ok((1.0 - packet(view)?.share(QDISC_EXTRA_BYTES)) * 100.0)
}
