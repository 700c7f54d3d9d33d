//! # What it means
//! The segments are far smaller than the devices at both ends allow.
//!
//! # Why it limits
//! Each segment carries 52 bytes of headers or more, and costs the hosts about the same whatever
//! its size. Small segments leave less of the path's rate to the payload. Each loss also costs
//! more: the rate that congestion control reaches at a given loss is proportional to the segment
//! size.
//!
//! # How it is seen
//! The segments that TCP sends (tcp_info snd_mss) are compared with the smaller MTU of the two
//! devices, and the difference with the rate that limits.
//!
//! # What to try
//! Remove what keeps the segments small: `--mss`, an `mtu` metric on either route, or an `advmss`
//! metric on the receiver's route. If it is none of these, a hop of the path has a small MTU: raise
//! that.
//!
//! # When it is wrong
//! If the devices themselves have the small MTU, there is nothing to compare with. If neither the
//! path's rate nor loss limits, the headers cost no goodput. The finding is then possible if a CPU
//! is full; below the 536 bytes that every host accepts it is likely if a CPU is full, and possible
//! otherwise. Segment sizes rewritten on the path are left to middlebox.
//!
//! # Source
//! RFC 9293 section 3.7.1; ip-route(8) (`mtu`, `advmss`); Mathis, Semke, Mahdavi, Ott 1997.

use goodput_ceiling::Packet;
use goodput_model::{BitRate, Change, Confidence, Finding, Known, Missing, Place};

use crate::account::{Part, held_share};
use crate::change::of_host;
use crate::cpu_bound::cpu_bound;
use crate::finding::{Draft, percent};
use crate::framing::{QDISC_EXTRA_BYTES, packet};
use crate::loss::{loss, may_be_a_limit};
use crate::names::{LINK_MTU, ROUTE_ADVMSS, ROUTE_DESTINATION, ROUTE_MTU};
use crate::parts;
use crate::rule::{Depth, Rule, Stage};
use crate::thresholds::MIN_LIMITING_TIME_SHARE;
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "small-mss",
    title: "The segments are too small",
    stage: Stage::Ceiling,
    refines: &[
        parts::CUT_WINDOW,
        parts::RECOVERY,
        parts::PATH_RATE,
        parts::SENDING_HOST,
        parts::RECEIVING_HOST,
    ],
    depth: Depth::Beside,
    explains: &["line-rate", "shaper-rate", "path-rate"],
    check,
    witness,
    witness_name: "header_percent",
    source: include_str!("small_mss.rs"),
};

/// Part of the largest possible segment below which one is small.
const MAX_SMALL_SEGMENT_SHARE: f64 = 0.7;
/// Segments that no handshake lets grow further, bytes: a sender keeps them within half of the largest
/// window that it has seen by then (`tcp_bound_to_half_wnd`, include/net/tcp.h of Linux 6.18), which has
/// 16 bits in a SYN (RFC 7323 section 2.2). It concerns devices with an MTU beyond that, like loopback.
const MAX_MSS_BY_WINDOW_BYTES: f64 = 32_767.0;
/// Segments below what every host takes (RFC 9293 section 3.7.1), bytes, are nobody's intention. Without
/// options, of which timestamps take 12.
const MIN_PLAUSIBLE_MSS_BYTES: f64 = 536.0 - 12.0;
/// Goodput with full segments over the measured, from which it is worth a change.
const MIN_FULL_SEGMENT_RATE_RATIO: f64 = 1.05;

/// Segments that cost goodput by being small.
pub(super) struct Small {
    mss: f64,
    /// What the MTUs of both ends allow, bytes of payload.
    pub(super) possible: f64,
    /// Goodput with full segments over the measured; `None` if it is unknown.
    gain: Option<f64>,
    confidence: Confidence,
}

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(small) = small(view)? else { return Ok(None) };
    let cause = Cause::of(view, &small);
    if matches!(cause, Cause::OnTheWay) {
        return Ok(None);
    }
    let draft = cause.describe(view, draft(view, &RULE, cause.place(view), &small));
    draft.found()
}

/// What shows that the segments are small, for any rule that knows why.
pub(super) fn draft(view: &View, rule: &Rule, end: Place, small: &Small) -> Draft {
    let place = view.sender.place();
    let summary =
        format!("small segments: {:.0} bytes instead of {:.0}", small.mss, small.possible);
    let draft = Draft::new(rule.id, end, small.confidence, summary)
        .saw(
            place,
            "tcp_info.snd_mss_bytes",
            small.mss,
            format!(
                "segments carry {:.0} bytes (tcp_info snd_mss); the devices at both ends allow {:.0}",
                small.mss, small.possible
            ),
        )
        .saw_if(place, RULE.witness_name, witness(view), |headers| {
            format!("headers are {} of each frame", percent(headers / 100.0))
        });
    match (small.gain, view.goodput()) {
        (Some(gain), Ok(goodput)) => draft.predicted(Known::Value(BitRate(gain * goodput))),
        _ => draft,
    }
}

/// Whether the segments are small, and that costs goodput.
pub(super) fn small(view: &View) -> Result<Option<Small>, Missing> {
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
                |confidence| Small { mss: packet.payload, possible, gain: None, confidence };
            return Ok(confidence.map(small));
        }
    };
    let confidence = if both_known { Confidence::Likely } else { Confidence::Possible };
    let small = Small { mss: packet.payload, possible, gain: Some(gain), confidence };
    Ok((gain >= MIN_FULL_SEGMENT_RATE_RATIO).then_some(small))
}

