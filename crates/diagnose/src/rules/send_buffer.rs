//! # What it means
//! The sender's socket can't hold enough data for the path.
//!
//! # Why it limits
//! Sent data stays in the buffer until it is acknowledged. At most one buffer can be in flight in
//! each round trip: rate = buffer / round-trip time.
//!
//! # How it is seen
//! The writer waited for room while the kernel had nothing left to send, and neither the congestion
//! window nor the peer's window was full. The kernel's own counter, `sndbuf_limited`, may stay near
//! 0.
//!
//! # What to try
//! Remove a fixed SO_SNDBUF, which switches autotuning off. Otherwise raise the maximum of
//! `net.ipv4.tcp_wmem`.
//!
//! # When it is wrong
//! A slow reader also fills the buffer, so its rules come first. So does a deep queue on the path,
//! which shows in the round-trip time.
//!
//! # Source
//! net/ipv4/tcp.c (`tcp_sendmsg_locked`), net/ipv4/tcp_output.c (`TCP_CHRONO_SNDBUF_LIMITED`);
//! tcp(7); socket(7).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::account::{HeldShare, held, held_share};
use crate::bounds::{largest_of, next_after};
use crate::change::{larger_wmem, of_plan};
use crate::finding::{Draft, bytes, percent, rate, time};
use crate::low_water::may_hold;
use crate::names::TCP_WMEM;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{LONG_PATH_S, MAX_WAIT_SHARE_OF_SLOW_THREAD, MIN_LIMITING_TIME_SHARE};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "send-buffer",
    title: "The sender's socket buffer is too small for the path",
    refines: &[parts::SEND_BUFFER],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "send_buffer_percent",
    witness_words: ("time stopped by the send buffer", " %"),
    source: include_str!("send_buffer.rs"),
};

/// Share of the send memory in use from which the buffer is full.
const MIN_SEND_MEMORY_SHARE: f64 = 0.8;
/// Goodput that the buffer allows over the measured, from which something else holds what fills it. Its
/// bookkeeping was measured to take up to half of it.
const MIN_BUFFER_RATE_RATIO: f64 = 3.0;
/// Share of the largest buffer from which one that tunes itself is as large as it gets.
const MIN_SHARE_OF_LARGEST_BUFFER: f64 = 0.9;

/// Rate that a contributing buffer would allow, over the goodput or the other way round, if it took little
/// of the time.
const MAX_CONTRIBUTING_RATE_RATIO: f64 = 1.6;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    // If nothing arrives, a full buffer is a consequence.
    view.goodput()?;
    let held = held(view, RULE.refines)?;
    let holds = held.share() >= MIN_LIMITING_TIME_SHARE
        && allowed(view)? < MIN_BUFFER_RATE_RATIO * view.goodput()?;
    if !holds && !contributes(view, held)? || view.sender.blocked_share()? < MIN_LIMITING_TIME_SHARE
    {
        return Ok(None);
    }
    let reader = view.receiver.blocked_share();
    if reader.as_ref().is_ok_and(|waits| *waits < MAX_WAIT_SHARE_OF_SLOW_THREAD) {
        return Ok(None);
    }
    let full = view.sender.send_buffer_fill().is_ok_and(|fill| fill >= MIN_SEND_MEMORY_SHARE);
    let confidence = match (full, reader.is_ok()) {
        _ if !holds || may_hold(view).unwrap_or(false) => Confidence::Possible,
        (true, true) => Confidence::Certain,
        (false, false) => Confidence::Possible,
        _ => Confidence::Likely,
    };
    let draft = draft(view, held, confidence);
    if program_fixed_it(view) {
        return draft
            .advice(
                "remove SO_SNDBUF from the program (it switches autotuning off), or set a larger one",
            )
            .found();
    }
    draft.changes(change(view)).found()
}

