//! # What it means
//! This client requests too little from an NFS server at once. The server responds immediately, and
//! then both wait for each other.
//!
//! # Why it limits
//! One round trip brings no more than all calls in flight request: slots × rsize.
//!
//! # How it is seen
//! Two things together. For at least 30 % of the time nothing arrived between one response and the
//! next. And calls did not wait for each other: on average they took less than a quarter longer
//! than the shortest call, which waited for no other. So the server could handle further calls at
//! the same time.
//!
//! # What to try
//! More calls in flight (`nfs.slots`, `--slots`), or larger ones (`nfs.rsize`, `--rsize`).
//! `compare` shows which of the two helps.
//!
//! # When it is wrong
//! A server that responds late to each call, but to many at the same time, looks the same. More
//! calls in flight help there too. If round trips vary by more than a quarter, calls seem to wait
//! for each other, and this rule stays quiet.
//!
//! # Source
//! Little 1961 (calls in flight = rate × time of a call); RFC 1813 section 4.8 (READs that overlap).

use goodput_model::{Change, Confidence, Finding, Missing, NfsPlan, Rpcs};

use crate::bounds::next_after;
use crate::change::of_plan;
use crate::finding::{Draft, bytes, percent, rate, time};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_STOPPED_TIME_SHARE;
use crate::view::{MIN_OPEN_WINDOW_RATIO, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "calls-in-flight",
    title: "This client has too few calls in flight",
    refines: &[parts::SENDING_PROGRAM],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "between_answers_percent",
    witness_words: ("time between answers and the next calls", " %"),
    source: include_str!("calls_in_flight.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.receiver.elapsed_s()?;
    let own = view.receiver.place();
    let Some(calls) = reads(view) else { return Ok(None) };
    let idle = *calls.idle_share.get()?;
    let allowed = allowed(view, calls)?;
    let (mean, least) = (calls.mean_round_trip_us.get()?, calls.shortest_round_trip_us.get()?);
    if idle < MIN_STOPPED_TIME_SHARE || *mean >= MIN_OPEN_WINDOW_RATIO * least {
        return Ok(None);
    }
    let (slots, size) = (calls.slots, bytes(calls.call_bytes.0 as f64));
    let shortest = time(least / 1e6);
    let summary = "too few calls in flight at this client";
    Draft::new(RULE.id, own, Confidence::Likely, summary)
        .share(idle)
        .saw(own, RULE.witness_name, idle * 100.0, {
            format!("nothing came {} of the time, between one answer and the next", percent(idle))
        })
        .saw(own, "calls_allow_bits_per_s", allowed, {
            format!(
                "{slots} READs of {size} in flight / {shortest} for the shortest = {} on all connections",
                rate(allowed)
            )
        })
        .saw(own, "round_trip_us", *mean, {
            format!("a READ took {} (mean): READs did not wait for each other", time(mean / 1e6))
        })
        .predicted(next_after(view, &[RULE.id, "sender-application"]))
        .changes(more_slots(calls, idle))
        .advice("larger READs (--rsize) bring more in each round trip, too")
        .found()
}

/// The calls of a client that reads.
fn reads<'a>(view: &'a View) -> Option<&'a Rpcs> {
    let reads = view.is_sender_silent();
    view.fetches().filter(|_| reads)?.rpcs.as_ref()
}

/// Goodput that the calls in flight would bring if none waited for another, all connections together, bit/s.
fn allowed(view: &View, calls: &Rpcs) -> Result<f64, Missing> {
    let shortest_s = *calls.shortest_round_trip_us.get()? / 1e6;
    if shortest_s <= 0.0 {
        return Err(Missing::because("a call took no time"));
    }
    let bits = f64::from(calls.slots) * calls.call_bytes.0 as f64 * 8.0;
    Ok(bits / shortest_s * f64::from(view.plan().flows))
}

/// As many slots as fill the idle time, as a power of two.
fn more_slots(calls: &Rpcs, idle: f64) -> Option<Change> {
    let wanted = f64::from(calls.slots) / (1.0 - idle).max(f64::EPSILON);
    let wanted = wanted.min(f64::from(NfsPlan::MOST_SLOTS)).ceil() as u32;
    let slots = wanted.next_power_of_two().min(u32::from(NfsPlan::MOST_SLOTS));
    let why = "request more before the first answer comes";
    let from = Some(calls.slots.to_string());
    (slots > u32::from(calls.slots)).then(|| of_plan("nfs.slots", from, &slots.to_string(), why))
}

/// Share of the time between answers, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let calls = reads(view).ok_or_else(|| Missing::because("no file was read by calls"))?;
    Ok(*calls.idle_share.get()? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Known, Place};

    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};

    /// 4 READs of 64 KiB that take 20 ms or a little more bring 100 Mbit/s.
    fn reads(change: impl FnOnce(&mut Rpcs)) -> Case {
        let case = Case::healthy().without_links().goodput(100e6).silent_sender(|_, _| ());
        case.asking(0.0).calls(change)
    }

    #[test]
    fn fires_if_calls_wait_for_nobody_and_answers_have_gaps() {
        let finding = fires(&RULE, reads(|_| ()));
        assert_eq!(finding.changes[0].as_argument(), "nfs.slots=4,16");
        assert_eq!(finding.end, Place::Far, "whoever receives");
        assert_eq!(diagnose(&reads(|_| ()).evidence()).verdict.limit, RULE.id);
        let two = reads(|calls| calls.idle_share = Known::Value(0.4));
        assert_eq!(fires(&RULE, two).changes[0].to, "8");
    }

    #[test]
    fn stays_quiet_if_calls_wait_for_each_other_or_answers_come_without_gaps() {
        // A server, or a path, that brings one answer after the other: the first waited for no other.
        quiet(&RULE, reads(|calls| calls.shortest_round_trip_us = Known::Value(5000.0)));
        // One READ after the other that takes long because it is long.
        quiet(&RULE, reads(|calls| calls.idle_share = Known::Value(0.1)));
        quiet(&RULE, Case::healthy().silent_sender(|_, _| ()).asking(0.0));
        quiet(&RULE, Case::healthy());
    }

    #[test]
    fn an_older_record_does_not_have_it() {
        cannot_tell(&RULE, reads(|calls| calls.idle_share = Known::missing("not kept")));
    }
}
