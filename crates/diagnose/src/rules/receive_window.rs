//! # What it means
//! The window that the receiver offers is too small for the path.
//!
//! # Why it limits
//! No more than one window can be under way in each round trip: rate = window / round-trip time.
//!
//! # How it is seen
//! The kernel counted the sender as stopped by the peer's window for at least half of the time, while
//! the reader waited for data, so it was not slow; window / round-trip time is about the goodput.
//!
//! # What to try
//! In this order: drop a fixed SO_RCVBUF, drop a `window` metric on the receiver's route, turn
//! window scaling on, raise the maximum of `net.ipv4.tcp_rmem`.
//!
//! # When it is wrong
//! A slow reader closes the window too; only the receiving end can tell. A queue on the path that
//! grows until the window is used up looks the same but for its round-trip time; it is left to
//! path-rate. On paths of microseconds the gain may be small: see what is predicted.
//!
//! # Source
//! net/ipv4/tcp_output.c (`TCP_CHRONO_RWND_LIMITED`); RFC 7323 sections 1.1 and 2; tcp(7);
//! ip-route(8) (`window`).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::{larger_rmem, of_host, of_plan};
use crate::finding::{Draft, bytes, percent, rate, time};
use crate::names::{ROUTE_DESTINATION, ROUTE_WINDOW, TCP_RMEM, TCP_WINDOW_SCALING};
use crate::rule::{Rule, Stage};
use crate::split::split;
use crate::thresholds::{BEHIND, HOLDS};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "receive-window",
    title: "The receiver's window is too small for the path",
    stage: Stage::Window,
    explains: &[],
    check,
    witness,
    witness_name: "rwnd_limited_percent",
    source: include_str!("receive_window.rs"),
};

/// How near window / round-trip time must come to the goodput to be the whole explanation.
const EXPLAINED: std::ops::Range<f64> = 0.7..1.4;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    let share = split(view)?.receive_window_percent / 100.0;
    if share < HOLDS {
        return Ok(None);
    }
    let confidence = match view.receiver.blocked_share() {
        Ok(waits) if waits < BEHIND => return Ok(None),
        Ok(_) if explains(view)? => Confidence::Certain,
        Ok(_) => Confidence::Likely,
        Err(_) if view.sender.peer_window_is_steady()? => Confidence::Possible,
        Err(why) => return Err(why),
    };
    draft(view, share, confidence)?.changes(change(view)).found()
}

/// Goodput that the window allows in each round trip, over all flows.
fn allowed(view: &View) -> Result<f64, Missing> {
    let side = &view.sender;
    Ok(side.peer_window_bytes()? * 8.0 / side.rtt_s()? * side.flow_count()?)
}

fn explains(view: &View) -> Result<bool, Missing> {
    Ok(EXPLAINED.contains(&(allowed(view)? / view.goodput()?)))
}

fn draft(view: &View, share: f64, confidence: Confidence) -> Result<Draft, Missing> {
    let (sender, receiver) = (view.sender.place(), view.receiver.place());
    let (window, rtt) = (view.sender.peer_window_bytes()?, view.sender.rtt_s()?);
    let counted = format!(
        "the peer's window stopped the sender {} of the time (tcp_info rwnd_limited)",
        percent(share)
    );
    let product = format!(
        "window {} (tcp_info snd_wnd) / round trip {} = {}",
        bytes(window),
        time(rtt),
        rate(window * 8.0 / rtt)
    );
    let draft = Draft::new(RULE.id, receiver, confidence, "the receive window")
        .share(share)
        .saw(sender, RULE.witness_name, share * 100.0, counted)
        .saw(sender, "tcp_info.snd_wnd_bytes", window, product)
        .saw_if(receiver, "reader_blocked_share", view.receiver.blocked_share(), |waits| {
            format!("the reader waited for data {} of the time: it is not slow", percent(waits))
        })
        .saw_if(receiver, "socket.rcvbuf_bytes", view.receiver.receive_buffer_bytes(), |room| {
            format!("the socket's receive buffer is {}{}", bytes(room), set_by(view))
        })
        .predicted(next_after(view, &[RULE.id]));
    Ok(match route_window(view) {
        Some((_, clamp)) => draft.saw(
            receiver,
            ROUTE_WINDOW,
            clamp,
            format!("the route to the sender has `window {clamp:.0}`"),
        ),
        None => draft,
    })
}

