//! The control chart of one path. A change is one by the clock of this host, and by a clock that never moves.
//!
//! A path's rhythm is that of its users, who may live by this host's clock or by another one. When this clock moves by an
//! hour (twice a year, or because the host has another time zone), the evening of users who don't live by it comes an hour
//! earlier or later. To a chart by this clock, that looks like a change; to a chart by a clock that goes on as before, the
//! evening of those who do live by it would. So from then on two charts see each test, and only what both call a change is
//! one.

use crate::one_clock::{Change, Mark, OneClock, Point};
use crate::window::MAX_WINDOW;

const SECONDS_OF_A_DAY: f64 = 86_400.0;
/// How far this clock has to move beside UTC, days: half a minute, because tests don't begin at whole seconds.
const MOVED: f64 = 30.0 / SECONDS_OF_A_DAY;

/// The chart of one path.
#[derive(Debug, Clone, Default)]
pub struct Chart {
    by_local: OneClock,
    /// Since this host's clock has moved: the same path by the clock of before.
    by_steady: Option<OneClock>,
    /// How far the local time of day was ahead of UTC at first, days, 0 to 1.
    ahead: Option<f64>,
    /// A change that only one of the two has found so far, and the tests since it was found.
    alone: [Option<(Change, usize)>; 2],
}

impl Chart {
    /// The chart after these tests, oldest first, with the changes that were found to begin with them by then, which are not
    /// found again. More than the last [`MAX_TESTS`](crate::MAX_TESTS) add nothing.
    pub fn restored(tests: &[(Point, Mark)]) -> Self {
        let mut chart = Self { by_local: OneClock::restored(tests), ..Self::default() };
        let (mut moved, mut steady) = (false, Vec::with_capacity(tests.len()));
        for (point, mark) in tests {
            let by_steady = chart.by_first_clock(point);
            moved |= is_apart(point, &by_steady);
            steady.push((by_steady, *mark));
        }
        chart.by_steady = moved.then(|| OneClock::restored(&steady));
        chart
    }

    /// Takes the next test. Returns a change if this test makes one certain enough.
    ///
    /// A value of zero or less has no logarithm, and is left out: nothing was measured.
    pub fn push(&mut self, point: Point) -> Option<Change> {
        let steady = self.by_first_clock(&point);
        if is_apart(&point, &steady) && self.by_steady.is_none() {
            self.by_steady = Some(self.by_local.clone());
        }
        let by_local = self.by_local.push(point);
        let Some(by_steady) = &mut self.by_steady else { return by_local };
        let by_steady = by_steady.push(steady);
        self.agreed([by_local, by_steady])
    }

    /// The test by the clock of the first one.
    fn by_first_clock(&mut self, point: &Point) -> Point {
        let utc_share = (point.at_s / SECONDS_OF_A_DAY).rem_euclid(1.0);
        let ahead = *self.ahead.get_or_insert((point.day_share - utc_share).rem_euclid(1.0));
        Point { day_share: (utc_share + ahead).rem_euclid(1.0), ..*point }
    }

    /// What both charts have found by now, within as many tests as a window has. Of a path that is as before again, one chart
    /// waits for the other one, whatever time this takes: otherwise the change would be the last word.
    fn agreed(&mut self, found: [Option<Change>; 2]) -> Option<Change> {
        for (alone, found) in self.alone.iter_mut().zip(found) {
            let waits = alone.take().map(|(change, tests)| (change, tests + 1));
            let waits =
                waits.filter(|(change, tests)| *tests < MAX_WINDOW || change.takes_back.is_some());
            *alone = found.map(|change| (change, 0)).or(waits);
        }
        let [Some((local, local_age)), Some((steady, _))] = &self.alone else { return None };
        if (local.ratio.value < 1.0) != (steady.ratio.value < 1.0) {
            return None;
        }
        // The later one has seen more tests. That the path is as before again needs one chart alone.
        let (later, earlier) = if *local_age == 0 { (local, steady) } else { (steady, local) };
        let takes_back = later.takes_back.or(earlier.takes_back);
        let change = Change { takes_back, ..later.clone() };
        self.alone = [None, None];
        Some(change)
    }

    /// Whether it has seen enough to find a change.
    pub fn has_learned(&self) -> bool {
        self.by_local.has_learned()
    }
}

/// Whether the clocks of two views of a test have moved.
fn is_apart(point: &Point, steady: &Point) -> bool {
    let apart = (point.day_share - steady.day_share).rem_euclid(1.0);
    apart.min(1.0 - apart) > MOVED
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Estimate;

    fn change(ratio: f64, takes_back: Option<i64>) -> Change {
        let point = |id| Point { id, at_s: 0.0, day_share: 0.0, value: 1e9 };
        Change {
            first_before: point(1),
            last_before: point(7),
            first_since: point(8),
            first_between: [point(8); 2],
            newest: point(11),
            tests: 4,
            before: 1e9,
            since: 1e9 * ratio,
            ratio: Estimate { value: ratio, low: ratio, high: ratio },
            probability: 1e-9,
            takes_back: takes_back.map(point),
        }
    }

    #[test]
    fn what_one_chart_finds_waits_for_the_other_and_a_recovery_for_as_long_as_it_takes() {
        let late = |first: Change, second: Change| {
            let mut chart = Chart::default();
            assert_eq!(chart.agreed([Some(first), None]), None);
            for _ in 0..MAX_WINDOW {
                assert_eq!(chart.agreed([None, None]), None);
            }
            chart.agreed([None, Some(second)])
        };
        assert_eq!(late(change(0.9, None), change(0.9, None)), None);
        assert_eq!(late(change(1.1, Some(3)), change(0.9, None)), None);
        let found = late(change(1.1, Some(3)), change(1.2, None)).unwrap();
        assert_eq!((found.ratio.value, found.takes_back.unwrap().id), (1.2, 3));
    }
}
