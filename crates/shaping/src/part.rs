//! The longest part of a train without a hole: a long time in which nothing came, because the path was broken or stood still, or
//! because the sender had stopped. A hole is not what holds the rate, and no line through it shows that.

use goodput_model::{BitRate, Bytes, Estimate, Missing, Seconds};

use crate::trace::{Came, Trace, Train};

/// Shortest hole, as a share of the time in which datagrams came. What lets datagrams through in bursts has shorter pauses, or so
/// many that no part has most of them.
const HOLE_SHARE: f64 = 0.2;
/// Smallest share of the datagrams that the part must have.
const MOST: f64 = 0.6;
/// Smallest share of the datagrams outside of the part with losses before them that shows more than one broken path: a policer
/// drops some before almost each.
const DROPPED_SHARE: f64 = 0.25;
/// Smallest share of a hole in which the sender sent nothing, if it had stopped. Chosen: what explains most of a hole is its reason.
const MIN_PAUSED_SHARE: f64 = 0.5;

/// A part of a train.
pub(crate) struct Part {
    /// Its datagrams; times are since the first of them.
    pub(crate) trace: Trace,
    /// Time in which the path stood still, before or after it: nothing came, although the sender sent and nothing was lost.
    pub(crate) stalled_s: Option<f64>,
    before: Before,
}

/// What was before a part.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    /// The pause before the train.
    Train,
    /// A hole.
    Hole(Hole),
}

/// Why nothing came for a time, by what the sender did.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Hole {
    /// The sender had stopped for so many seconds.
    Pause(f64),
    /// It sent, and all was lost.
    Outage,
    /// It sent, and what it had sent came later.
    Stall,
}

/// The part, if the train has a hole and the part has most datagrams, which were sent, and came, at more than one time.
pub(crate) fn longest(trace: &Trace) -> Option<Part> {
    let (first, last) = (trace.came.first()?, trace.came.last()?);
    let least_s = (last.came_s - first.came_s) * HOLE_SHARE;
    let is_hole = |one: &Came, next: &Came| next.came_s - one.came_s >= least_s;
    let parts = trace.came.chunk_by(|one, next| !is_hole(one, next));
    let most = parts.max_by_key(|part| part.len())?;
    let enough =
        most.len() >= Train::MIN_ARRIVALS && most.len() as f64 >= trace.came.len() as f64 * MOST;
    if !enough || most.len() == trace.came.len() {
        return None;
    }
    let of_part = Trace { came: since_first(most), frame: trace.frame };
    if !of_part.lasts() {
        return None;
    }
    let each_s = trace.frame / of_part.offered_bytes_per_s();
    let between =
        |one: &Came, next: &Came| is_hole(one, next).then(|| Hole::between(one, next, each_s));
    let stalled =
        trace.came.windows(2).filter(|two| between(&two[0], &two[1]) == Some(Hole::Stall));
    let stalled_s: f64 = stalled.map(|two| two[1].came_s - two[0].came_s).sum();
    let place = trace.came.partition_point(|came| came.came_s < most[0].came_s);
    let last = place.checked_sub(1);
    let before = last.and_then(|last| between(&trace.came[last], &trace.came[place]));
    Some(Part {
        trace: of_part,
        stalled_s: (stalled_s > 0.0).then_some(stalled_s),
        before: before.map_or(Before::Train, Before::Hole),
    })
}

impl Hole {
    /// That between two arrivals. A sender that goes on sends a datagram each `each_s` seconds, whether it comes or not.
    fn between(one: &Came, next: &Came, each_s: f64) -> Self {
        let paused_s = next.sent_s - one.sent_s - (next.lost_before as f64 + 1.0) * each_s;
        match paused_s >= MIN_PAUSED_SHARE * (next.came_s - one.came_s) {
            true => Self::Pause(paused_s),
            false if next.lost_before > 0 => Self::Outage,
            false => Self::Stall,
        }
    }
}

/// The same with times since the first arrival and the first sending, and without what was lost before.
fn since_first(part: &[Came]) -> Vec<Came> {
    let came_s = part[0].came_s;
    let sent_s = part.iter().map(|came| came.sent_s).fold(f64::INFINITY, f64::min);
    let each = part.iter().enumerate().map(|(place, came)| Came {
        sent_s: came.sent_s - sent_s,
        came_s: came.came_s - came_s,
        wait_s: came.wait_s,
        lost_before: if place == 0 { 0 } else { came.lost_before },
    });
    each.collect()
}

impl Part {
    /// Whether it leaves out the drops of the `whole` train: the part of a slow policer may be what its bucket let through at
    /// first, and the holes what it dropped.
    pub(crate) fn leaves_out_drops(&self, whole: &Trace) -> bool {
        let drops = |of: &Trace| of.came.iter().filter(|came| came.lost_before > 0).count();
        let outside = whole.came.len().saturating_sub(self.trace.came.len());
        let dropped = drops(whole).saturating_sub(drops(&self.trace));
        dropped > 0 && dropped as f64 >= outside as f64 * DROPPED_SHARE
    }

