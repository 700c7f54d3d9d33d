//! # What it means
//! The receiver's window is too small for the path.
//!
//! # Why it limits
//! At most one window can be in flight in each round trip: rate = window / round-trip time.
//!
//! # How it is seen
//! The kernel reported that the peer's window stopped the sender for at least half of the time. If it
//! did for less, and possibly for long enough to matter, the window possibly contributes. The
//! reader waited for data meanwhile, so the reader was not slow. Window / round-trip time is about
//! the goodput. If the sender reports nothing, this end's own window / round-trip time is the whole
//! goodput.
//!
//! # What to try
//! In this order: remove a fixed SO_RCVBUF, let the kernel tune the buffer
//! (`net.ipv4.tcp_moderate_rcvbuf`), raise the maximum of `net.ipv4.tcp_rmem`. A `window` metric on
//! the receiver's route and unscaled windows have rules of their own.
//!
//! # When it is wrong
//! A slow reader also closes the window; only the receiving end can see the difference. A queue on
//! the path that grows until the window is used up differs only in its round-trip time; it is left
//! to path-rate. On paths of microseconds the gain may be small: see the predicted goodput.
//!
//! # Source
//! net/ipv4/tcp_output.c (`TCP_CHRONO_RWND_LIMITED`); net/ipv4/tcp_input.c (`tcp_rcv_space_adjust`);
//! RFC 7323 section 1.1; tcp(7).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::{is_tuned, next_after};
use crate::change::{larger_rmem, of_host, of_plan};
use crate::closed_window::{ClosedWindow, WITNESS_NAME, set_by};
use crate::finding::{Draft, bytes, rate, time};
use crate::names::TCP_MODERATE_RCVBUF;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{LONG_PATH_S, MAX_WAIT_SHARE_OF_SLOW_THREAD};
use crate::view::{View, WINDOW_IS_ALL_RATIOS};

/// The rule.
pub const RULE: Rule = Rule {
    id: "receive-window",
    title: "The receiver's window is too small for the path",
    refines: &[parts::RECEIVE_WINDOW],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: WITNESS_NAME,
    witness_words: ("time stopped by the receive window", " %"),
    source: include_str!("receive_window.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    if view.is_sender_silent() {
        return seen_from_the_receiver(view);
    }
    let Some(window) = ClosedWindow::of(view)? else { return Ok(None) };
    window
        .draft(view, &RULE, view.receiver.place(), "the receive window")?
        .changes(change(view))
        .found()
}

/// If the sender reports nothing: this end's own window in each round trip is the whole goodput, and the reader is not slow.
fn seen_from_the_receiver(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    let (waits, allowed) = (side.blocked_share()?, side.own_window_rate()?);
    if waits < MAX_WAIT_SHARE_OF_SLOW_THREAD
        || !WINDOW_IS_ALL_RATIOS.contains(&(allowed / view.goodput()?))
    {
        return Ok(None);
    }
    let long = side.min_rtt_s()? >= LONG_PATH_S;
    let confidence = if long { Confidence::Likely } else { Confidence::Possible };
    let (own, window) = (side.place(), side.own_window_bytes()?);
    let product = format!(
        "window {} (tcp_info rcv_wnd) / round trip {} (rcv_rtt) = {}, which is the goodput",
        bytes(window),
        time(side.arrival_rtt_s()?),
        rate(allowed)
    );
    Draft::new(RULE.id, own, confidence, "the receive window")
        .saw(own, "tcp_info.rcv_wnd_bytes", window, product)
        .saw(own, "reader_blocked_share", waits, {
            format!("{}: it is not slow", side.waits_text(waits))
        })
        .saw_if(own, "socket.rcvbuf_bytes", side.receive_buffer_bytes(), |room| {
            format!("the socket's receive buffer is {}{}", bytes(room), set_by(view))
        })
        .predicted(next_after(view, &[RULE.id]))
        .changes(change(view))
        .found()
}

/// The one thing that keeps the window small. What a rule of its own knows is not among them.
fn change(view: &View) -> Option<Change> {
    if let Some(asked) = view.plan().socket.rcvbuf_bytes {
        let why = "let the kernel tune the buffer";
        return Some(of_plan("socket.rcvbuf", Some(asked.0.to_string()), "default", why));
    }
    if !is_tuned(&view.receiver) {
        let values = (Some("0".into()), "1".into());
        let why = "let the kernel tune the buffer";
        return Some(of_host(&view.receiver, TCP_MODERATE_RCVBUF, None, values, why));
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
    use goodput_model::{Bytes, Place};

    fn proposed(case: Case) -> String {
        fires(&RULE, case).changes[0].as_argument()
    }

    #[test]
    fn a_window_that_holds_part_of_the_time_contributes_whatever_it_allows_at_last() {
        let part = |share: f64| {
            let case = Case::healthy().shares(1.0, share, 0.0);
            case.tcp(move |tcp, _| tcp.snd_wnd_bytes = Some(8 << 20))
        };
        assert_eq!(fires(&RULE, part(0.35)).confidence, Confidence::Possible);
        quiet(&RULE, part(0.03));
    }

    #[test]
    fn of_a_silent_server_this_ends_window_shows_it() {
        // 42.5 ms at 800 Mbit/s hold 4.25 MB.
        let case = |window: u64| {
            let case = Case::healthy().plan(|plan| plan.socket.rcvbuf_bytes = Some(Bytes(8 << 20)));
            case.silent_sender(move |tcp, _| tcp.rcv_wnd_bytes = Some(window))
        };
        let finding = fires(&RULE, case(4_300_000));
        assert_eq!(finding.confidence, Confidence::Likely);
        assert_eq!(finding.changes[0].as_argument(), "socket.rcvbuf=8388608,default");
        quiet(&RULE, case(8_500_000));
        quiet(&RULE, case(4_300_000).reader(0.05, 0.0, 0.9));
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
        let never_grows = Case::receive_window().fact(Far, TCP_MODERATE_RCVBUF, "0");
        assert_eq!(proposed(never_grows), "far:sysctl.net.ipv4.tcp_moderate_rcvbuf=0,1");
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