fn set_by(view: &View) -> String {
    match view.plan().socket.rcvbuf_bytes {
        Some(asked) => format!(", set by SO_RCVBUF ({})", asked.0),
        None => view
            .receiver
            .words(TCP_RMEM)
            .map(|rmem| format!("; tcp_rmem {rmem}"))
            .unwrap_or_default(),
    }
}

/// Destination and window of the receiver's route, where it has one.
fn route_window<'a>(view: &View<'a>) -> Option<(Option<&'a str>, f64)> {
    let window = view.receiver.count(ROUTE_WINDOW).ok().filter(|window| *window > 0.0)?;
    Some((view.receiver.text(ROUTE_DESTINATION).ok(), window))
}

/// The one thing that holds the window down, the most particular first.
fn change(view: &View) -> Option<Change> {
    let free = "default".to_string();
    if let Some(asked) = view.plan().socket.rcvbuf_bytes {
        let why = "let the kernel tune the buffer";
        return Some(of_plan("socket.rcvbuf", Some(asked.0.to_string()), "default", why));
    }
    if let Some((destination, window)) = route_window(view) {
        let values = (Some(format!("{window:.0}")), free);
        let why = "the metric bounds the window";
        return Some(of_host(&view.receiver, "route.window", destination, values, why));
    }
    let unscaled = [&view.receiver, &view.sender]
        .into_iter()
        .find(|side| side.words(TCP_WINDOW_SCALING).as_deref() == Some("0"));
    if let Some(side) = unscaled {
        let values = (Some("0".into()), "1".into());
        let why = "without scaling no window exceeds 64 KiB";
        return Some(of_host(side, TCP_WINDOW_SCALING, None, values, why));
    }
    larger_rmem(view)
}

/// Share of the sender's time that the peer's window held, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(view.sender.rwnd_limited_share()? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::Place;

    fn proposed(case: Case) -> String {
        fires(&RULE, case).changes[0].as_argument()
    }

    #[test]
    fn fires_and_raises_the_maximum() {
        let finding = fires(&RULE, Case::receive_window());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
        assert_eq!(
            finding.changes[0].as_argument(),
            "far:sysctl.net.ipv4.tcp_rmem=4096 131072 262144,4096 131072 33554432"
        );
    }

    #[test]
    fn what_holds_the_window_down_is_what_is_changed() {
        let fixed = Case::receive_window()
            .plan(|plan| plan.socket.rcvbuf_bytes = Some(goodput_model::Bytes(65_536)));
        assert_eq!(proposed(fixed), "socket.rcvbuf=65536,default");
        let route = Case::receive_window().fact(Far, ROUTE_WINDOW, 60_000u64).fact(
            Far,
            ROUTE_DESTINATION,
            "192.0.2.0/24",
        );
        assert_eq!(proposed(route), "far:route.window@192.0.2.0/24=60000,default");
        let unscaled = Case::receive_window().fact(Far, TCP_WINDOW_SCALING, "0");
        assert_eq!(proposed(unscaled), "far:sysctl.net.ipv4.tcp_window_scaling=0,1");
    }

    #[test]
    fn trap_4_the_gain_is_predicted_and_small_on_a_short_path() {
        let case = Case::receive_window().goodput(13e9).without_links().reader(0.4, 0.0, 0.55);
        let case = case.writer(0.3, 0.0, 0.7).tcp(|tcp, _| {
            tcp.rtt_us = Some(22);
            tcp.min_rtt_us = Some(18);
            tcp.snd_wnd_bytes = Some(32_768);
        });
        let predicted = fires(&RULE, case).predicted_bits_per_s.value().unwrap().0;
        assert!(predicted < 2.0 * 13e9, "{predicted}");
    }

    #[test]
    fn a_slow_reader_is_not_a_small_window() {
        quiet(&RULE, Case::receive_window().reader(0.02, 0.0, 0.1));
        quiet(&RULE, Case::path_rate());
    }

    #[test]
    fn without_the_far_end_a_steady_window_is_possible_and_another_undecided() {
        let finding = fires(&RULE, Case::receive_window().without_far());
        assert_eq!(finding.confidence, Confidence::Possible);
        let shrinking = Case::receive_window()
            .tcp(|tcp, n| tcp.snd_wnd_bytes = Some(if n % 3 == 0 { 1000 } else { 131_072 }));
        assert_eq!(cannot_tell(&RULE, shrinking.without_far()), "the peer does not report");
    }

    #[test]
    fn cannot_tell_for_datagrams() {
        assert_eq!(cannot_tell(&RULE, Case::healthy_udp()), "only TCP has it");
    }
}
