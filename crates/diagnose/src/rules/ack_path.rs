//! # What it means
//! Acknowledgements wait on their way back: in the receiver's own shaper, or in a queue in the
//! other direction of the path, which carries far less.
//!
//! # Why it limits
//! The sender may send only what acknowledgements allow. If these come back through a narrow or
//! full path, they set the pace, and the data's direction is never full, however wide it is.
//!
//! # How it is seen
//! The path holds the sender, a queue lengthens the round trip, and more than half of the wait is spent
//! on the way back. Both directions are timed separately, by exchanges of the two hosts' clocks
//! before, during and after the flows, or by when the same byte was sent, arrived and was
//! acknowledged. The delay on the way back has an error bound, and the rule reports nothing within
//! it. If nothing is acknowledged at all, exchanges that come back only after the flows show the way,
//! provided that they waited for most of their time. If the receiver's own shaper is full of small
//! packets, it is the place.
//!
//! # What to try
//! A higher rate for the receiver's shaper; a queue there that puts acknowledgements first or drops
//! needless ones (cake ack-filter); less other traffic in that direction.
//!
//! # When it is wrong
//! A slow reader, or a host without CPU, also acknowledges late; then this rule stays quiet. If
//! both directions are measured at once, each direction's data naturally delays the other's
//! acknowledgements. Without the far end's clock, as with an older or a private peer, the rule
//! can't decide.
//!
//! # Source
//! Moon, Skelly, Towsley, INFOCOM 1999 (one-way delays without a common clock); RFC 3449 (asymmetric paths); RFC 5681 section 4.2; tc-tbf(8).

use goodput_model::{Change, Confidence, Direction, Finding, Missing, Place};

use crate::account::path_share;
use crate::bounds::next_after;
use crate::change::of_host;
use crate::elimination::{host_is_short, hosts_have_time};
use crate::finding::{Draft, percent, rate, time};
use crate::htb;
use crate::names::{QDISC_CEIL, QDISC_KIND, QDISC_PACKETS, QDISC_RATE, QDISC_SENT_BYTES};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MAX_WAIT_SHARE_OF_SLOW_THREAD, MIN_LIMITING_TIME_SHARE};
use crate::view::{Halves, Side, Unanswered, View, positive};

/// The rule.
pub const RULE: Rule = Rule {
    id: "ack-path",
    title: "Acknowledgements wait on their way back",
    refines: parts::DROPPING_LIMIT,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "way_back_us",
    witness_words: ("time of the way back", " µs"),
    source: include_str!("ack_path.rs"),
};

/// Part of the rate of the receiver's shaper in use from which it is full; the control connection's
/// part is in it.
const MIN_SHARE_OF_SHAPER_RATE: f64 = 0.8;
/// Mean length of what it sent, bytes, below which it is acknowledgements.
const MAX_ACK_PACKET_BYTES: f64 = 256.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    let held = path_share(view)?;
    let behind =
        view.receiver.blocked_share().is_ok_and(|waits| waits < MAX_WAIT_SHARE_OF_SLOW_THREAD);
    if held < MIN_LIMITING_TIME_SHARE
        || behind
        || view.plan().direction == Direction::Both
        || host_is_short(view)
    {
        return Ok(None);
    }
    let Some(found) = waits_on_the_way_back(view)? else { return Ok(None) };
    found.share(held).found()
}

fn waits_on_the_way_back(view: &View) -> Result<Option<Draft>, Missing> {
    let unanswered = view.unanswered().ok();
    if unanswered.is_none() && !view.sender.queue_stands()? {
        return Ok(None);
    }
    let halves = unanswered.map_or_else(|| view.halves(), |unanswered| Ok(unanswered.halves))?;
    if !is_mostly_back(&halves)? {
        return Ok(None);
    }
    if unanswered.is_none() {
        is_the_flows_queue(&halves, view.sender.rtt_s()? - view.sender.min_rtt_s()?)?;
    }
    let shaper = Shaped::of(&view.receiver).filter(Shaped::is_full);
    let confidence = match &shaper {
        Some(_) => Confidence::Certain,
        None if hosts_have_time(view) => Confidence::Likely,
        None => Confidence::Possible,
    };
    let (name, value, text) = what_took_longer(view, unanswered)?;
    let draft = draft(view, confidence, &halves, shaper.as_ref());
    Ok(Some(draft.saw(view.sender.place(), name, value, text)))
}

