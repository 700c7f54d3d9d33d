//! # What it means
//! The receiving socket's buffer is too small for bursts of datagrams that arrive faster than they
//! are read.
//!
//! # Why it limits
//! A datagram that finds the buffer full is dropped, and nobody sends it again.
//!
//! # How it is seen
//! The socket itself dropped at least half of the lost datagrams, 0.5 % of all or more. The buffer
//! is too short if it holds less than 20 ms of what arrives, or if the reader waited for data in
//! between, so that it is fast enough on average.
//!
//! # What to try
//! A larger buffer: `--rcvbuf`, and `net.core.rmem_max` if the kernel allows no more.
//!
//! # When it is wrong
//! A reader that is slower than the sender fills any buffer. If the reader is paced or stopped, if
//! its CPU is full, or if a server's limit held it for as long as datagrams were lost, goodput
//! reports that cause. This one is then possible at most.
//!
//! # Source
//! net/ipv4/udp.c (`__udp_enqueue_schedule_skb`: dropped, and counted as `RcvbufErrors`, if
//! `sk_rmem_alloc` exceeds `sk_rcvbuf`); socket(7) (SO_RCVBUF, `rmem_max`).

use goodput_model::{BitRate, Change, Confidence, Finding, Known, Missing};

use crate::bounds::next_after;
use crate::change::of_plan;
use crate::cpu_bound::{cpu_bound, is_throttled, stopped_share};
use crate::finding::{Draft, percent, time};
use crate::names::RMEM_MAX;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{
    MAX_WAIT_SHARE_OF_SLOW_THREAD, MIN_CPU_SHARE_OF_WALL_TIME, MIN_HEAVY_LOSS_SHARE,
    MIN_LIMITING_TIME_SHARE, MIN_STOPPED_TIME_SHARE,
};
use crate::view::{View, positive};

/// The rule.
pub const RULE: Rule = Rule {
    id: "udp-receive-buffer",
    title: "The receive buffer overflows with datagrams",
    refines: &[parts::RECEIVE_WINDOW],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "datagrams_dropped_by_socket_percent",
    witness_words: ("datagrams dropped by the socket", " %"),
    source: include_str!("udp_receive_buffer.rs"),
};

/// Part of the lost datagrams that the socket must have dropped.
const MIN_DROPPED_BY_SOCKET_SHARE: f64 = 0.5;
/// A buffer that holds less than this of what arrives is short: a reader was measured to wait for a
/// CPU for some milliseconds on a busy host, seconds.
const MIN_BUFFERED_S: f64 = 0.02;
/// Memory that a datagram of 1472 bytes is charged for (`skb->truesize`), over its payload: measured
/// 2304 of a driver that gives each packet half a page.
const CHARGED_MEMORY_RATIO: f64 = 1.6;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    let dropped = side.socket_drops()?;
    let lost = match view.is_tcp() {
        true => return Ok(None),
        false => side.datagrams_lost()?,
    };
    let share = dropped_share(view)?;
    if share < MIN_HEAVY_LOSS_SHARE || dropped < MIN_DROPPED_BY_SOCKET_SHARE * lost {
        return Ok(None);
    }
    // No buffer holds what a reader leaves there to keep to a limit.
    if side.is_held_to_limits(view.plan().flows) {
        return Ok(None);
    }
    match confidence(view, share)? {
        Some(confidence) => found(view, share, confidence),
        None => Ok(None),
    }
}

/// Share of the datagrams that the socket dropped.
fn dropped_share(view: &View) -> Result<f64, Missing> {
    let side = &view.receiver;
    if view.is_tcp() {
        return Err(Missing::because("only UDP sockets drop like this"));
    }
    let lost = side.lost_share()?;
    let all = positive(side.datagrams_lost()?, "the number of datagrams lost");
    Ok(all.map_or(0.0, |all| lost * (side.socket_drops().unwrap_or(0.0) / all).min(1.0)))
}

