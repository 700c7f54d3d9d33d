//! # What it means
//! A queue is too short, in front of the sender's own device or on the path. It drops packets that
//! it should hold.
//!
//! # Why it limits
//! Segmentation offload hands over up to 64 KiB at once. A shorter queue drops part or all of each
//! batch. A queue shorter than the bandwidth-delay product runs empty whenever congestion control
//! backs off after a drop.
//!
//! # How it is seen
//! At the sender: the local queueing discipline dropped at least 0.5 % of the packets, or fewer
//! that cut the congestion window, which has been full ever since. The goodput is below 95 % of
//! what a shaper there allows, and the path holds the sender. On the path: slow start sends bursts
//! because it doubles the window. It lost many packets at once, although larger windows passed
//! later, grown step by step. So the rate was not full, and random loss takes no such share. Or
//! losses meet the window at the same level again and again, and the rate falls below 95 % of its
//! best in between. Three weaker signs make the finding possible. The window, cut by such a burst,
//! has been full ever since. Losses keep coming several at once. Or a limit on what is in flight or
//! in the queue explains the losses clearly better than chance. Losses must cost
//! most of what can be gained.
//!
//! # What to try
//! A queue of one round trip plus 10 ms at the shaper's rate, at least two batches of segmentation
//! offload.
//!
//! # When it is wrong
//! A sender without pacing drops packets at any queue. With a bucket too small for the rate both
//! limit, and both are reported. A policer whose bucket holds a few packets loses the same bursts.
//! If nothing waited before it was lost, and the losses show a limit as clearly, the finding is
//! policer's, which means a queue of a few packets as well: the two look the same to the sender, and
//! pacing helps with both.
//!
//! # Source
//! tc-tbf(8) (`limit`); net/sched/sch_fifo.c; Appenzeller, Keslassy, McKeown: Sizing Router Buffers,
//! 2004.

use goodput_model::{Change, Confidence, Finding, LossModel, Missing, Place};

use crate::account::held;
use crate::bounds::next_after;
use crate::burst_loss::{BurstLoss, Clusters, Level};
use crate::change::{of_host, to_bbr};
use crate::elimination::is_local;
use crate::finding::{Draft, bytes, percent, rate};
use crate::fitted_limit::FittedLimit;
use crate::known_rate::path_is_full;
use crate::names::{QDISC_KIND, QDISC_LIMIT};
use crate::parts;
use crate::policing::Policing;
use crate::rule::{Depth, Rule};
use crate::short_queue::{ShortQueue, needed_bytes};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "queue-too-short",
    title: "A queue is too short",
    refines: parts::DROPPING_LIMIT,
    depth: Depth::Reason,
    is_of_discipline: true,
    check,
    witness,
    witness_name: "queue_drop_percent",
    witness_words: ("packets dropped by the queue", " %"),
    source: include_str!("queue_too_short.rs"),
};

/// Part of what was lost that the hosts must have dropped for it not to be the path's.
const MIN_DROPPED_BY_HOSTS_SHARE: f64 = 0.5;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    match at_sender(view) {
        Ok(None) => on_path(view),
        found => found,
    }
}

/// The queue of the sender's own device.
fn at_sender(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(queue) = ShortQueue::of(view)? else { return Ok(None) };
    draft(view, &queue)?
        .share(queue.held_share)
        .saw_if(view.sender.place(), QDISC_LIMIT, queue.limit_bytes.clone(), |limit| {
            format!(
                "the queue holds {}; one batch of segmentation offload is 70.0 kB",
                bytes(limit)
            )
        })
        .predicted(next_after(view, &[RULE.id]))
        .changes(longer_queue(view, &queue))
        .found()
}

/// What a queue on the path that is too short leaves behind.
struct Marks {
    burst: Option<BurstLoss>,
    level: Option<Level>,
    clusters: Option<Clusters>,
    fitted: Option<FittedLimit>,
}

impl Marks {
    fn of(view: &View) -> Result<Self, Missing> {
        let burst = BurstLoss::of(view)?;
        Ok(Self {
            burst,
            level: Level::of(view)?,
            clusters: Clusters::of(view)?,
            fitted: FittedLimit::of(view).filter(|limit| limit.model != LossModel::Bucket),
        })
    }

    /// Bursts that are lost are a radio link's as well, if no larger window passes and no level is met.
    fn confidence(&self) -> Option<Confidence> {
        let outgrown = self.burst.is_some_and(|burst| burst.outgrown);
        let fits = self.fitted.is_some_and(|limit| limit.confidence() > Confidence::Possible);
        if self.level.is_some() || outgrown || fits || self.clusters.is_some_and(|lost| lost.by_far)
        {
            return Some(Confidence::Likely);
        }
        let lost = self.burst.is_some() || self.clusters.is_some() || self.fitted.is_some();
        lost.then_some(Confidence::Possible)
    }

