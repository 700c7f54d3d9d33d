//! # What it means
//! Packets wait in a long queue before the bottleneck. The rate is as high as it can be, but
//! everything else that crosses the path waits too.
//!
//! # Why it limits
//! It does not limit goodput. It costs latency: calls, games, name lookups and the start of every
//! other transfer are delayed by the length of the queue (bufferbloat).
//!
//! # How it is seen
//! The path or the sender's shaper gives its rate, and round trips take at least twice as long
//! under load as on the idle path, and at least 50 ms longer. The round trips are those that
//! `--latency` measures, otherwise those of the flows' own acknowledgements (tcp_info).
//! `--latency` can also rule the cause out: if its round trips are short while the flows' own packets
//! wait, a fair queue spares other traffic. The finding always stands beside the one that names the
//! rate.
//!
//! # What to try
//! At the bottleneck, a managed queue (fq_codel, cake) or one no longer than a round trip: if the queue
//! is that of the sender's own shaper or full link, goodput can shorten it. At the sender, a congestion
//! control that does not fill the queue (BBR), or a rate just below the bottleneck's.
//!
//! # When it is wrong
//! A receiver that stops now and then also stretches round trips; then its own finding is made
//! instead of this one.
//!
//! # Source
//! RFC 6349 section 4.2 (buffer delay); RFC 7567; RFC 8290; RFC 8033.

use goodput_model::{BitRate, Confidence, Finding, Known, Missing, Place};

use crate::account::held_share;
use crate::elimination::host_is_short;
use crate::finding::{Draft, bytes, time};
use crate::known_rate::path_is_full;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::shaper::Shaper;
use crate::shorter_waits::shorter_waits;
use crate::thresholds::MIN_LIMITING_TIME_SHARE;
use crate::view::{Probed, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "queue-too-long",
    title: "A long queue delays everything that crosses the path",
    refines: &[parts::PATH_RATE],
    depth: Depth::Aside,
    is_of_discipline: true,
    check,
    witness,
    witness_name: "queue_delay_us",
    witness_words: ("delay in the queue", " µs"),
    source: include_str!("queue_too_long.rs"),
};

/// Round-trip time under load over the smallest one from which buffers are the larger part of it.
const MIN_LOADED_RTT_RATIO: f64 = 2.0;
/// Delay from which a person notices, seconds (responsiveness of a call; ITU-T G.114 allows 150 ms one
/// way for the whole path).
const NOTICED_S: f64 = 0.05;

/// Round trips on the idle path and under load, and by what they are known.
struct Waits {
    idle_s: f64,
    loaded_s: f64,
    seen_by: String,
    place: Place,
}

impl Waits {
    /// By the round trips beside the flows, if they were measured: other traffic has them too. Otherwise by the
    /// flows' own.
    fn of(view: &View) -> Result<Self, Missing> {
        if let Ok(Probed { way, idle_s, loaded_s }) = view.probed() {
            let seen_by = format!("median beside the flows, {way}");
            return Ok(Self { idle_s, loaded_s, seen_by, place: Place::Near });
        }
        view.needs_tcp()?;
        let (loaded_s, idle_s) = (view.sender.rtt_s()?, view.sender.min_rtt_s()?);
        let seen_by = "tcp_info rtt, min_rtt".into();
        Ok(Self { idle_s, loaded_s, seen_by, place: view.sender.place() })
    }

    fn waits_s(&self) -> f64 {
        self.loaded_s - self.idle_s
    }

    fn is_long(&self) -> bool {
        self.waits_s() >= NOTICED_S && self.loaded_s >= MIN_LOADED_RTT_RATIO * self.idle_s
    }

    fn in_words(&self) -> String {
        let (loaded, idle) = (time(self.loaded_s), time(self.idle_s));
        format!("round trips took {loaded} under load, {idle} without ({})", self.seen_by)
    }
}

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let seen = Waits::of(view)?;
    if !seen.is_long() {
        return Ok(None);
    }
    let Some((end, confidence)) = bottleneck(view)? else { return Ok(None) };
    let goodput = view.goodput()?;
    let (place, waits) = (view.sender.place(), seen.waits_s());
    let summary = format!("a queue that delays all traffic by {}", time(waits));
    let holds = format!("{} wait in the queue at this rate", bytes(waits * goodput / 8.0));
    let draft = Draft::new(RULE.id, end, confidence, summary)
        .saw(seen.place, RULE.witness_name, waits * 1e6, seen.in_words())
        .saw(place, "queue_bytes", waits * goodput / 8.0, holds)
        // A shorter queue gains no goodput.
        .predicted(Known::Value(BitRate(goodput)))
        .changes(shorter_waits(view));
    match (end, view.sender.device()) {
        (Place::Path, _) | (_, Err(_)) => draft.advice(
            "at the bottleneck: a managed queue (fq_codel, cake), or one no longer than a round trip",
        ),
        (_, Ok(device)) => draft.advice(format!(
            "give the queue of {device} a limit of a round trip, or fq_codel below its shaper"
        )),
    }
    .found()
}

