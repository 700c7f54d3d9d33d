//! What lies behind the local shaper and drops what that lets through.

use goodput_model::{Bytes, Change, Known, Missing, ShapingKind, ShapingTest};

use super::{Answer, Seen, resized, say};
use crate::behind::Behind;
use crate::kind::waited_for_rate;

/// Share of what behind takes at once that a bucket may have: it must not be full when the next burst comes.
const SAFE_SHARE: f64 = 0.5;

/// Datagrams of the train that were lost behind the local shaper: all that reached it and that it did not drop itself, by its own
/// count.
pub(super) fn lost_behind(seen: &Seen) -> Option<u64> {
    let (train, around) = (seen.train()?, seen.sender.around_train.as_ref()?);
    seen.shaper()?;
    let dropped = around.sender.before.grown(around.sender.after, "qdisc.drops").ok()?;
    train.lost.saturating_sub(train.refused).checked_sub(dropped).filter(|lost| *lost > 0)
}

/// Whether a policer holds the rate: the only one, or one behind the local shaper.
pub(super) fn is_policed(seen: &Seen) -> bool {
    let second = || seen.shortfall().is_some() && seen.sender.behind == Some(Behind::Drops);
    seen.train().is_some_and(|train| train.kind == ShapingKind::Policer) || second()
}

/// Whether a policer behind the local shaper has the higher rate.
fn is_faster_behind(seen: &Seen) -> bool {
    seen.train().is_some_and(|train| {
        train.kind == ShapingKind::Policer && waited_for_rate(&train.rate_waits_per_call)
    }) && seen.given().is_none()
}

/// The test without what the losses say of the local shaper's queue, if they happened behind it.
pub(super) fn without_losses_of_others(
    mut test: ShapingTest,
    lost_behind: Option<u64>,
) -> ShapingTest {
    if let (Some(lost), Known::Value(train)) = (lost_behind, &mut test.train)
        && let Known::Value(queue) = &mut train.queue
        && lost > train.lost.saturating_sub(train.refused) / 2
    {
        queue.discipline = Known::Missing(Missing::because(format!(
            "the shaper itself dropped {} of the {} datagrams that were lost",
            train.lost.saturating_sub(train.refused).saturating_sub(lost),
            train.lost
        )));
    }
    test
}

/// A bucket that lets more through at once than the path behind takes: the shaper gives its rate, and what is behind it drops
/// a part of each burst of TCP.
pub(super) fn drops_bursts(seen: &Seen) -> Answer {
    let (burst, takes) = (seen.burst()?, taken_at_once(seen)?);
    let small = match smaller(seen) {
        Some(change) => format!("a bucket of {} passes more", Bytes(change.to.parse().ok()?)),
        None => "a bucket that passes there is too small for the rate".to_owned(),
    };
    let takes = match takes {
        Some(bytes) => format!("takes about {} and drops the rest", Bytes(bytes as u64)),
        None => "drops a part".to_owned(),
    };
    Some(say(
        "dropped-bursts",
        format!(
            "the bucket lets {burst:.0} bytes through at once, and what is behind it {takes}; TCP sends such bursts: {small}"
        ),
    ))
}

/// What the path behind the local shaper takes at once, bytes, if that is known, and if it is less than the shaper's bucket
/// and TCP suffers.
fn taken_at_once(seen: &Seen) -> Option<Option<f64>> {
    let (train, burst) = (seen.train()?, seen.burst()?);
    lost_behind(seen).filter(|_| seen.tcp_lags())?;
    let frame = train.frame_bytes.0 as f64;
    let known = train.bucket_bytes.value().filter(|bucket| bucket.low > 0.0);
    let cut = known.filter(|bucket| bucket.high + frame < burst).map(|bucket| bucket.low);
    match cut {
        Some(_) if seen.gives_what_is_set() || is_faster_behind(seen) => Some(cut),
        None if is_faster_behind(seen) => Some(None),
        _ => None,
    }
}

/// A bucket that passes behind the local shaper, if one is enough for the rate.
pub(super) fn smaller(seen: &Seen) -> Option<Change> {
    let (takes, enough) = (taken_at_once(seen)?, seen.enough?.for_rate_bytes.0 as f64);
    let most = takes.unwrap_or(f64::INFINITY).min(seen.burst()?);
    let bytes = takes.map_or(enough, |takes| enough.max(takes * SAFE_SHARE));
    let why = "enough for late timers, and less than what is behind the shaper takes at once";
    resized::sized(seen, (bytes < most).then_some(Bytes(bytes.ceil() as u64))?, why)
}