/// How sure it is that the buffer, not the reader, is what falls short if the socket dropped `share` of the datagrams.
fn confidence(view: &View, share: f64) -> Result<Option<Confidence>, Missing> {
    let side = &view.receiver;
    let waits = side.blocked_share()? >= MAX_WAIT_SHARE_OF_SLOW_THREAD;
    let short = holds_s(view)? < MIN_BUFFERED_S;
    let paced = side.paced_share()? >= MIN_LIMITING_TIME_SHARE;
    // No buffer holds what arrives while the reader waits for an operator's limit.
    let held = side.held_to(view.plan().flows).ok().flatten();
    let held = held.is_some_and(|held| held.share >= share);
    let stopped = is_throttled(side) || stopped_share(side)? >= MIN_STOPPED_TIME_SHARE;
    let full = side.thread_cpu_share().is_ok_and(|cpu| cpu >= MIN_CPU_SHARE_OF_WALL_TIME)
        || cpu_bound(side)?.is_some_and(|bound| !bound.shared && !bound.crowded);
    Ok(match (short, waits) {
        _ if paced || stopped || held => None,
        (true, true) => Some(Confidence::Certain),
        (true, false) if !full => Some(Confidence::Likely),
        (false, true) => Some(Confidence::Likely),
        (true, false) => Some(Confidence::Possible),
        (false, false) => None,
    })
}

/// Bytes a second that arrived, dropped or not.
fn arriving(view: &View) -> Result<f64, Missing> {
    let kept = 1.0 - view.receiver.lost_share()?;
    positive(view.goodput()? / 8.0 / kept, "the rate that arrived")
}

/// How much of what arrives the buffer holds, seconds.
fn holds_s(view: &View) -> Result<f64, Missing> {
    let flows = view.receiver.flow_count()?;
    Ok(view.receiver.receive_buffer_bytes()? * flows / CHARGED_MEMORY_RATIO / arriving(view)?)
}

fn found(view: &View, share: f64, confidence: Confidence) -> Result<Option<Finding>, Missing> {
    let (side, place) = (&view.receiver, view.receiver.place());
    let holds = holds_s(view)?;
    let buffer = side.receive_buffer_bytes()?;
    let dropped = format!("the socket itself dropped {} of the datagrams", percent(share));
    let text =
        format!("the socket's buffer of {buffer:.0} bytes holds {} of what arrived", time(holds));
    let wanted = wanted_bytes(view)?;
    let most = side.count(RMEM_MAX).ok().map(|most| most as u64).filter(|most| *most < wanted);
    let draft = Draft::new(RULE.id, place, confidence, "the receiving socket's buffer")
        .share(share)
        .saw(place, RULE.witness_name, share * 100.0, dropped)
        .saw(place, "receive_buffer_s", holds, text)
        .saw_if(place, "reader_blocked_share", side.blocked_share(), |waits| {
            format!("the reader waited for data {} of the time", percent(waits))
        })
        .saw_if(place, "cpu_wait_share", side.cpu_wait_share(), |waits| {
            format!("the reader waited for a CPU {} of the time", percent(waits))
        })
        .predicted(predicted(view)?)
        .changes(larger(view, most.unwrap_or(wanted)));
    match most {
        Some(most) => draft
            .saw(
                place,
                RMEM_MAX,
                most as f64,
                format!("the kernel allows at most {most} bytes (rmem_max)"),
            )
            .command(
                place,
                format!("goodput settings set sysctl.net.core.rmem_max={wanted}"),
                "allows larger buffers",
            )
            .permanent("/etc/sysctl.d/90-goodput.conf", format!("net.core.rmem_max={wanted}")),
        None => draft,
    }
    .found()
}

/// What was sent, had all of it been read, or what the next limit leaves of it.
fn predicted(view: &View) -> Result<Known<BitRate>, Missing> {
    let offered = arriving(view)? * 8.0;
    let next = next_after(view, &[RULE.id, "path-rate"]);
    Ok(Known::Value(BitRate(next.value().map_or(offered, |next| next.0.min(offered)))))
}

