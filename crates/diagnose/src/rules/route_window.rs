//! # What it means
//! The receiver's route to the sender has a `window` metric, which keeps the receive window small.
//!
//! # Why it limits
//! At most one window can be in flight in each round trip: rate = window / round-trip time.
//!
//! # How it is seen
//! The receive window limits, as for receive-window, the route has `window N`, and the window is as
//! large as N allows. Today's kernels use N only to choose the window scale, 2^max(0, log2(N) -
//! 15), so the window may grow to 65535 × the scale. Older kernels clamp the window to N.
//!
//! # What to try
//! Remove the metric from the route.
//!
//! # When it is wrong
//! If the window stays below what the metric allows, or the buffers would not give a larger scale
//! either, something else keeps the window small, and receive-window says so.
//!
//! # Source
//! ip-route(8) (`window`); net/ipv4/tcp_output.c (`tcp_select_initial_window`).

use goodput_model::{Finding, Missing};

use crate::bounds::largest_of;
use crate::change::of_host;
use crate::closed_window::{ClosedWindow, MAX_UNSCALED_WINDOW_BYTES};
use crate::finding::bytes;
use crate::names::{ROUTE_DESTINATION, ROUTE_WINDOW, TCP_RMEM};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "route-window",
    title: "The receiver's route keeps the window small",
    refines: &[parts::RECEIVE_WINDOW],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "rwnd_limited_percent",
    witness_words: ("time stopped by the receive window", " %"),
    source: include_str!("route_window.rs"),
};

/// The largest shift of the window scale (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE_SHIFT: u32 = 14;
/// How near the window must be to what the metric allows. Measured: 0.99 and more.
const AT_WINDOW_RATIOS: std::ops::Range<f64> = 0.7..1.1;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(window) = ClosedWindow::of(view)? else { return Ok(None) };
    let metric = view.receiver.count(ROUTE_WINDOW).ok().filter(|window| *window > 0.0);
    let Some(metric) = metric else { return Ok(None) };
    let Some(allowed) = allowed(view, metric)? else { return Ok(None) };
    let place = view.receiver.place();
    let destination = view.receiver.text(ROUTE_DESTINATION).ok();
    let values = (Some(format!("{metric:.0}")), "default".into());
    let why = "the metric bounds the window";
    window
        .draft(view, &RULE, place, "the `window` metric of a route")?
        .saw(
            place,
            ROUTE_WINDOW,
            metric,
            format!(
                "the route to the sender has `window {metric:.0}`, which allows {}",
                bytes(allowed)
            ),
        )
        .changes([of_host(&view.receiver, ROUTE_WINDOW, destination, values, why)])
        .found()
}

/// The window that the metric allows, if the window stands there.
fn allowed(view: &View, metric: f64) -> Result<Option<f64>, Missing> {
    let window = view.sender.peer_window_bytes()?;
    let stands_at = |allowed: f64| AT_WINDOW_RATIOS.contains(&(window / allowed));
    let scale = scale_for(metric);
    let by_scale = MAX_UNSCALED_WINDOW_BYTES * f64::from(1_u32 << scale);
    let chose_scale = view.sender.peer_window_scale()? == scale
        && largest_of(&view.receiver, TCP_RMEM).is_ok_and(|room| scale_for(room) > scale);
    Ok(match () {
        () if chose_scale && stands_at(by_scale) => Some(by_scale),
        () if stands_at(metric) => Some(metric),
        () => None,
    })
}

/// The shift that the kernel offers for windows of up to `space` bytes: `ilog2(space) - 15`, from 0
/// to 14.
fn scale_for(space: f64) -> u32 {
    (space.max(1.0) as u64).ilog2().saturating_sub(15).min(MAX_WINDOW_SCALE_SHIFT)
}

/// Share of the time that the window held the sender while the route had the metric, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let held = view.sender.rwnd_limited_share()? * 100.0;
    Ok(if view.receiver.count(ROUTE_WINDOW).is_ok_and(|w| w > 0.0) { held } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::{Confidence, Place};

    /// `window` on the route, the window it leads to with a scale, at 42 ms.
    fn routed(metric: u64, window: u64, scale: u64) -> Case {
        let case =
            Case::receive_window().goodput(window as f64 * 8.0 / 0.0425).tcp(move |tcp, _| {
                tcp.snd_wnd_bytes = Some(window);
                tcp.snd_wscale = Some(scale);
            });
        case.fact(Far, ROUTE_WINDOW, metric).fact(Far, ROUTE_DESTINATION, "192.0.2.0/24").fact(
            Far,
            TCP_RMEM,
            "4096 131072 33554432",
        )
    }

    #[test]
    fn the_scale_that_the_metric_chose_bounds_the_window() {
        // As measured on 6.18.
        for (metric, window, scale) in
            [(20_000, 65_535, 0), (100_000, 131_070, 1), (400_000, 524_280, 3)]
        {
            let finding = fires(&RULE, routed(metric, window, scale));
            assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
            let change = finding.changes[0].as_argument();
            assert_eq!(change, format!("far:route.window@192.0.2.0/24={metric},default"));
        }
    }

    #[test]
    fn older_kernels_clamp_the_window_to_the_metric() {
        fires(&RULE, routed(20_000, 20_000, 10));
    }

    #[test]
    fn it_explains_the_window() {
        let found = diagnose(&routed(20_000, 65_535, 0).evidence()).findings;
        assert_eq!(found.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["route-window"]);
    }

    #[test]
    fn a_window_that_the_metric_does_not_hold_is_left_to_receive_window() {
        quiet(&RULE, routed(10_000_000, 131_072, 8));
        quiet(&RULE, routed(20_000, 32_768, 0));
        let unfilled = routed(20_000, 65_535, 0).tcp(|tcp, _| {
            tcp.unacked_segments = Some(10);
            tcp.pacing_rate_bytes_per_s = Some(1_000_000);
        });
        quiet(&RULE, unfilled.shares(1.0, 0.0, 0.0).goodput(800e6));
        quiet(&RULE, Case::receive_window());
    }

    #[test]
    fn cannot_tell_without_the_window() {
        cannot_tell(&RULE, routed(20_000, 65_535, 0).tcp(|tcp, _| tcp.snd_wnd_bytes = None));
    }
}
