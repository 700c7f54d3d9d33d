//! What is lost while a bucket is full because the timer that empties it is late.

use goodput_ceiling::bucket::{BucketNeeds, PLAUSIBLE_LATENESS_S};
use goodput_ceiling::lateness::lost_share;
use goodput_model::{Known, LocalShaper, Seconds, TimerLateness};

use super::bucket::{is_tbf, largest_super_packet};
use super::timers::Watched;
use super::{Answer, Seen, say};

/// What passes a shaper at once, and the timers that wait for it.
struct Passing<'a> {
    /// Bytes, as the shaper counts them.
    bytes: f64,
    /// The bucket that is enough for it, bytes.
    enough: f64,
    /// Lateness of its timers.
    timers: &'a Known<TimerLateness>,
    watched: Option<&'a Watched>,
}

/// A bucket that overflows whenever a timer is late. TCP's frames pass it one by one as well if it cuts super-packets up, and
/// show it if the rate of datagrams is unknown.
pub(super) fn of_frames(seen: &Seen) -> Answer {
    let least = seen.least_loss();
    let of_tcp = || seen.given().is_none().then(|| seen.tcp_shortfall_by(least)).flatten();
    let lacks = seen.shortfall_by(least).or_else(|| of_tcp().filter(|_| passes_frames(seen)))?;
    explain(seen, &frame(seen)?, lacks).map(|text| say("late-timers", text))
}

/// A bucket that takes super-packets whole, and overflows when the timer after one is late. Only TCP sends those, so datagrams
/// may get all of the rate, or lack a little that their own timers don't explain.
pub(super) fn of_super_packets(seen: &Seen) -> Answer {
    let least = seen.least_loss();
    let is_alone = || seen.shortfall().is_none() && of_frames(seen).is_none();
    let lacks = seen.tcp_shortfall_by(least).filter(|_| is_alone())?;
    let text = explain(seen, &super_packet(seen)?, lacks)?;
    Some(say("late-timers-tcp", format!("TCP sends super-packets: {text}")))
}

/// Whether late timers explain that this share of the rate of datagrams is missing.
pub(super) fn is_explained(seen: &Seen, short: f64) -> bool {
    frame(seen).is_some_and(|passing| explains(seen, &passing, short) == Some(true))
}

/// Whether super-packets don't pass whole (net/sched/sch_tbf.c, `tbf_segment`).
fn passes_frames(seen: &Seen) -> bool {
    let whole = seen.largest_frame().map(|frame| largest_super_packet(seen.sender, frame));
    let is_small = seen.burst_at_most().zip(whole).is_some_and(|(burst, whole)| burst < whole);
    is_small && seen.shaper().is_some_and(is_tbf)
}

fn frame<'a>(seen: &Seen<'a>) -> Option<Passing<'a>> {
    let (shaper, enough) = (seen.shaper()?, seen.enough?);
    let bytes = shaper.counted_frame_bytes.0 as f64;
    let lateness_s = enough.timers.value().map(|timers| timers.bridged_us / 1e6);
    let rate = shaper.rate_bits_per_s.0;
    let needs =
        BucketNeeds { rate, frame: bytes, super_packet: bytes, lateness_s, super_lateness_s: None };
    Some(Passing {
        bytes,
        enough: needs.for_rate(),
        timers: &enough.timers,
        watched: seen.watched(|timers| &timers.frame),
    })
}

fn super_packet<'a>(seen: &Seen<'a>) -> Option<Passing<'a>> {
    let enough = seen.enough?;
    Some(Passing {
        bytes: largest_super_packet(seen.sender, seen.largest_frame()?),
        enough: enough.bytes.0 as f64,
        timers: &enough.super_packet_timers,
        watched: seen.watched(|timers| &timers.super_packet),
    })
}

/// Whether the bucket is smaller than what late timers need, and each packet would be late by no more than timers are.
fn explains(seen: &Seen, passing: &Passing, short: f64) -> Option<bool> {
    let shaper = seen.shaper()?;
    let credit = if is_tbf(shaper) { 0.0 } else { passing.bytes };
    let mean_s = cycle_s(shaper, passing) * short / (1.0 - short);
    let longest_s = passing.timers.value().map_or(0.0, |timers| timers.longest_us / 1e6);
    let is_small = seen.burst_at_most()? + credit < passing.enough;
    Some(is_small && mean_s <= longest_s.max(PLAUSIBLE_LATENESS_S))
}

/// Bytes of the bucket that bridge late timers, if it takes a packet whole: tbf cuts up or drops what exceeds it. A class of htb
/// sends on credit, and has its whole bucket for late timers.
fn spare(seen: &Seen, passing: &Passing) -> Option<f64> {
    let (shaper, burst) = (seen.shaper()?, seen.burst()?);
    match is_tbf(shaper) {
        true if seen.burst_at_most()? < passing.bytes => None,
        true => Some((burst - passing.bytes).max(0.0)),
        false => Some(burst),
    }
}

/// The words, if late timers explain that the share `short` of the rate is missing.
fn explain(seen: &Seen, passing: &Passing, short: f64) -> Option<String> {
    let (shaper, burst, spare) = (seen.shaper()?, seen.burst()?, spare(seen, passing)?);
    if !explains(seen, passing, short)? {
        return None;
    }
    let rate = shaper.rate_bits_per_s;
    let bridged_s = spare * 8.0 / rate.0;
    let timers = match passing.timers {
        Known::Value(timers) => {
            format!("timers here were up to {} late", Seconds::of_us(timers.longest_us))
        }
        Known::Missing(why) => format!("how late timers are there is unknown ({why})"),
    };
    let cost = |watched: &Watched| {
        let lost = lost_share(&watched.latenesses_s, cycle_s(shaper, passing), bridged_s)?;
        Some(format!("; the timers that were watched would lose {:.1} %", lost * 100.0))
    };
    Some(format!(
        "the bucket of {burst:.0} bytes bridges timers that are up to {} late at {rate}; {timers}, and what comes in \
         while the bucket is full is lost: {:.1} % of the rate{}",
        Seconds(bridged_s),
        short * 100.0,
        passing.watched.and_then(cost).unwrap_or_default()
    ))
}

/// Time that what passes takes at the rate, seconds.
fn cycle_s(shaper: &LocalShaper, passing: &Passing) -> f64 {
    passing.bytes * 8.0 / shaper.rate_bits_per_s.0
}