/// Whether losses by chance hold the sender most of the time; the rate at such a loss is proportional to the segment size. A
/// limit that drops what exceeds it counts bytes, and leaves as much to small segments.
fn loss_limits(view: &View) -> bool {
    let by_a_limit = loss(view).is_ok_and(|lost| may_be_a_limit(&lost));
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
pub(super) enum Cause<'v, 'a> {
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
    pub(super) fn of(view: &'v View<'a>, small: &Small) -> Self {
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

    fn place(&self, view: &View) -> Place {
        match self {
            Self::Plan(_) => view.sender.place(),
            Self::Route(side, ..) => side.place(),
            Self::PathMtu(_) | Self::OnTheWay => Place::Path,
        }
    }

    fn describe(&self, view: &View, draft: Draft) -> Draft {
        match self {
            Self::Plan(asked) => draft.advice(format!("drop --mss {asked}")),
            Self::Route(side, name, value) => {
                let metric = name.trim_start_matches("route.");
                let text = format!("the route to the other end has `{metric} {value:.0}`");
                draft.saw(side.place(), name, *value, text).changes([off_the_route(side, name, *value)])
            }
            Self::PathMtu(mtu) => draft
                .saw(
                    view.sender.place(),
                    "tcp_info.pmtu_bytes",
                    *mtu,
                    format!("a hop of the path carries packets of at most {mtu:.0} bytes (tcp_info pmtu)"),
                )
                .advice("raise the MTU of that hop: tracepath ADDRESS shows where the MTU falls"),
            Self::OnTheWay => draft,
        }
    }
}

fn off_the_route(side: &Side, name: &str, value: f64) -> Change {
    let destination = side.text(ROUTE_DESTINATION).ok();
    let values = (Some(format!("{value:.0}")), "default".into());
    of_host(side, name, destination, values, "the metric keeps the segments small")
}

/// Headers as a percentage of the frame, as a queueing discipline counts it.
fn witness(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    Ok((1.0 - packet(view)?.share(QDISC_EXTRA_BYTES)) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    fn segments(mut case: Case, mss: u64) -> Case {
        case = case.tcp(move |tcp, _| tcp.snd_mss_bytes = Some(mss));
        case.fact(Far, ROUTE_DESTINATION, "192.0.2.0/24").fact(
            Near,
            ROUTE_DESTINATION,
            "192.0.2.0/24",
        )
    }

    /// 536 bytes of MSS at 500 Mbit/s: 444 Mbit/s, 478 with full segments, as measured.
    fn small() -> Case {
        segments(Case::path_rate().without_links().goodput(444e6), 524)
    }

    #[test]
    fn what_the_route_advertises_is_named_with_the_gain() {
        let finding = fires(&RULE, small().fact(Far, ROUTE_ADVMSS, 536u64));
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Likely));
        assert_eq!(finding.changes[0].as_argument(), "far:route.advmss@192.0.2.0/24=536,default");
        let gain = finding.predicted_bits_per_s.value().unwrap().0 / 444e6;
        assert!((gain - 1.077).abs() < 0.003, "{gain}");
        let mtu = fires(&RULE, small().fact(Near, ROUTE_MTU, 576u64));
        assert_eq!(mtu.changes[0].as_argument(), "route.mtu@192.0.2.0/24=576,default");
    }

    #[test]
    fn a_small_hop_is_the_path_s_and_an_option_ours() {
        let hop = small().tcp(|tcp, _| tcp.pmtu_bytes = Some(576));
        assert_eq!(fires(&RULE, hop).end, Place::Path);
        let asked = fires(&RULE, small().plan(|plan| plan.socket.mss_bytes = Some(536)));
        assert_eq!(asked.advice, ["drop --mss 536"]);
    }

    #[test]
    fn it_explains_the_rate_and_stands_before_loss() {
        let case = small().fact(Far, ROUTE_ADVMSS, 536u64);
        let found = diagnose(&case.evidence()).findings;
        assert_eq!(found.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["small-mss"]);
        let lossy = segments(Case::path_loss().goodput(6e6).retransmitted(0.002), 524).fact(
            Far,
            ROUTE_ADVMSS,
            536u64,
        );
        let finding = fires(&RULE, lossy);
        assert!(finding.predicted_bits_per_s.value().unwrap().0 > 2.0 * 6e6);
    }

    #[test]
    fn nearly_full_segments_and_those_that_cost_nothing_are_quiet() {
        let route = |case: Case| case.fact(Far, ROUTE_ADVMSS, 536u64);
        quiet(&RULE, route(segments(Case::path_rate(), 1388)));
        quiet(&RULE, route(segments(Case::receive_window(), 524)));
        quiet(&RULE, route(segments(Case::healthy(), 524)));
        // A CPU that is full is so for any size of usual segments.
        let full = |mss| {
            let busy = Case::healthy().writer(0.01, 0.0, 0.97).without_links();
            fires(&RULE, segments(busy, mss).fact(Far, ROUTE_ADVMSS, mss + 12)).confidence
        };
        assert_eq!(full(524), Confidence::Possible);
        assert_eq!(full(300), Confidence::Likely);
        let absurd = route(segments(Case::receive_window(), 300)).fact(Far, ROUTE_ADVMSS, 312u64);
        assert_eq!(fires(&RULE, absurd).confidence, Confidence::Possible);
        // A device that rewrites the size on the way is another rule's.
        quiet(&RULE, small());
    }

    #[test]
    fn cannot_tell_for_datagrams_or_without_devices() {
        cannot_tell(&RULE, Case::healthy_udp());
        cannot_tell(&RULE, small().without(Near, "link").without(Far, "link"));
    }
}