/// What shows that something waits: name, value and words.
fn what_took_longer(
    view: &View,
    unanswered: Option<Unanswered>,
) -> Result<(&'static str, f64, String), Missing> {
    if let Some(Unanswered { took_s, .. }) = unanswered {
        let silent_s = view.sender.elapsed_s()?;
        let text = format!(
            "nothing was acknowledged for {} (tcp_info delivered); exchanges of the clocks that came back only afterwards took {}",
            time(silent_s),
            time(took_s)
        );
        return Ok(("unanswered_s", silent_s, text));
    }
    let trips = format!(
        "round trips took {} under load, {} at best (tcp_info rtt, min_rtt)",
        time(view.sender.rtt_s()?),
        time(view.sender.min_rtt_s()?)
    );
    Ok(("rtt_inflation", view.sender.rtt_inflation()?, trips))
}

/// Whether the way back has more than half of what both ways wait. One way is compared with the other at the same time,
/// not against the flows' round trips: these vary as much as the queue does, which both ways add up to anyway.
fn is_mostly_back(halves: &Halves) -> Result<bool, Missing> {
    halves.more_back_s.exceeds(0.0, "the extra delay of the way back, in seconds,")
}

/// Part of the flows' queue that both ways together must show, if they are to speak of it: a fair queue hides
/// the flows' queue from everything else, and then what is left is noise. Chosen, not fitted: the only
/// measured case near it (a queue that varies behind 4 Mbit/s) showed 0.42; behind a fair queue it is about 0.
const MIN_QUEUE_SHARE_SEEN: f64 = 0.25;

fn is_the_flows_queue(halves: &Halves, queue_s: f64) -> Result<(), Missing> {
    let seen = halves.there_s.value + halves.back_s.value;
    match seen >= MIN_QUEUE_SHARE_SEEN * queue_s {
        true => Ok(()),
        false => Err(Missing::because(
            "both directions are delayed far less than the flows' round trips",
        )),
    }
}

fn draft(view: &View, confidence: Confidence, halves: &Halves, shaper: Option<&Shaped>) -> Draft {
    let (end, summary) = match shaper {
        Some(shaper) => (
            view.receiver.place(),
            format!(
                "the {} of {} at the receiver, full of acknowledgements",
                shaper.kind, shaper.device
            ),
        ),
        None => (Place::Path, "acknowledgements wait on the way back".into()),
    };
    let place = view.sender.place();
    let took = format!(
        "acknowledgements waited {} on the way back (± {}), data {} on the way there (± {})",
        time(halves.back_s.value.max(0.0)),
        time(halves.back_s.error()),
        time(halves.there_s.value.max(0.0)),
        time(halves.there_s.error())
    );
    let draft = Draft::new(RULE.id, end, confidence, summary)
        .saw(place, RULE.witness_name, halves.back_s.value * 1e6, took)
        .predicted(next_after(view, &[RULE.id]));
    let Some(shaper) = shaper else {
        return draft.advice(
            "on the way back: a higher rate, less other traffic, or a queue that puts acknowledgements first (cake ack-filter)",
        );
    };
    let full = format!(
        "the shaper of {} there sent {} of its {}, in packets of {:.0} bytes (tc -s qdisc)",
        shaper.device,
        percent(shaper.used),
        rate(shaper.rate),
        shaper.mean_bytes
    );
    draft
        .saw(end, "shaper_used_percent", shaper.used * 100.0, full)
        .changes(shaper.more(&view.receiver))
}