/// Whether the buffer holds the sender beside something else: it would allow about what went through. If it would allow far
/// less, a queue has lengthened the round trip.
fn contributes(view: &View, held: HeldShare) -> Result<bool, Missing> {
    let long = view.sender.min_rtt_s()? >= LONG_PATH_S;
    let (least, most) = (of_room(view, view.sender.send_buffer_bytes()?)?, allowed(view)?);
    let goodput = view.goodput()?;
    let about = least <= goodput * MAX_CONTRIBUTING_RATE_RATIO
        && most >= goodput / MAX_CONTRIBUTING_RATE_RATIO;
    Ok(!held.is_nothing() && long && about)
}

/// The most goodput that the buffer allows in each round trip, over all flows. A write that finds room fills whole super-packets,
/// which may be more than the buffer (net/ipv4/tcp.c, `tcp_sendmsg_locked`).
fn allowed(view: &View) -> Result<f64, Missing> {
    let side = &view.sender;
    of_room(view, side.send_buffer_bytes()?.max(side.send_memory_bytes()?))
}

/// Goodput of this many bytes of each flow in each round trip, over all flows.
fn of_room(view: &View, bytes: f64) -> Result<f64, Missing> {
    Ok(bytes * 8.0 / view.sender.rtt_s()? * view.sender.flow_count()?)
}

fn draft(view: &View, held: HeldShare, confidence: Confidence) -> Draft {
    let (side, place) = (&view.sender, view.sender.place());
    let text = format!("the send buffer stopped the sender {held} of the time");
    Draft::new(RULE.id, place, confidence, "the send buffer")
        .share(held.share())
        .share_between(held.between_percent())
        .saw(place, RULE.witness_name, held.share() * 100.0, text)
        .saw_if(place, "writer_blocked_share", side.blocked_share(), |waits| side.waits_text(waits))
        .saw_if(place, "socket.sndbuf_bytes", side.send_buffer_bytes(), |room| against(view, room))
        .saw_if(place, "unacked_of_cwnd_share", in_flight_share(view), |part| {
            format!(
                "data in flight filled {} of the congestion window (tcp_info unacked, snd_cwnd)",
                percent(part)
            )
        })
        .saw_if(
            view.receiver.place(),
            "reader_blocked_share",
            view.receiver.blocked_share(),
            |waits| view.receiver.waits_text(waits),
        )
        .predicted(next_after(view, &[RULE.id]))
}

fn in_flight_share(view: &View) -> Result<f64, Missing> {
    Ok(view.sender.in_flight_bytes()? / view.sender.congestion_window_bytes()?)
}

fn against(view: &View, room: f64) -> String {
    let by = match (view.plan().socket.sndbuf_bytes, view.sender.words(TCP_WMEM)) {
        (Some(asked), _) => format!(", set by SO_SNDBUF ({})", asked.0),
        (None, Some(wmem)) => format!(", tcp_wmem {wmem}"),
        (None, None) => String::new(),
    };
    match view.sender.rtt_s() {
        Ok(rtt) => format!(
            "buffer {} / round trip {} = {}{by}",
            bytes(room),
            time(rtt),
            rate(room * 8.0 / rtt)
        ),
        Err(_) => format!("the buffer is {}{by}", bytes(room)),
    }
}

/// Whether another program has fixed its buffer: one that tunes itself would have grown to the maximum
/// by the time it limits.
fn program_fixed_it(view: &View) -> bool {
    let below = || -> Result<bool, Missing> {
        Ok(view.sender.send_buffer_bytes()?
            < MIN_SHARE_OF_LARGEST_BUFFER * largest_of(&view.sender, TCP_WMEM)?)
    };
    view.sender.is_watched() && below().unwrap_or(false)
}

fn change(view: &View) -> Option<Change> {
    match view.plan().socket.sndbuf_bytes {
        Some(asked) => {
            let why = "let the kernel tune the buffer";
            Some(of_plan("socket.sndbuf", Some(asked.0.to_string()), "default", why))
        }
        None => larger_wmem(view),
    }
}

