//! # What it means
//! A shaper on the sender's own device gives exactly its configured rate. There is nothing to fix.
//!
//! # Why it limits
//! A token bucket lets through its rate and no more. It counts Ethernet frames without checksum and
//! gap, so at MTU 1500 1448 of 1514 bytes, 95.6 % of its rate, are goodput.
//!
//! # How it is seen
//! What the sender sent and its queue did not drop, retransmissions included, is at least 95 % of
//! the rate of the local queueing discipline × payload of a frame / counted length of a frame. If
//! packets waited for tokens and the path held the sender, 90 % is enough.
//!
//! # What to try
//! Raise the rate if you pay for more. Nothing else helps.
//!
//! # When it is wrong
//! With two limits at nearly the same rate, the other one shows only once the shaper is gone. An
//! `htb` tree can put the flow into another class than the one that goodput read.
//!
//! # Source
//! net/sched/sch_tbf.c; tc-tbf(8); tc-htb(8); net/core/dev.c (`qdisc_pkt_len_init`).

use goodput_model::{Confidence, Finding, Missing};

use crate::account::path_share;
use crate::bounds::next_after;
use crate::finding::{Draft, percent, rate};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::shaper::Shaper;
use crate::small_bucket::SmallBucket;
use crate::thresholds::{
    MIN_LIMITING_TIME_SHARE, MIN_SHARE_OF_SHAPER_RATE, MIN_SHARE_OF_SHAPER_RATE_IF_WAITING,
};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "shaper-rate",
    title: "The local shaper gives its configured rate",
    refines: &[parts::PATH_RATE],
    depth: Depth::Limiter,
    is_of_discipline: true,
    check,
    witness,
    witness_name: "goodput_of_shaper_percent",
    witness_words: ("goodput as a share of the shaper's rate", " %"),
    source: include_str!("shaper_rate.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(shaper) = Shaper::of(view)? else { return Ok(None) };
    let passed = shaper.passed(view);
    view.goodput()?;
    let Some(confidence) = confidence(view, &shaper, passed)? else { return Ok(None) };
    let place = view.sender.place();
    let limit = rate(shaper.rate);
    let summary =
        format!("the {} shaper on {}, at its rate of {limit}", shaper.kind, shaper.device);
    let text = format!(
        "{} of the {} that {limit} leaves for payload passed the shaper, repeated segments included",
        percent(passed / shaper.ceiling),
        rate(shaper.ceiling)
    );
    let draft = Draft::new(RULE.id, place, confidence, summary)
        .saw(place, RULE.witness_name, passed / shaper.ceiling * 100.0, text)
        .saw_if(place, "qdisc.drops", view.sender.queue_drops(), |drops| {
            format!("{drops:.0} packets dropped by the shaper's queue")
        })
        .predicted(next_after(view, &[RULE.id]));
    match path_share(view) {
        Ok(share) if view.is_tcp() => draft.share(share).found(),
        _ => draft.found(),
    }
}

/// How sure it is that the shaper limits, `None` if it does not. A shaper that falls short for
/// its bucket is shaper-burst's.
fn confidence(view: &View, shaper: &Shaper, passed: f64) -> Result<Option<Confidence>, Missing> {
    if passed >= MIN_SHARE_OF_SHAPER_RATE * shaper.ceiling {
        return Ok(Some(Confidence::Certain));
    }
    if passed < MIN_SHARE_OF_SHAPER_RATE_IF_WAITING * shaper.ceiling || !shaper.makes_wait(view)? {
        return Ok(None);
    }
    let bucket = SmallBucket::of(view).ok().flatten();
    let too_small = bucket.is_some_and(|bucket| bucket.confidence > Confidence::Possible);
    let held = !view.is_tcp() || path_share(view)? >= MIN_LIMITING_TIME_SHARE;
    Ok((held && !too_small).then_some(Confidence::Likely))
}

/// Goodput as a percentage of what the local shaper allows.
fn witness(view: &View) -> Result<f64, Missing> {
    let shaper = Shaper::of(view)?.ok_or_else(|| Missing::because("no local shaper"))?;
    Ok(view.goodput()? / shaper.ceiling * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;

    #[test]
    fn fires_where_the_shaper_gives_its_rate() {
        let finding = fires(&RULE, Case::healthy().tbf(1e8, 125_000).goodput(95.6e6));
        for fact in ["tbf", "eth0", "100 Mbit/s"] {
            assert!(finding.summary.contains(fact), "{fact} in {}", finding.summary);
        }
        assert!(finding.changes.is_empty());
    }

    #[test]
    fn stays_quiet_below_it_and_without_a_shaper() {
        quiet(&RULE, Case::healthy().tbf(1e8, 125_000).goodput(80e6));
        quiet(&RULE, Case::healthy());
    }

    #[test]
    fn a_little_less_on_a_busy_machine_is_the_shaper_too() {
        // 100000 bytes at 4 Gbit/s: 94.9 %, as measured with all CPUs busy.
        let case = Case::shaper_burst().tbf(4e9, 100_000).goodput(3632e6);
        assert_eq!(fires(&RULE, case.overlimits(0.07)).confidence, Confidence::Likely);
        let idle = Case::shaper_burst().tbf(4e9, 100_000).goodput(3632e6);
        quiet(&RULE, idle.overlimits(0.0));
        quiet(&RULE, Case::shaper_burst().goodput(880e6));
    }

    #[test]
    fn cannot_tell_without_the_qdisc() {
        let why = cannot_tell(&RULE, Case::healthy().without(Near, "qdisc"));
        assert_eq!(why, "qdisc.kind: not permitted");
    }
}
