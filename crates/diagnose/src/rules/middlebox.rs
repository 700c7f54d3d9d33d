//! # What it means
//! Something on the path changes what the two hosts negotiate when they connect: it removes an
//! option from the SYN, or makes the segments smaller.
//!
//! # Why it limits
//! Without window scaling, at most 64 KiB are in flight in each round trip. Without selective
//! acknowledgements, losses take a round trip each. Small segments are mostly headers.
//!
//! # How it is seen
//! Both hosts have the option enabled, yet the connection runs without it; or the segments are
//! smaller than either end's MTU, routes and path MTU explain. And the missing option limits, as
//! for window-scaling-off, sack-off or small-mss.
//!
//! # What to try
//! Find the firewall, load balancer, VPN or accelerator on the path that normalises TCP, and let it
//! pass the options. Another path, or a tunnel around the device, shows whether it is the cause.
//!
//! # When it is wrong
//! A setting that was changed while the connection ran looks the same. So does a listener that
//! inherited an older value. If one end does not report its settings, the rule can't decide.
//!
//! # Source
//! RFC 9293 section 3.1; RFC 7323 section 2.2; Honda et al., Is it still possible to extend TCP?, 2011.

use goodput_model::{Confidence, Finding, Missing, Place};

use crate::closed_window::ClosedWindow;
use crate::finding::Draft;
use crate::names::{ROUTE_ADVMSS, TCP_SACK, TCP_WINDOW_SCALING};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::small_segments::{Cause, SmallSegments};
use crate::thresholds::MIN_LIMITING_TIME_SHARE;
use crate::unselective::Unselective;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "middlebox",
    title: "Something on the path changes what the hosts negotiate",
    refines: &[
        parts::RECEIVE_WINDOW,
        parts::SEND_BUFFER,
        parts::CUT_WINDOW,
        parts::RECOVERY,
        parts::PATH_RATE,
    ],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "changed_on_the_way",
    witness_words: ("options changed on the way", ""),
    source: include_str!("middlebox.rs"),
};

/// What was changed, and what shows that it limits.
enum Changed {
    Scaling(ClosedWindow),
    Sack(Unselective),
    Segments(SmallSegments),
}

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(changed) = changed(view)? else { return Ok(None) };
    let draft = match changed {
        Changed::Scaling(window) => {
            let summary = "something on the path that removes window scaling";
            let draft = window.draft(view, &RULE, Place::Path, summary)?;
            taken(view, draft, TCP_WINDOW_SCALING, "window scaling")
        }
        Changed::Sack(seen) => {
            let sure = if seen.share > MIN_LIMITING_TIME_SHARE { Confidence::Likely } else { Confidence::Possible };
            let summary = "something on the path that removes selective acknowledgements";
            let draft = Draft::new(RULE.id, Place::Path, sure, summary);
            let draft = seen.describe(view, draft);
            taken(view, draft, TCP_SACK, "selective acknowledgements")
        }
        Changed::Segments(small) => small.draft(view, &RULE, Place::Path).saw(
            Place::Path,
            "segments_made_smaller",
            1.0,
            "neither the hosts' routes nor the path MTU explain it: something on the path rewrites the segment size in the SYNs",
        ),
    };
    draft
        .command(
            Place::Path,
            "tcpdump -nv 'tcp[tcpflags] & tcp-syn != 0'",
            "at both ends: which options differ; then find what changes them",
        )
        .found()
}

fn changed(view: &View) -> Result<Option<Changed>, Missing> {
    let offered = |name: &str| -> Result<bool, Missing> {
        let [one, other] = view.sides().map(|side| Ok(side.text(name)? != "0"));
        Ok(one? && other?)
    };
    if let Some(window) = ClosedWindow::unscaled(view)?
        && offered(TCP_WINDOW_SCALING)?
    {
        return Ok(Some(Changed::Scaling(window)));
    }
    if let Some(seen) = Unselective::of(view)?
        && offered(TCP_SACK)?
    {
        return Ok(Some(Changed::Sack(seen)));
    }
    let small = SmallSegments::of(view)?;
    Ok(small.filter(|small| is_by_neither_end(view, small)).map(Changed::Segments))
}

