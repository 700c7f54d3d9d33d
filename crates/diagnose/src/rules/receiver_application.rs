//! # What it means
//! The receiving program does not read fast enough.
//!
//! # Why it limits
//! Unread data stays in the receive buffer. When the buffer is full, TCP closes the window and the
//! sender stops. With UDP, further datagrams are dropped.
//!
//! # How it is seen
//! The reader almost never waits for data, and data waits for the reader: the receive queue is at
//! least a quarter full, or the window stops the sender half of the time. Neither the CPU nor a
//! quota keeps the reader from running. Or the reader neither waited nor ran for 30 % of the time,
//! though its host had CPU left.
//!
//! # What to try
//! A faster program or more threads in it. A larger buffer only delays the stop.
//!
//! # When it is wrong
//! An autotuned buffer can absorb a stall of seconds, so a short test may not see it at all. A server that keeps
//! to a rate limit and does not report it (`--private`) looks the same; its note at the beginning names the limit.
//!
//! # Source
//! RFC 9293 section 3.8.6 (managing the window); net/ipv4/udp.c (`__udp_enqueue_schedule_skb`).

use goodput_model::{Confidence, Finding, Missing};

use crate::account::{held_share, reader_is_behind};
use crate::bounds::next_after;
use crate::cpu_bound::{cpu_bound, is_throttled, stopped, stopped_share};
use crate::finding::{Draft, bytes, percent};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MAX_WAIT_SHARE_OF_SLOW_THREAD, MIN_LIMITING_TIME_SHARE};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "receiver-application",
    title: "The receiving program reads too slowly",
    refines: &[parts::RECEIVING_PROGRAM],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "reader_not_waiting_percent",
    witness_words: ("time in which the reader was not waiting", " %"),
    source: include_str!("receiver_application.rs"),
};

/// Share of the receive buffer that waits for the reader from which the reader is behind.
const MIN_UNREAD_BUFFER_SHARE: f64 = 0.25;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    // If nothing arrived, a reader that does not read is no cause.
    view.goodput()?;
    let side = &view.receiver;
    let blocked = match side.blocked_share() {
        Ok(blocked) => blocked,
        Err(why) => return seen_from_the_sender(view, why),
    };
    if let Ok(Some(confidence)) = stopped(side) {
        return draft(view, blocked, confidence).share(stopped_share(side)?).found();
    }
    if blocked >= MAX_WAIT_SHARE_OF_SLOW_THREAD {
        return Ok(None);
    }
    // To wait for an operator's limit is not the program's fault.
    let held = side.held_to(view.plan().flows).ok().flatten();
    if held.is_some_and(|held| held.share >= MIN_LIMITING_TIME_SHARE) {
        return Ok(None);
    }
    let paced = side.paced_share()?;
    if paced < MIN_LIMITING_TIME_SHARE
        && (is_throttled(side) || cpu_bound(side)?.is_some() || !data_waits(view)?)
    {
        return Ok(None);
    }
    let sure = paced >= MIN_LIMITING_TIME_SHARE || side.throttled_share().is_ok();
    let confidence = if sure { Confidence::Likely } else { Confidence::Possible };
    draft(view, blocked, confidence).share(1.0 - blocked).found()
}

/// If the receiver reports nothing: the window that holds the sender falls and rises with what waits
/// for the reader. What keeps the reader from reading can't be seen from here.
fn seen_from_the_sender(view: &View, why: Missing) -> Result<Option<Finding>, Missing> {
    let (side, place) = (&view.sender, view.sender.place());
    let closed = held_share(view, &[parts::RECEIVE_WINDOW]);
    let Some(share) = closed.ok().filter(|share| *share >= MIN_LIMITING_TIME_SHARE) else {
        return Err(why);
    };
    if !reader_is_behind(view) {
        return Err(why);
    }
    let window = side.peer_window_bytes()?;
    Draft::new(
        RULE.id,
        view.receiver.place(),
        Confidence::Possible,
        "the receiving program reads too slowly",
    )
    .share(share)
    .saw(
        place,
        "tcp_info.snd_wnd_bytes",
        window,
        format!(
            "the peer's window (median {}) keeps falling and rising, as with a slow reader (tcp_info snd_wnd)",
            bytes(window)
        ),
    )
    .saw_closed_window(side)
    .predicted(next_after(view, &[RULE.id, "receive-window"]))
    .advice("look at the receiving program: its CPU, its quota, what it does between reads")
    .found()
}