    fn describe(&self, mut draft: Draft, place: Place) -> Draft {
        if let Some(burst) = &self.burst {
            draft = of_burst(draft, place, burst);
        }
        if let Some(level) = &self.level {
            draft = of_level(draft, place, level);
        }
        if let Some(limit) = &self.fitted {
            draft = draft.saw(place, "chance_behind", limit.chance_behind, limit.text());
        }
        match &self.clusters {
            Some(clusters) if self.level.is_none() => of_clusters(draft, place, clusters),
            _ => draft,
        }
    }
}

/// A queue on the path, by the bursts that it lost or the level at which it overflows.
fn on_path(view: &View) -> Result<Option<Finding>, Missing> {
    let marks = Marks::of(view)?;
    let Some(confidence) = marks.confidence() else { return Ok(None) };
    let held = held(view, parts::LOSSES)?;
    let policed = || Policing::of(view).ok().flatten();
    if !held.is_most()
        || dropped_at_host(view)?
        || policed().is_some_and(|seen| seen.confidence >= confidence)
        || (confidence == Confidence::Possible && path_is_full(view))
        || is_local(view)?
    {
        return Ok(None);
    }
    let summary = "a queue or policer's bucket on the path, too short for bursts";
    let draft = Draft::new(RULE.id, Place::Path, confidence, summary)
        .share(held.share())
        .share_between(held.between_percent());
    marks
        .describe(draft, view.sender.place())
        .predicted(next_after(view, &[RULE.id]))
        .changes(to_bbr(view, "BBR paces, so its bursts fit a shorter queue"))
        .advice("at the bottleneck, set a queue of one round trip at its rate")
        .found()
}

/// Whether the hosts dropped themselves what was lost, or nothing was but by mistake.
fn dropped_at_host(view: &View) -> Result<bool, Missing> {
    let (side, again) = (&view.sender, view.sender.retransmitted_segments_in_all()?);
    let dropped = side.queue_drops().unwrap_or(0.0) + view.arrival_drops().unwrap_or(0.0);
    Ok(dropped.max(side.needless_retransmits().unwrap_or(0.0))
        >= MIN_DROPPED_BY_HOSTS_SHARE * again)
}

fn of_burst(draft: Draft, place: Place, burst: &BurstLoss) -> Draft {
    let lost = format!(
        "slow start lost {:.0} of {:.0} packets at once, at a window of {:.0} segments",
        burst.start.lost, burst.start.sent, burst.window
    );
    let since = percent(burst.since.share());
    let passed = if burst.outgrown {
        format!(
            "windows of {:.0} segments, grown step by step, have passed since, with {since} of the packets lost",
            burst.passed
        )
    } else {
        format!(
            "the window was cut then, and has been full most of the time since, at up to {:.0} segments, with {since} of \
             the packets lost",
            burst.passed
        )
    };
    draft.saw(place, "startup_lost_percent", burst.start.share() * 100.0, lost).saw(
        place,
        "window_passed_segments",
        burst.passed,
        passed,
    )
}

fn of_level(draft: Draft, place: Place, level: &Level) -> Draft {
    let met = format!(
        "losses cut the window {} times to the same level, {:.0} segments; the rate fell to {} of the best on average",
        level.losses,
        level.left,
        percent(level.used)
    );
    draft.saw(place, "rate_of_best_percent", level.used * 100.0, met)
}

fn of_clusters(draft: Draft, place: Place, clusters: &Clusters) -> Draft {
    let several = format!(
        "{:.0} packets were lost in {} groups, several at once: {:.1} times as unevenly as random loss",
        clusters.lost, clusters.events, clusters.dispersion
    );
    draft.saw(place, "loss_dispersion", clusters.dispersion, several)
}

fn draft(view: &View, queue: &ShortQueue) -> Result<Draft, Missing> {
    let share = queue.dropped_share;
    let (place, device) = (view.sender.place(), view.sender.device()?);
    let summary = format!("the {} queue on {device}, too short", view.sender.text(QDISC_KIND)?);
    let dropped = format!(
        "the queue on {device} dropped {} of the packets handed to it (tc -s qdisc: dropped)",
        percent(share)
    );
    let draft = Draft::new(RULE.id, place, queue.confidence, summary).saw(
        place,
        RULE.witness_name,
        share * 100.0,
        dropped,
    );
    let (Some(shaper), goodput) = (&queue.shaper, view.goodput()?) else { return Ok(draft) };
    let part = goodput / shaper.ceiling;
    let gives = format!(
        "{} of the {} that the shaper's rate leaves for payload",
        percent(part),
        rate(shaper.ceiling)
    );
    Ok(draft.saw(place, "goodput_of_shaper_percent", part * 100.0, gives))
}