/// Whether both ends report and neither wants small segments.
fn is_by_neither_end(view: &View, small: &SmallSegments) -> bool {
    let reports = view.receiver.end().is_ok_and(|end| end.before.get("route.device").is_ok());
    let nothing = matches!(Cause::of(view, small), Cause::OnTheWay);
    reports && nothing && view.receiver.count(ROUTE_ADVMSS).is_err()
}

fn taken(view: &View, mut draft: Draft, name: &str, what: &str) -> Draft {
    for side in view.sides() {
        if let Ok(value) = side.text(name) {
            draft = draft.saw(
                side.place(),
                name,
                value.parse().unwrap_or(1.0),
                format!(
                    "this host offers {what} ({} = {value})",
                    name.trim_start_matches("sysctl.")
                ),
            );
        }
    }
    draft
}

/// 100 if something that both hosts offer is missing and limits, otherwise 0.
fn witness(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    Ok(if changed(view)?.is_some() { 100.0 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::names::LINK_MTU;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    fn offering(case: Case) -> Case {
        [Near, Far].into_iter().fold(case, |case, end| {
            let case = case.fact(end, TCP_WINDOW_SCALING, "1").fact(end, TCP_SACK, "1");
            case.fact(end, "route.device", "eth0")
        })
    }

    fn unscaled() -> Case {
        offering(Case::receive_window().goodput(12.4e6).tcp(|tcp, _| {
            tcp.options = Some(3);
            tcp.snd_wnd_bytes = Some(65_535);
        }))
    }

    fn unselective() -> Case {
        offering(Case::path_loss().goodput(1.8e6).retransmitted(0.1).tcp(|tcp, _| {
            tcp.options = Some(5);
            tcp.ca_state = Some(3);
        }))
    }

    fn clamped() -> Case {
        let case = Case::path_rate().without_links().goodput(444e6);
        offering(case.tcp(|tcp, _| tcp.snd_mss_bytes = Some(524)))
    }

    #[test]
    fn each_change_on_the_way_is_the_only_finding() {
        for case in [unscaled(), unselective(), clamped()] {
            let found = diagnose(&case.evidence()).findings;
            assert_eq!(found.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["middlebox"]);
            assert_eq!(found[0].end, Place::Path);
        }
        assert!(fires(&RULE, clamped()).predicted_bits_per_s.value().unwrap().0 > 470e6);
    }

    #[test]
    fn segments_of_half_the_first_window_are_as_large_as_they_can_be() {
        let loopback = |mss| {
            let goodput = 6e6 * mss as f64 / 524.0;
            let lossy = offering(Case::path_loss().goodput(goodput).retransmitted(0.002));
            let case = lossy.tcp(move |tcp, _| {
                (tcp.snd_mss_bytes, tcp.pmtu_bytes) = (Some(mss), Some(65_535));
            });
            case.fact(Near, LINK_MTU, 65_536u64).fact(Far, LINK_MTU, 65_536u64)
        };
        quiet(&RULE, loopback(32_741));
        fires(&RULE, loopback(16_000));
    }

    #[test]
    fn what_a_host_does_not_offer_is_its_own() {
        quiet(&RULE, unscaled().fact(Far, TCP_WINDOW_SCALING, "0"));
        quiet(&RULE, unselective().fact(Near, TCP_SACK, "0"));
        quiet(&RULE, clamped().fact(Far, ROUTE_ADVMSS, 536u64));
        quiet(&RULE, clamped().tcp(|tcp, _| tcp.pmtu_bytes = Some(576)));
    }

    #[test]
    fn options_that_are_missing_and_cost_nothing_are_quiet() {
        quiet(&RULE, offering(Case::healthy().tcp(|tcp, _| tcp.options = Some(1))));
    }

    #[test]
    fn cannot_tell_what_a_silent_peer_offers() {
        cannot_tell(&RULE, unscaled().without_far());
        cannot_tell(&RULE, Case::healthy_udp());
    }
}