/// A power of two, as buffer sizes are commonly written, yet at least four times the present.
fn wanted_bytes(view: &View) -> Result<u64, Missing> {
    let each =
        arriving(view)? * MIN_BUFFERED_S * CHARGED_MEMORY_RATIO / view.receiver.flow_count()?;
    let bytes = each.max(4.0 * view.receiver.receive_buffer_bytes()?);
    // The kernel takes a signed 32-bit number, and doubles it (socket(7)).
    Ok((bytes.min(f64::from(1 << 29)).ceil() as u64).next_power_of_two())
}

/// As much as is wanted and allowed, if that is more than now. The kernel doubles what is asked for.
fn larger(view: &View, bytes: u64) -> Option<Change> {
    let now = view.receiver.receive_buffer_bytes().ok()?;
    let present = view.plan().socket.rcvbuf_bytes.map(|bytes| bytes.0.to_string());
    let why = "holds more data while the reader waits for a CPU";
    (2.0 * bytes as f64 > now).then(|| of_plan("socket.rcvbuf", present, &bytes.to_string(), why))
}

/// Share of the datagrams that the receiving socket dropped, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(dropped_share(view)? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::Role;

    /// 800 Mbit/s read, a third of what arrived dropped by a socket of 1 MB that holds 4 ms.
    fn overflows() -> Case {
        Case::healthy_udp().lost(0.3).dropped(0.3)
    }

    #[test]
    fn fires_where_the_socket_dropped_them_and_the_reader_had_time() {
        let finding = fires(&RULE, overflows().without_links());
        assert_eq!(finding.confidence, Confidence::Certain);
        assert_eq!(finding.changes[0].as_argument(), "socket.rcvbuf=default,8388608");
        assert_eq!(finding.predicted_bits_per_s.value().unwrap().to_string(), "1.14 Gbit/s");
    }

    #[test]
    fn a_packet_of_many_datagrams_is_lost_as_one() {
        fires(&RULE, Case::healthy_udp().lost(0.3).dropped(0.3 / 45.0).joined(45));
        quiet(&RULE, Case::healthy_udp().lost(0.3).dropped(0.3 / 45.0));
    }

    #[test]
    fn names_the_limit_of_the_kernel() {
        let finding = fires(&RULE, overflows().fact(Far, RMEM_MAX, 212_992u64));
        assert!(finding.advice[0].contains("net.core.rmem_max=8388608"), "{finding:?}");
    }

    #[test]
    fn a_reader_that_is_too_slow_is_named_instead() {
        let full = fires(&RULE, overflows().reader(0.0, 0.0, 0.98));
        assert_eq!(full.confidence, Confidence::Possible);
        quiet(&RULE, overflows().reader(0.0, 0.9, 0.1));
        quiet(&RULE, overflows().reader(0.0, 0.0, 0.3));
        quiet(&RULE, overflows().reader(0.1, 0.0, 0.98).goodput(5e6));
        quiet(&RULE, overflows().grows(Far, "cgroup.throttled_us", 2_000_000));
    }

    #[test]
    fn a_reader_that_a_limit_held_as_long_lost_them_all() {
        quiet(&RULE, overflows().held_to(Far, Role::Receiver, 50e6, 0.3));
        fires(&RULE, overflows().held_to(Far, Role::Receiver, 50e6, 0.01).without_links());
    }

    #[test]
    fn what_got_lost_elsewhere_is_not_the_buffers() {
        quiet(&RULE, Case::healthy_udp().lost(0.3));
        quiet(&RULE, Case::healthy_udp().lost(0.3).dropped(0.1));
        quiet(&RULE, Case::healthy());
    }

    #[test]
    fn cannot_tell_without_the_far_end() {
        cannot_tell(&RULE, overflows().without_far());
    }
}