fn longer_queue(view: &View, queue: &ShortQueue) -> Option<Change> {
    let shaper = queue.shaper.as_ref().filter(|shaper| shaper.kind == "tbf")?;
    let limit = queue.limit_bytes.as_ref().ok()?;
    let needed = needed_bytes(view, shaper);
    let values = (Some(format!("{limit:.0}")), format!("{needed:.0}"));
    let why = "one round trip plus 10 ms at its rate, at least two batches of segmentation offload";
    // With a queue that is long enough, something else makes it drop.
    (needed > *limit)
        .then(|| of_host(&view.sender, "qdisc.tbf.limit", Some(shaper.device), values, why))
}

/// Packets that the local queue dropped of those handed to it, percent; if it dropped none, those
/// that slow start lost on the path.
fn witness(view: &View) -> Result<f64, Missing> {
    let local = view.sender.queue_drop_share()?;
    if local > 0.0 {
        return Ok(local * 100.0);
    }
    Ok(BurstLoss::of(view)?.map_or(0.0, |burst| burst.start.share() * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;
    use goodput_model::{Place, TcpInfo};

    fn short() -> Case {
        // 1 Gbit/s, 125000 bytes of bucket and 15 kB of queue: 0.1 Mbit/s, as measured.
        let case = Case::shaper_burst().tbf(1e9, 125_000).goodput(1e5);
        case.fact(Near, QDISC_LIMIT, 15_360u64).grows(Near, "qdisc.drops", 60_000)
    }

    #[test]
    fn fires_where_no_batch_fits_and_raises_the_limit() {
        let finding = fires(&RULE, short());
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Certain));
        assert_eq!(finding.changes[0].as_argument(), "qdisc.tbf.limit@eth0=15360,1375000");
    }

    #[test]
    fn a_queue_that_is_long_enough_is_not_made_shorter() {
        let finding = fires(&RULE, short().fact(Near, QDISC_LIMIT, 3_000_000u64));
        assert!(finding.changes.is_empty(), "{:?}", finding.changes);
    }

    #[test]
    fn stays_quiet_where_the_shaper_gives_its_rate_or_little_is_dropped() {
        quiet(&RULE, short().goodput(950e6));
        quiet(&RULE, short().grows(Near, "qdisc.drops", 90));
        quiet(&RULE, Case::path_loss());
    }

    #[test]
    fn few_drops_that_keep_the_window_cut() {
        // 50 Mbit/s, 40 ms, a queue of 15 kB: 2 packets dropped in slow start, 31 Mbit/s, as measured.
        let few = |window: u64| {
            let shaped = Case::path_loss().tbf(5e7, 10_000).goodput(31e6).retransmitted(0.0);
            let dropped = shaped.fact(Near, QDISC_LIMIT, 15_000u64).grows(Near, "qdisc.drops", 2);
            dropped.tcp(move |tcp, _| {
                tcp.snd_ssthresh_segments = Some(73);
                tcp.snd_cwnd_segments = Some(window);
                tcp.unacked_segments = Some(100);
            })
        };
        assert_eq!(fires(&RULE, few(100)).confidence, Confidence::Certain);
        quiet(&RULE, few(300));
    }

    #[test]
    fn without_a_known_limit_it_is_only_possible() {
        let case = Case::path_loss().grows(Near, "qdisc.drops", 5000);
        let finding = fires(&RULE, case.grows(Near, "qdisc.sent_packets", 100_000));
        assert_eq!(finding.confidence, Confidence::Possible);
        assert!(finding.changes.is_empty());
    }

    #[test]
    fn a_queue_on_the_path_loses_what_slow_start_sends_at_once() {
        // 10 packets at 100 Mbit/s and 20 ms, as measured: 11 of 253 packets, then none.
        let case = |last: u64| {
            Case::path_loss().retransmitted(0.0).without_links().tcp(move |tcp, number| {
                let again = 11 * u64::from(number > 1);
                (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(again), Some(again * 1448));
                tcp.data_segs_out = Some(126 * number);
                tcp.snd_ssthresh_segments =
                    Some(if number > 1 { 26 } else { TcpInfo::INFINITE_SSTHRESH });
                tcp.snd_cwnd_segments = Some(26 + (last - 26) * number / 40);
                tcp.unacked_segments = tcp.snd_cwnd_segments;
            })
        };
        let finding = fires(&RULE, case(126));
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        // Chance may lose a burst, too, if no larger window passes later.
        assert_eq!(fires(&RULE, case(30)).confidence, Confidence::Possible);
    }

    #[test]
    fn cannot_tell_without_the_qdisc() {
        cannot_tell(&RULE, short().without(Near, "qdisc"));
    }
}