/// Share of the sender's time that its buffer held, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(held_share(view, RULE.refines)? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;
    use goodput_model::Place;

    #[test]
    fn a_buffer_that_allows_little_more_contributes() {
        let part = |goodput: f64| {
            let case = Case::send_buffer().shares(1.0, 0.0, 0.3).app_limited(0.0);
            fires_at(case.goodput(goodput).tcp(|tcp, _| tcp.notsent_bytes = Some(20_000)))
        };
        // 128 KiB in 20.4 ms are 51 Mbit/s; as the goodput itself the buffer is the whole cause.
        assert_eq!(part(36e6), Some(Confidence::Possible));
        assert_eq!(part(20e6), None);
    }

    /// 128 KiB of buffer that whole writes fill with twice as much allow 51 to 103 Mbit/s.
    #[test]
    fn a_buffer_that_writes_overfill_contributes_from_what_it_holds() {
        let part = |goodput: f64| {
            let case = Case::send_buffer().shares(1.0, 0.0, 0.3).app_limited(0.0).send_queue(2.0);
            fires_at(case.goodput(goodput).tcp(|tcp, _| tcp.notsent_bytes = Some(20_000)))
        };
        assert_eq!(part(36e6), Some(Confidence::Possible));
        assert_eq!(part(20e6), None);
    }

    fn fires_at(case: Case) -> Option<Confidence> {
        let evidence = case.evidence();
        (RULE.check)(&View::new(&evidence)).unwrap().map(|finding| finding.confidence)
    }

    #[test]
    fn writes_larger_than_the_buffer_carry_more_than_it_holds() {
        let allowed = |used| {
            let evidence = Case::send_buffer().send_queue(used).evidence();
            super::allowed(&View::new(&evidence)).unwrap()
        };
        // 24 kB of buffer held 100 kB at a time, as measured.
        assert!((allowed(4.1) / allowed(1.0) - 4.1).abs() < 0.1);
        assert_eq!(allowed(0.2), allowed(1.0));
    }

    #[test]
    fn trap_1_fires_though_the_kernel_counts_the_application() {
        let finding = fires(&RULE, Case::send_buffer());
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Certain));
        assert_eq!(finding.changes[0].as_argument(), "socket.sndbuf=65536,default");
    }

    #[test]
    fn another_programs_fixed_buffer_is_not_a_matter_of_the_hosts_maximum() {
        let case = || {
            let case = Case::send_buffer().watched().without_far();
            case.fact(Near, TCP_WMEM, "4096 16384 4194304")
        };
        let finding = fires(&RULE, case());
        assert!(
            finding.changes.is_empty() && finding.advice[0].contains("SO_SNDBUF"),
            "{finding:?}"
        );
    }

    #[test]
    fn without_a_fixed_size_the_maximum_is_raised() {
        let case = Case::send_buffer().plan(|plan| plan.socket.sndbuf_bytes = None);
        // The buffer of 4 MiB that it grew to carries 1.6 Gbit/s.
        let case = case.goodput(7e8).fact(Near, TCP_WMEM, "4096 16384 131072");
        let change = fires(&RULE, case).changes[0].as_argument();
        assert_eq!(change, "sysctl.net.ipv4.tcp_wmem=4096 16384 131072,4096 16384 8388608");
    }

    #[test]
    fn stays_quiet_where_the_writer_or_the_reader_is_slow_or_a_queue_stands() {
        quiet(&RULE, Case::sender_application());
        quiet(&RULE, Case::send_buffer().reader(0.05, 0.0, 0.2));
        quiet(&RULE, Case::send_buffer().tcp(|tcp, _| tcp.rtt_us = Some(200_000)));
    }

    #[test]
    fn cannot_tell_on_an_old_kernel() {
        cannot_tell(&RULE, Case::send_buffer().tcp(|tcp, _| tcp.sndbuf_limited_us = None));
    }
}