/// The shaper on the receiver's own device.
struct Shaped<'a> {
    kind: &'a str,
    device: &'a str,
    class: Option<String>,
    rate: f64,
    used: f64,
    mean_bytes: f64,
}

impl<'a> Shaped<'a> {
    fn of(side: &Side<'a>) -> Option<Self> {
        let kind = side.text(QDISC_KIND).ok()?;
        let leaf = (kind == "htb").then(|| htb::used(&htb::leaves(side).ok()?).ok()).flatten();
        let configured = || side.count(QDISC_CEIL).or_else(|_| side.count(QDISC_RATE)).ok();
        let rate = leaf.as_ref().map(|leaf| leaf.ceil).or_else(configured)?;
        let sent = side.grown(QDISC_SENT_BYTES).ok()? as f64;
        let packets = positive(side.grown(QDISC_PACKETS).ok()? as f64, "the packets sent").ok()?;
        let could = positive(rate * side.span_s().ok()?, "the rate of the shaper").ok()?;
        Some(Self {
            kind,
            device: side.device().ok()?,
            class: leaf.map(|leaf| leaf.id.to_owned()),
            rate,
            used: sent * 8.0 / could,
            mean_bytes: sent / packets,
        })
    }

    fn is_full(&self) -> bool {
        self.used >= MIN_SHARE_OF_SHAPER_RATE && self.mean_bytes < MAX_ACK_PACKET_BYTES
    }

    /// Ten times the rate, which costs nothing if the device is faster.
    fn more(&self, side: &Side) -> Option<Change> {
        let scope = match &self.class {
            Some(class) => format!("{}:{class}", self.device),
            None => self.device.to_owned(),
        };
        let name = match self.kind {
            "tbf" => "qdisc.tbf.rate",
            "htb" => "qdisc.htb.ceil",
            _ => return None,
        };
        let values = (Some(rate_of(self.rate)), rate_of(10.0 * self.rate));
        Some(of_host(side, name, Some(&scope), values, "acknowledgements fill the present rate"))
    }
}

fn rate_of(bits_per_s: f64) -> String {
    crate::finding::rate_argument(bits_per_s)
}

