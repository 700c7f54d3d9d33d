//! # What it means
//! One of the two hosts does not offer window scaling, so neither may use it.
//!
//! # Why it limits
//! The window field of a TCP segment has 16 bits. Without scaling, at most 65535 bytes can be in
//! flight in each round trip.
//!
//! # How it is seen
//! The receive window limits, as for receive-window. The connection runs without the option
//! (tcp_info options), and the window is as large as it can be without it. One host has
//! `net.ipv4.tcp_window_scaling` = 0.
//!
//! # What to try
//! `net.ipv4.tcp_window_scaling` = 1 at that host.
//!
//! # When it is wrong
//! If both hosts offer the option and the connection runs without it, something on the path removes
//! it; that is left to middlebox. A still smaller window has another cause. On a path of
//! microseconds 64 KiB are enough.
//!
//! # Source
//! RFC 7323 section 2; tcp(7).

use goodput_model::{Confidence, Finding, Missing};

use crate::change::of_host;
use crate::closed_window::{ClosedWindow, MAX_UNSCALED_WINDOW_BYTES};
use crate::finding::bytes;
use crate::names::TCP_WINDOW_SCALING;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Side, TcpOption, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "window-scaling-off",
    title: "A host does not offer window scaling",
    refines: &[parts::RECEIVE_WINDOW],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "unscaled_percent",
    witness_words: ("time stopped by a window without scaling", " %"),
    source: include_str!("window_scaling_off.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(window) = ClosedWindow::unscaled(view)? else { return Ok(None) };
    let (side, confidence) = match culprit(view) {
        Some(side) => (side, window.confidence),
        // The end that can't be asked, because the other one offers it.
        None => {
            match view.sides().into_iter().find(|side| side.text(TCP_WINDOW_SCALING).is_err()) {
                Some(side) => (side, window.confidence.min(Confidence::Likely)),
                None => return Ok(None),
            }
        }
    };
    let window = ClosedWindow { confidence, ..window };
    let summary = "unscaled windows";
    let draft = window.draft(view, &RULE, side.place(), summary)?.saw(
        side.place(),
        "unscaled_max_bytes",
        MAX_UNSCALED_WINDOW_BYTES,
        format!(
            "the connection runs without window scaling (tcp_info options): no window can exceed {}",
            bytes(MAX_UNSCALED_WINDOW_BYTES)
        ),
    );
    if culprit(view).is_none() {
        let ask = "check if that host offers window scaling: sysctl net.ipv4.tcp_window_scaling";
        return draft.advice(ask).found();
    }
    let values = (Some("0".into()), "1".into());
    let why = "without scaling no window exceeds 64 KiB";
    draft.changes([of_host(side, TCP_WINDOW_SCALING, None, values, why)]).found()
}

/// The host that does not offer it.
fn culprit<'v, 'a>(view: &'v View<'a>) -> Option<&'v Side<'a>> {
    let off = |side: &&Side| side.words(TCP_WINDOW_SCALING).as_deref() == Some("0");
    [&view.receiver, &view.sender].into_iter().find(off)
}

/// Share of the time that the window held the sender while it was not scaled, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let held = view.sender.rwnd_limited_share()? * 100.0;
    let scaled = view.sender.has_option(TcpOption::WindowScale)?;
    Ok(if scaled { 0.0 } else { held })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};
    use goodput_model::Place;

    fn unscaled() -> Case {
        let case = Case::receive_window().goodput(12.4e6).tcp(|tcp, _| {
            tcp.options = Some(3);
            tcp.snd_wnd_bytes = Some(65_535);
        });
        case.fact(Far, TCP_WINDOW_SCALING, "1").fact(Near, TCP_WINDOW_SCALING, "1")
    }

    #[test]
    fn the_host_that_does_not_offer_it_is_named() {
        let finding = fires(&RULE, unscaled().fact(Far, TCP_WINDOW_SCALING, "0"));
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
        let change = finding.changes[0].as_argument();
        assert_eq!(change, "far:sysctl.net.ipv4.tcp_window_scaling=0,1");
        let finding = fires(&RULE, unscaled().fact(Near, TCP_WINDOW_SCALING, "0"));
        assert_eq!(finding.end, Place::Near);
    }

    #[test]
    fn it_explains_the_window_at_whichever_end() {
        for end in [Near, Far] {
            let case = unscaled().fact(end, TCP_WINDOW_SCALING, "0");
            let found: Vec<_> =
                diagnose(&case.evidence()).findings.into_iter().map(|f| f.rule).collect();
            assert_eq!(found, ["window-scaling-off"]);
        }
    }

    #[test]
    fn a_scaled_or_smaller_window_and_one_that_does_not_limit_are_others() {
        let off = || unscaled().fact(Far, TCP_WINDOW_SCALING, "0");
        quiet(&RULE, off().tcp(|tcp, _| tcp.options = Some(7)));
        quiet(&RULE, off().tcp(|tcp, _| tcp.snd_wnd_bytes = Some(30_000)));
        let unfilled = off().tcp(|tcp, _| {
            tcp.unacked_segments = Some(10);
            tcp.pacing_rate_bytes_per_s = Some(1_000_000);
        });
        quiet(&RULE, unfilled.shares(1.0, 0.0, 0.0).goodput(800e6));
        // Both offer it: something on the path takes it away.
        quiet(&RULE, unscaled());
    }

    #[test]
    fn a_silent_peer_is_asked_to_look() {
        let finding = fires(&RULE, unscaled().without_far());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Possible));
        assert!(finding.changes.is_empty() && finding.advice.len() == 1);
    }

    #[test]
    fn cannot_tell_without_the_window() {
        cannot_tell(&RULE, unscaled().tcp(|tcp, _| tcp.rwnd_limited_us = None));
    }
}
