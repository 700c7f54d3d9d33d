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

use goodput_model::{Change, Finding, Missing, Place};

use crate::change::of_host;
use crate::finding::Draft;
use crate::names::ROUTE_DESTINATION;
use crate::parts;
use crate::remedy::Again;
use crate::rule::{Depth, Rule};
use crate::small_segments::{Cause, SmallSegments, WITNESS_NAME, header_percent};
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "small-mss",
    title: "The segments are too small",
    refines: &[
        parts::CUT_WINDOW,
        parts::RECOVERY,
        parts::PATH_RATE,
        parts::SENDING_HOST,
        parts::RECEIVING_HOST,
    ],
    depth: Depth::Beside,
    is_of_discipline: false,
    check,
    witness: header_percent,
    witness_name: WITNESS_NAME,
    witness_words: ("bytes in headers", " %"),
    source: include_str!("small_mss.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(small) = SmallSegments::of(view)? else { return Ok(None) };
    let cause = Cause::of(view, &small);
    if matches!(cause, Cause::OnTheWay) {
        return Ok(None);
    }
    describe(&cause, view, small.draft(view, &RULE, place(&cause, view))).found()
}

fn place(cause: &Cause, view: &View) -> Place {
    match cause {
        Cause::Plan(_) => view.sender.place(),
        Cause::Route(side, ..) => side.place(),
        Cause::PathMtu(_) | Cause::OnTheWay => Place::Path,
    }
}

fn describe(cause: &Cause, view: &View, draft: Draft) -> Draft {
    match cause {
        Cause::Plan(asked) => {
            draft.again(&Again::Without("--mss"), format!("it keeps the segments at {asked} bytes"))
        }
        Cause::Route(side, name, value) => {
            let metric = name.trim_start_matches("route.");
            let text = format!("the route to the other end has `{metric} {value:.0}`");
            draft.saw(side.place(), name, *value, text).changes([off_the_route(side, name, *value)])
        }
        Cause::PathMtu(mtu) => draft
            .saw(
                view.sender.place(),
                "tcp_info.pmtu_bytes",
                *mtu,
                format!(
                    "a hop of the path carries packets of at most {mtu:.0} bytes (tcp_info pmtu)"
                ),
            )
            .advice("raise the MTU of that hop; tracepath(8) shows where the MTU falls"),
        Cause::OnTheWay => draft,
    }
}

fn off_the_route(side: &Side, name: &str, value: f64) -> Change {
    let destination = side.text(ROUTE_DESTINATION).ok();
    let values = (Some(format!("{value:.0}")), "default".into());
    of_host(side, name, destination, values, "the metric keeps the segments small")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::names::{ROUTE_ADVMSS, ROUTE_MTU};
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::Confidence;
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
        assert_eq!(
            asked.advice,
            ["the same test without --mss   # it keeps the segments at 536 bytes"]
        );
    }

    #[test]
    fn it_explains_the_rate_and_stands_before_loss() {
        let case = small().fact(Far, ROUTE_ADVMSS, 536u64);
        let found = diagnose(&case.evidence()).findings;
        assert_eq!(found[0].rule, "small-mss", "{found:?}");
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
        quiet(&RULE, route(segments(Case::sender_application(), 524)));
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