/// How long the way back waits beyond its idle time, microseconds.
fn witness(view: &View) -> Result<f64, Missing> {
    let unanswered = view.unanswered().map(|unanswered| unanswered.halves);
    Ok(unanswered.or_else(|_| view.halves())?.back_s.value.max(0.0) * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::Bounded;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;

    /// A queue of 28 ms at 33 Mbit/s, and this part of it on the way back.
    fn late(back_s: f64) -> Case {
        let case = Case::path_rate().without_links().wobble(0.0).goodput(33.3e6);
        let case = case.waits(0.028 - back_s, back_s);
        case.tcp(|tcp, _| (tcp.rtt_us, tcp.min_rtt_us) = (Some(70_000), Some(42_000)))
    }

    fn shaped() -> Case {
        let case = late(0.027).fact(Far, QDISC_KIND, "tbf").fact(Far, QDISC_RATE, 1_000_000u64);
        case.grows(Far, QDISC_SENT_BYTES, 480_000).grows(Far, QDISC_PACKETS, 7000)
    }

    #[test]
    fn fires_where_acknowledgements_wait() {
        let finding = fires(&RULE, late(0.027));
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
    }

    /// A way back so narrow that not even the far end's report comes through.
    fn silent(there_s: f64, back_s: f64) -> Case {
        let case = Case::path_rate().without_links().without_far().waits(there_s, back_s);
        case.tcp(|tcp, _| {
            (tcp.delivered_segments, tcp.unacked_segments) = (Some(2), Some(11));
            tcp.rtt_us = tcp.min_rtt_us;
        })
    }

    #[test]
    fn fires_where_nothing_comes_back_while_the_flows_run() {
        let finding = fires(&RULE, silent(0.0, 9.0));
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        let text = &finding.evidence[1].text;
        assert!(text.starts_with("nothing was acknowledged for "), "{text}");
        assert!(text.ends_with("came back only afterwards took 9.04 s"), "{text}");
        quiet(&RULE, silent(9.0, 0.0));
        quiet(&RULE, silent(0.0, 0.0));
    }

    /// Payload that a path of 0.6 s swallows. Some exchanges are on their way at any time.
    #[test]
    fn stays_quiet_where_exchanges_only_have_a_long_way() {
        quiet(&RULE, silent(0.0, 0.0).far_apart(0.3));
        quiet(&RULE, silent(0.0, 0.005).far_apart(0.3));
    }

    #[test]
    fn the_receivers_own_shaper_is_named() {
        let finding = fires(&RULE, shaped());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
        assert_eq!(finding.changes[0].as_argument(), "far:qdisc.tbf.rate@eth0=1mbit,10mbit");
    }

    #[test]
    fn stays_quiet_where_the_data_waits() {
        quiet(&RULE, late(0.002));
        quiet(&RULE, Case::path_rate().waits(0.02, 0.0));
        quiet(&RULE, late(0.027).tcp(|tcp, _| tcp.rtt_us = Some(20_400)));
    }

    #[test]
    fn a_reader_that_is_behind_acknowledges_late() {
        quiet(&RULE, late(0.027).reader(0.1, 0.0, 0.1));
        quiet(&RULE, late(0.027).plan(|plan| plan.direction = Direction::Both));
    }

    #[test]
    fn a_late_start_of_either_end_changes_nothing() {
        for end in [goodput_model::EndName::Near, Far] {
            fires(&RULE, late(0.027).began_late(end, 0.1));
            quiet(&RULE, late(0.002).began_late(end, 0.1));
        }
    }

    fn halves(there_s: Bounded, back_s: Bounded) -> Halves {
        Halves { there_s, back_s, more_back_s: back_s - there_s }
    }

    /// A queue on the way back that comes and goes, as measured behind 4 Mbit/s with round trips of 2 ms.
    #[test]
    fn a_queue_that_varies_is_still_on_the_way_back() {
        let of = |there: (f64, f64), back: (f64, f64)| {
            let bounded = |(value, error)| Bounded::new(value, error);
            is_mostly_back(&halves(bounded(there), bounded(back)))
        };
        assert_eq!(of((0.000_25, 0.000_19), (0.006_52, 0.005_05)), Ok(true));
        assert_eq!(of((0.006_52, 0.005_05), (0.000_25, 0.000_19)), Ok(false));
        assert!(of((0.004, 0.005), (0.006, 0.005)).is_err());
    }

    /// Exchanges that a fair queue lets pass see 0.15 ms of 2.9.
    #[test]
    fn ways_that_show_little_of_the_queue_say_nothing_of_it() {
        let waits =
            |back_s| halves(Bounded::new(0.000_05, 0.000_02), Bounded::new(back_s, 0.000_02));
        assert!(is_the_flows_queue(&waits(0.000_1), 0.002_9).is_err());
        assert!(is_the_flows_queue(&waits(0.006_5), 0.016).is_ok());
    }

    #[test]
    fn half_of_the_queue_is_too_near_to_decide() {
        let why = cannot_tell(&RULE, late(0.014));
        assert!(why.contains("too close"), "{why}");
    }

    #[test]
    fn cannot_tell_without_the_clocks() {
        let mut evidence = late(0.027).evidence();
        evidence.clocks = goodput_model::Clocks::not_compared();
        assert!(check(&View::new(&evidence)).is_err());
    }

    #[test]
    fn cannot_tell_without_the_receiver() {
        cannot_tell(&RULE, late(0.027).without_far());
    }
}