/// Where the rate is given that the queue waits for, and how sure that is.
fn bottleneck(view: &View) -> Result<Option<(Place, Confidence)>, Missing> {
    let shaper = Shaper::of(view).ok().flatten();
    if shaper.is_some_and(|shaper| shaper.gives(view)) {
        return Ok(Some((view.sender.place(), Confidence::Certain)));
    }
    let share = held_share(view, RULE.refines);
    let confidence = match (path_is_full(view), share) {
        (true, _) => Confidence::Likely,
        (false, Ok(share)) if share >= MIN_LIMITING_TIME_SHARE => Confidence::Possible,
        _ => return Ok(None),
    };
    Ok((!host_is_short(view)).then_some((Place::Path, confidence)))
}

/// How long packets wait under load, microseconds.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(Waits::of(view)?.waits_s().max(0.0) * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::names::QDISC_LIMIT;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::Change;
    use goodput_model::EndName::Near;

    fn bloated() -> Case {
        Case::path_rate().tcp(|tcp, _| tcp.rtt_us = Some(154_000))
    }

    #[test]
    fn it_contributes_after_the_rate_and_gains_nothing() {
        let finding = fires(&RULE, bloated());
        assert_eq!(finding.summary, "a queue that delays all traffic by 134 ms");
        let diagnosis = diagnose(&bloated().evidence());
        assert_eq!(diagnosis.verdict.limit, "path-rate");
        assert_eq!(diagnosis.findings[1].rule, "queue-too-long");
    }

    #[test]
    fn stays_quiet_at_a_short_queue_and_where_no_rate_is_named() {
        quiet(&RULE, Case::path_rate());
        quiet(&RULE, Case::throttled_receiver().tcp(|tcp, _| tcp.rtt_us = Some(200_000)));
    }

    /// A long queue before the sender's own bucket of 100 Mbit/s.
    fn shaped(limit: u64) -> Case {
        let case = bloated().tbf(100e6, 125_000).fact(Near, QDISC_LIMIT, limit);
        case.congestion("cubic")
    }

    #[test]
    fn the_senders_own_long_queue_has_a_shorter_limit() {
        let finding = fires(&RULE, shaped(3_000_000));
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Certain));
        // 30 ms at 100 Mbit/s.
        let limit = "qdisc.tbf.limit@eth0=3000000,375000";
        let changes: Vec<_> = finding.changes.iter().map(Change::as_argument).collect();
        assert_eq!(changes, [limit, "socket.congestion=cubic,bbr"]);
        assert!(!finding.advice.is_empty());
    }

    #[test]
    fn a_queue_elsewhere_is_kept_short_by_the_sender() {
        let finding = fires(&RULE, bloated().congestion("cubic"));
        assert_eq!(finding.changes[0].as_argument(), "socket.congestion=cubic,bbr");
    }

    #[test]
    fn probes_decide_where_there_are_any_for_it_and_against_it() {
        let finding = fires(&RULE, Case::path_rate().probed(300.0, 90_300.0));
        assert_eq!(finding.summary, "a queue that delays all traffic by 90 ms");
        assert!(finding.evidence[0].text.contains("connections"), "{finding:?}");
        // A fair queue: the flows wait in it, the others do not.
        quiet(&RULE, bloated().probed(300.0, 900.0));
        let blind =
            Case::path_rate().probed(300.0, 90_300.0).tcp(|tcp, _| tcp.rtt_us = Some(21_000));
        assert!(Waits::of(&View::new(&blind.evidence())).unwrap().is_long());
    }

    #[test]
    fn cannot_tell_without_a_round_trip_time() {
        cannot_tell(&RULE, bloated().tcp(|tcp, _| tcp.min_rtt_us = None));
    }
}