    /// The depth of the bucket that this part shows, if the bucket was full before; `rate` in bytes per second.
    pub(crate) fn bucket(&self, depth: Estimate, rate: f64) -> Result<Estimate, Missing> {
        match self.before {
            Before::Hole(Hole::Outage) => Err(Missing::because(
                "the path was broken, and whether the bucket was full afterwards is unknown",
            )),
            Before::Hole(Hole::Stall) => Err(Missing::because(
                "the path stood still, and whether the bucket was full afterwards is unknown",
            )),
            Before::Hole(Hole::Pause(seconds)) if depth.high > rate * seconds => {
                let (pause, rate) = (Seconds(seconds), BitRate(rate * 8.0));
                let filled = Bytes((rate.0 / 8.0 * seconds) as u64);
                Err(Missing::because(format!(
                    "the sender stopped for {pause}, in which a bucket gains no more than {filled} at {rate}"
                )))
            }
            Before::Hole(Hole::Pause(_)) | Before::Train => Ok(depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(times: impl Iterator<Item = f64>) -> Trace {
        let at =
            |came_s| Came { sent_s: came_s, came_s: came_s - 1.0, wait_s: 0.0, lost_before: 0 };
        Trace { came: times.map(at).collect(), frame: 1000.0 }
    }

    /// 1000 datagrams within a second, with a hole after this many, in which the sender stops.
    fn with_hole(after: u32, seconds: f64) -> Trace {
        came((0..1000).map(|n| 1.0 + f64::from(n) * 1e-3 + if n >= after { seconds } else { 0.0 }))
    }

    /// The same from a sender that goes on: what it sends in the hole comes after it.
    fn with_stall(after: usize, seconds: f64) -> Trace {
        let mut trace = with_hole(after as u32, seconds);
        for (number, came) in trace.came.iter_mut().enumerate() {
            came.sent_s = number as f64 * 1e-3;
        }
        trace
    }

    /// The same, if all that it sends in the hole is lost.
    fn with_outage(after: usize, seconds: f64) -> Trace {
        let mut trace = with_hole(after as u32, seconds);
        trace.came[after].lost_before = (seconds * 1e3) as u64;
        trace
    }

    #[test]
    fn the_part_with_most_datagrams_counts_by_itself() {
        let part = longest(&with_hole(300, 0.6)).unwrap();
        assert_eq!(part.trace.came.len(), 700);
        assert!(part.trace.came[0].came_s.abs() + part.trace.came[0].sent_s.abs() < 1e-9);
        assert!(matches!(part.before, Before::Hole(Hole::Pause(_))), "{:?}", part.before);
        let first = longest(&with_hole(700, 0.6)).unwrap();
        assert_eq!((first.trace.came.len(), first.before), (700, Before::Train));
        assert_eq!((part.stalled_s, first.stalled_s), (None, None));
    }

    #[test]
    fn a_hole_is_the_senders_if_it_sent_nothing_and_the_paths_otherwise() {
        let before = |trace: &Trace| longest(trace).unwrap().before;
        assert_eq!(before(&with_stall(300, 0.6)), Before::Hole(Hole::Stall));
        assert_eq!(before(&with_outage(300, 0.6)), Before::Hole(Hole::Outage));
        // What was in a full queue when the sender stopped, or when it went on at once, is lost as well.
        let mut paused = with_hole(300, 0.6);
        paused.came[300].lost_before = 40;
        let Before::Hole(Hole::Pause(seconds)) = before(&paused) else { panic!("it stopped") };
        assert!((seconds - 0.56).abs() < 0.01, "{seconds}");
    }

    #[test]
    fn a_path_that_stands_still_is_known_wherever_the_part_is() {
        for after in [300, 700] {
            let part = longest(&with_stall(after, 0.6)).unwrap();
            assert!((part.stalled_s.unwrap() - 0.601).abs() < 1e-6, "{:?}", part.stalled_s);
        }
        assert_eq!(longest(&with_outage(300, 0.6)).unwrap().stalled_s, None);
    }

    #[test]
    fn a_train_without_a_hole_or_of_bursts_is_whole() {
        assert!(longest(&with_hole(300, 0.1)).is_none());
        assert!(longest(&with_hole(500, 0.6)).is_none(), "no part has most");
        let bursts = came((0..1000).map(|n| 1.0 + f64::from(n / 250) * 0.5 + f64::from(n) * 1e-6));
        assert!(longest(&bursts).is_none());
    }

    #[test]
    fn what_came_at_one_time_is_no_part() {
        let at = |n: u32| if n < 700 { 1.0 } else { 2.0 + f64::from(n) * 1e-3 };
        assert!(longest(&came((0..1000).map(at))).is_none());
    }

    #[test]
    fn one_broken_path_is_no_policer() {
        let mut trace = with_hole(990, 0.6);
        let leaves_out = |trace: &Trace| longest(trace).unwrap().leaves_out_drops(trace);
        assert!(!leaves_out(&trace), "nothing was lost");
        trace.came[990].lost_before = 900;
        assert!(!leaves_out(&trace));
        trace.came[990..].iter_mut().for_each(|came| came.lost_before = 4);
        assert!(leaves_out(&trace));
    }

    #[test]
    fn a_bucket_that_may_not_have_been_full_is_unknown() {
        let depth = |value: f64| Estimate { value, low: value, high: value };
        let part = longest(&with_hole(300, 0.6)).unwrap();
        assert!(part.bucket(depth(10e3), 100e3).is_ok());
        let why = part.bucket(depth(70e3), 100e3).unwrap_err().to_string();
        assert!(why.contains("the sender stopped for 600 ms") && why.contains("at 800"), "{why}");
        for broken in [with_outage(300, 0.6), with_stall(300, 0.6)] {
            let part = longest(&broken).unwrap();
            assert!(part.bucket(depth(10e3), 100e3).is_err());
            assert_eq!(part.trace.came[0].lost_before, 0);
        }
    }
}
