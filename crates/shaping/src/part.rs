//! The longest part of a train without a hole: a long time in which nothing came, because the path was broken or because a host
//! had stopped. A hole is not what holds the rate, and no line through it shows that.

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

/// A part of a train.
pub(crate) struct Part {
    /// Its datagrams; times are since the first of them.
    pub(crate) trace: Trace,
    before: Before,
}

/// What was before a part.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    /// The pause before the train.
    Train,
    /// A sender that stopped for so many seconds.
    Pause(f64),
    /// A path that lost everything.
    Outage,
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
    let part = (enough && most.len() < trace.came.len()).then(|| Part {
        before: before(trace, most),
        trace: Trace { came: since_first(most), frame: trace.frame },
    });
    part.filter(|part| part.trace.lasts())
}

fn before(trace: &Trace, part: &[Came]) -> Before {
    let first = part[0];
    let place = trace.came.partition_point(|came| came.came_s < first.came_s);
    match place.checked_sub(1).map(|place| trace.came[place]) {
        None => Before::Train,
        Some(_) if first.lost_before > 0 => Before::Outage,
        Some(last) => Before::Pause(first.came_s - last.came_s),
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
            Before::Outage => Err(Missing::because(
                "the path was broken, and whether the bucket was full afterwards is unknown",
            )),
            Before::Pause(seconds) if depth.high > rate * seconds => {
                let (pause, rate) = (Seconds(seconds), BitRate(rate * 8.0));
                let filled = Bytes((rate.0 / 8.0 * seconds) as u64);
                Err(Missing::because(format!(
                    "a host stopped for {pause}, in which a bucket gains no more than {filled} at {rate}"
                )))
            }
            Before::Pause(_) | Before::Train => Ok(depth),
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

    /// 1000 datagrams within a second, with a hole after this many.
    fn with_hole(after: u32, seconds: f64) -> Trace {
        came((0..1000).map(|n| 1.0 + f64::from(n) * 1e-3 + if n >= after { seconds } else { 0.0 }))
    }

    #[test]
    fn the_part_with_most_datagrams_counts_by_itself() {
        let part = longest(&with_hole(300, 0.6)).unwrap();
        assert_eq!(part.trace.came.len(), 700);
        assert!(part.trace.came[0].came_s.abs() + part.trace.came[0].sent_s.abs() < 1e-9);
        assert!(matches!(part.before, Before::Pause(_)), "{:?}", part.before);
        let first = longest(&with_hole(700, 0.6)).unwrap();
        assert_eq!((first.trace.came.len(), first.before), (700, Before::Train));
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
        assert!(why.contains("gains no more than 60.1 kB at 800 kbit/s"), "{why}");
        let mut broken = with_hole(300, 0.6);
        broken.came[300].lost_before = 900;
        let part = longest(&broken).unwrap();
        assert!(part.bucket(depth(10e3), 100e3).is_err());
        assert_eq!(part.trace.came[0].lost_before, 0);
    }
}