fn draft(view: &View, blocked: f64, confidence: Confidence) -> Draft {
    let (side, place) = (&view.receiver, view.receiver.place());
    let text = side.waits_text(blocked);
    Draft::new(RULE.id, place, confidence, "the receiving program reads too slowly")
        .saw(place, RULE.witness_name, (1.0 - blocked) * 100.0, text)
        .saw_if(place, "reader_stopped_share", stopped_share(side), |share| {
            format!("the reader neither waited nor ran {} of the time", percent(share))
        })
        .saw_if(place, "receive_queue_share", side.receive_queue_share(), |share| {
            format!("{} of the receive buffer waited for the reader", percent(share))
        })
        .saw_thread_cpu(side)
        .saw_closed_window(&view.sender)
        .predicted(next_after(view, &[RULE.id, "receive-window"]))
        .advice("find what the program does between reads; let more threads read")
}

/// Whether data waits for the reader: seen at the sender's window or in the receive queue.
fn data_waits(view: &View) -> Result<bool, Missing> {
    let window = view.sender.rwnd_limited_share().map(|share| share >= MIN_LIMITING_TIME_SHARE);
    let queue = view.receiver.receive_queue_share().map(|share| share >= MIN_UNREAD_BUFFER_SHARE);
    match (window, queue) {
        (Ok(true), _) | (_, Ok(true)) => Ok(true),
        (Ok(_), Ok(_)) => Ok(false),
        (Err(why), _) | (_, Err(why)) => Err(why),
    }
}

/// Share of the time in which the reader did not wait for data, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok((1.0 - view.receiver.blocked_share()?) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::{Place, Role};

    fn slow_reader() -> Case {
        Case::healthy().shares(1.0, 0.98, 0.0).reader(0.02, 0.0, 0.1).queued(900_000)
    }

    #[test]
    fn fires_on_a_slow_reader() {
        let finding = fires(&RULE, slow_reader());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Likely));
    }

    #[test]
    fn a_reader_that_is_stopped_now_and_then_is_slow() {
        // SIGSTOP for 200 of 250 ms: it waited 41 % of the time and ran 10 %, as measured.
        let case = || Case::healthy().without_links().goodput(9.6e9).reader(0.41, 0.0, 0.1);
        assert_eq!(fires(&RULE, case()).confidence, Confidence::Likely);
        let crowded = || case().cpu(Far, 0.2, 0.99);
        assert_eq!(fires(&RULE, crowded()).confidence, Confidence::Possible);
        quiet(&RULE, crowded().reader(0.3, 0.0, 0.35));
    }

    #[test]
    fn a_process_that_is_stopped_while_its_reader_waits_is_slow() {
        let case = || Case::healthy().without_links().reader(0.85, 0.0, 0.1).stopped();
        assert_eq!(fires(&RULE, case().waiting(0.05, 0.05)).confidence, Confidence::Likely);
        quiet(&RULE, case().waiting(0.05, 0.7));
    }

    #[test]
    fn a_reader_that_waits_or_works_or_is_throttled_is_not_slow() {
        quiet(&RULE, Case::receive_window());
        quiet(&RULE, slow_reader().reader(0.02, 0.0, 0.95));
        quiet(&RULE, slow_reader().grows(Far, "cgroup.throttled_us", 2_000_000));
    }

    #[test]
    fn a_reader_that_a_server_s_limit_holds_is_not_slow() {
        let paced = || Case::healthy_udp().reader(0.0, 0.99, 0.01);
        fires(&RULE, paced());
        quiet(&RULE, paced().held_to(Far, Role::Receiver, 50e6, 0.98));
    }

    #[test]
    fn a_window_that_falls_and_rises_shows_it_to_the_sender_alone() {
        let case = Case::receive_window().without_far().watched();
        let falls = |tcp: &mut goodput_model::TcpInfo, n| {
            tcp.snd_wnd_bytes = Some(131_072 - 8_000 * (n % 3));
        };
        assert_eq!(fires(&RULE, case.tcp(falls)).confidence, Confidence::Possible);
        cannot_tell(&RULE, Case::receive_window().without_far());
    }

    #[test]
    fn cannot_tell_without_the_far_end() {
        assert_eq!(cannot_tell(&RULE, slow_reader().without_far()), "the peer does not report");
    }
}
