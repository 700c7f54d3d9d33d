//! The control chart of one path whose rhythm follows one clock: takes each test as it comes, and says when the path
//! changed for good.
//!
//! A test counts by the logarithm of its goodput, without the daily rhythm. The newest tests are compared by ranks with
//! the earlier ones since the last change: the Mann-Whitney statistic in a window that slides (Hawkins and Deng, "A
//! Nonparametric Change-Point Control Chart", Journal of Quality Technology 42, 2010; windows: Lai, "Sequential
//! Changepoint Detection", JRSS B 57, 1995). All lengths of the window are tried; the likeliest one says when it began.
//!
//! Noise of a path is rarely independent: a busy hour lasts. So what a test inherits from the one before it is taken out
//! first, and a sum of places is judged by how sums of as many tests varied in the path's own past (`noise`).

use goodput_model::{Estimate, median};

use crate::noise::Noise;
use crate::ranks::{place, probability, standard_sum};
use crate::rhythm::{Rhythm, Seen};
use crate::shift::shift;
use crate::step::Step;

/// Time measured before a change can be found, days: with less, a rhythm looks like a change.
pub const LEARNING_DAYS: f64 = 2.0;
/// Time that counts for the rhythm and for the path's usual noise, days.
const MEMORY_DAYS: f64 = 28.0;
/// Most tests kept, however often they come.
pub const MAX_TESTS: usize = 20_000;
/// Shortest window: a change lasts.
pub(crate) const MIN_WINDOW: usize = 4;
/// Longest window. A longer one would find smaller changes, later.
pub(crate) const MAX_WINDOW: usize = 32;
/// Fewest tests before the window. With 24, four tests below all others have a probability of 1 in 20 000.
const MIN_REFERENCE: usize = 24;
/// Tests before the window that count for the size of a change.
const COMPARED: usize = 200;
/// Probability, for one window, below which a change is reported. Windows overlap and have many lengths:
/// `tests/months.rs` counts what this means for a month.
const LEVEL: f64 = 1e-6;
/// Deviation from the mean, in standard deviations, below which the probability is not computed: it would be above
/// 1 %, because a sum of uniforms has lighter tails than a normal distribution.
const FAR_ENOUGH: f64 = 2.5;
const SECONDS_OF_A_DAY: f64 = 86_400.0;

/// One whole test of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Number of its record, for the caller.
    pub id: i64,
    /// When it began, seconds since 1970, UTC.
    pub at_s: f64,
    /// Local time of day, 0 to 1; to a chart of one clock, the time of day by this clock.
    pub day_share: f64,
    /// Goodput, bits per second, above zero.
    pub goodput: f64,
}

/// A change of the path that lasts.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The last test before it.
    pub last_before: Point,
    /// The first test after it.
    pub first_since: Point,
    /// The newest test.
    pub newest: Point,
    /// Number of tests since the change.
    pub tests: usize,
    /// Usual goodput before, bits per second, without the daily rhythm.
    pub before: f64,
    /// Usual goodput since, bits per second, without the daily rhythm.
    pub since: f64,
    /// Goodput since, divided by that before, with its interval.
    pub ratio: Estimate,
    /// Probability that tests of an unchanged path differ as much, for one window.
    pub probability: f64,
}

impl Change {
    /// Its size alone.
    pub fn step(&self) -> Step {
        Step { at_s: self.first_since.at_s, ratio: self.ratio }
    }
}

/// The chart of one path, by one clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct OneClock {
    points: Vec<Point>,
    /// Logarithm of each point without the rhythm.
    residuals: Vec<f64>,
    /// Number of changes before each point.
    segments: Vec<usize>,
    rhythm: Rhythm,
    /// Usual time between two tests, seconds; none until the first fit.
    spacing_s: Option<f64>,
    /// Tests since the last fit.
    since_fit: usize,
    noise: Noise,
    /// Usual logarithm in this segment, without the rhythm.
    level: f64,
    /// News of this segment's tests that the window has left, sorted.
    reference: Vec<f64>,
}

impl OneClock {
    /// The chart after these tests, oldest first. Those that are marked are the first ones after the changes found by then.
    pub(crate) fn restored(tests: &[(Point, bool)]) -> Self {
        let mut chart = Self::default();
        for (point, begins_change) in tests {
            if chart.take(*point)
                && *begins_change
                && let Some(segment) = chart.segments.last_mut()
            {
                *segment += 1;
            }
        }
        if chart.points.len() >= MIN_REFERENCE {
            chart.learn();
        }
        chart
    }

    /// Takes the next test. Returns a change if this test makes one certain enough.
    ///
    /// A goodput of zero or less has no logarithm, and is left out: nothing was measured.
    pub(crate) fn push(&mut self, point: Point) -> Option<Change> {
        if !self.take(point) {
            return None;
        }
        self.fit_when_due();
        self.spacing_s?;
        self.slide();
        let (window, probability) = self.least_likely()?;
        (probability < LEVEL).then(|| self.changed(window, probability)).flatten()
    }

    /// Appends a test, if it has a logarithm.
    fn take(&mut self, point: Point) -> bool {
        if point.goodput.is_nan() || point.goodput <= 0.0 {
            return false;
        }
        self.points.push(point);
        self.residuals.push(self.without_rhythm(&point));
        self.segments.push(self.segments.last().copied().unwrap_or_default());
        self.since_fit += 1;
        true
    }

    /// Whether it has seen enough to find a change.
    pub(crate) fn has_learned(&self) -> bool {
        self.spacing_s.is_some()
    }

    /// The tests since the last change.
    fn segment(&self) -> std::ops::Range<usize> {
        let current = self.segments.last().copied().unwrap_or_default();
        self.segments.partition_point(|segment| *segment < current)..self.points.len()
    }

    fn without_rhythm(&self, point: &Point) -> f64 {
        point.goodput.ln() - self.rhythm.at(point.day_share)
    }

    fn residual(&self, index: usize) -> f64 {
        self.residuals[index]
    }

    /// What a test adds to what the test before it made likely.
    fn news(&self, index: usize) -> f64 {
        let off = |index: usize| self.residual(index) - self.level;
        // The first test of a segment follows another level.
        let before = index.checked_sub(1).filter(|before| self.segment().contains(before));
        self.noise.news(before.map(off), off(index))
    }

    /// The median of the segment's tests before the window.
    fn set_level(&mut self) {
        let segment = self.segment();
        let until = segment.end - self.longest_window().min(segment.len().saturating_sub(1));
        self.level =
            median((segment.start..until).map(|index| self.residual(index))).unwrap_or_default();
        self.reference.clear();
    }

    /// Learns the rhythm once a day, and first when enough was measured.
    fn fit_when_due(&mut self) {
        let due = match self.spacing_s {
            // Asked now and then: the median of all times costs more than a test's share.
            None => self.points.len() >= MIN_REFERENCE && self.points.len().is_multiple_of(8),
            Some(spacing_s) => self.since_fit as f64 * spacing_s >= SECONDS_OF_A_DAY,
        };
        if due {
            self.learn();
        }
    }

    /// Learns the rhythm, if enough was measured.
    fn learn(&mut self) {
        let Some(spacing_s) = self.usual_spacing() else { return };
        if self.points.len() as f64 * spacing_s < LEARNING_DAYS * SECONDS_OF_A_DAY {
            return;
        }
        self.spacing_s = Some(spacing_s);
        self.since_fit = 0;
        self.forget(spacing_s);
        self.fit(spacing_s);
    }

    /// The median, which a clock that steps, and a gap, leave alone.
    fn usual_spacing(&self) -> Option<f64> {
        let pairs = self.points.windows(2);
        median(pairs.map(|pair| (pair[1].at_s - pair[0].at_s).abs()))
            .filter(|spacing| *spacing > 0.0)
    }

    /// Leaves out what is older than the memory. By number, because a clock may step.
    fn forget(&mut self, spacing_s: f64) {
        let remembered = (MEMORY_DAYS * SECONDS_OF_A_DAY / spacing_s) as usize;
        let most = remembered.clamp(2 * (MAX_WINDOW + MIN_REFERENCE), MAX_TESTS);
        let surplus = self.points.len().saturating_sub(most);
        self.points.drain(..surplus);
        self.residuals.drain(..surplus);
        self.segments.drain(..surplus);
        let first = self.segments.first().copied().unwrap_or_default();
        self.segments.iter_mut().for_each(|segment| *segment -= first);
    }

    /// Learns the rhythm and the usual noise, from all but the tests that may be of an unknown change.
    fn fit(&mut self, spacing_s: f64) {
        let known = self.points.len() - self.longest_window().min(self.points.len());
        let seen: Vec<Seen> = self.points[..known]
            .iter()
            .zip(&self.segments)
            .map(|(point, segment)| Seen {
                day_share: point.day_share,
                value: point.goodput.ln(),
                segment: *segment,
            })
            .collect();
        self.rhythm = Rhythm::fit(&seen, SECONDS_OF_A_DAY / spacing_s);
        self.residuals = self.points.iter().map(|point| self.without_rhythm(point)).collect();
        self.noise = Noise::of(&self.rhythm, &seen, MAX_WINDOW);
        self.set_level();
    }

    /// The longest window that leaves enough tests before it in this segment.
    fn longest_window(&self) -> usize {
        MAX_WINDOW.min(self.segment().len().saturating_sub(MIN_REFERENCE))
    }

    /// Takes the tests that the longest window has left into the reference.
    fn slide(&mut self) {
        let segment = self.segment();
        let until = segment.end - self.longest_window();
        if self.reference.is_empty() {
            self.reference = (segment.start..until).map(|index| self.news(index)).collect();
            self.reference.sort_by(f64::total_cmp);
        }
        for index in segment.start + self.reference.len()..until {
            let value = self.news(index);
            let at = self.reference.partition_point(|other| *other < value);
            self.reference.insert(at, value);
        }
    }

    /// The window whose tests are the least likely ones of an unchanged path, and their probability.
    fn least_likely(&self) -> Option<(usize, f64)> {
        let last = self.points.len();
        let mut sum = 0.0;
        let mut least: Option<(usize, f64)> = None;
        for tests in 1..=self.longest_window() {
            sum += place(&self.reference, self.news(last - tests));
            if tests < MIN_WINDOW {
                continue;
            }
            let inflation = self.noise.inflation(tests);
            let standard = standard_sum(sum, tests, self.reference.len(), inflation);
            let m = tests as f64;
            if (standard - m / 2.0).abs() < FAR_ENOUGH * (m / 12.0).sqrt() {
                continue;
            }
            let probability = probability(standard, tests);
            if least.is_none_or(|(_, other)| probability < other) {
                least = Some((tests, probability));
            }
        }
        least
    }

    /// Begins a new segment with the tests of the window.
    fn changed(&mut self, window: usize, probability: f64) -> Option<Change> {
        let first = self.points.len() - window;
        let from = self.segment().start.max(first.saturating_sub(COMPARED));
        let of = |range: std::ops::Range<usize>| -> Vec<f64> {
            range.map(|index| self.residual(index)).collect()
        };
        let (before, since) = (of(from..first), of(first..self.points.len()));
        let shift = shift(&before, &since, self.noise.of_means())?;
        let change = Change {
            last_before: self.points[first - 1],
            first_since: self.points[first],
            newest: *self.points.last()?,
            tests: window,
            before: median(before)?.exp(),
            since: median(since)?.exp(),
            ratio: Estimate {
                value: shift.value.exp(),
                low: shift.low.exp(),
                high: shift.high.exp(),
            },
            probability,
        };
        self.segments[first..].iter_mut().for_each(|segment| *segment += 1);
        self.set_level();
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUARTER_HOUR_S: f64 = 900.0;

    /// The n-th test of every quarter of an hour.
    fn point(n: usize, goodput: f64) -> Point {
        let day_share = (n % 96) as f64 / 96.0;
        Point { id: n as i64, at_s: n as f64 * QUARTER_HOUR_S, day_share, goodput }
    }

    /// Noise within ±2 %, the same in each run.
    fn noise(n: usize) -> f64 {
        // The golden ratio spreads multiples evenly (Weyl 1916).
        1.0 + 0.04 * ((n as f64 * 0.618_033_988_75).fract() - 0.5)
    }

    fn changes(points: impl IntoIterator<Item = Point>) -> Vec<Change> {
        let mut chart = OneClock::default();
        points.into_iter().filter_map(|point| chart.push(point)).collect()
    }

    #[test]
    fn a_lasting_drop_is_found_at_its_beginning_and_once() {
        let goodput = |n| noise(n) * if n < 500 { 9.4e8 } else { 5.5e8 };
        let found = changes((0..700).map(|n| point(n, goodput(n))));
        let [change] = &found[..] else { panic!("{found:?}") };
        assert_eq!((change.last_before.id, change.first_since.id), (499, 500));
        assert!(change.tests <= 8, "{change:?}");
        let ratio = change.ratio;
        assert!(ratio.low < 0.585 && ratio.high > 0.585 && ratio.value < 0.6, "{ratio:?}");
        assert!((change.before / 9.4e8 - 1.0).abs() < 0.02, "{change:?}");
        assert!((change.since / 5.5e8 - 1.0).abs() < 0.02, "{change:?}");
    }

    #[test]
    fn a_rise_is_a_change_too() {
        let goodput = |n| noise(n) * if n < 300 { 1e8 } else { 1.3e8 };
        let found = changes((0..400).map(|n| point(n, goodput(n))));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ratio.value > 1.25, "{found:?}");
    }

    #[test]
    fn a_daily_rhythm_bad_tests_and_days_without_tests_are_no_change() {
        let evening = |n: usize| if (76..92).contains(&(n % 96)) { 0.9 } else { 1.0 };
        let bad = |n: usize| if n.is_multiple_of(41) { 0.3 } else { 1.0 };
        let missing = |n: &usize| !(480..770).contains(n);
        let all = (0..2000).filter(missing);
        let found = changes(all.map(|n| point(n, 1e8 * evening(n) * noise(n) * bad(n))));
        assert_eq!(found, [], "{found:?}");
    }

    #[test]
    fn nothing_is_said_before_the_rhythm_of_two_days_is_known() {
        let mut chart = OneClock::default();
        for n in 0..190 {
            let goodput = if n < 100 { 1e8 } else { 5e7 };
            assert_eq!(chart.push(point(n, goodput * noise(n))), None);
            assert!(!chart.has_learned(), "{n}");
        }
    }

    #[test]
    fn a_clock_that_steps_back_or_far_ahead_changes_nothing() {
        let stepped = |n: usize| {
            let step_s = if n < 200 {
                0.0
            } else if n < 210 {
                4e9
            } else {
                -7200.0
            };
            let point = point(n, 1e8 * noise(n));
            Point { at_s: point.at_s + step_s, ..point }
        };
        let found = changes((0..900).map(stepped));
        assert_eq!(found, [], "{found:?}");
    }

    #[test]
    fn nothing_measured_is_no_test() {
        let mut chart = OneClock::default();
        for goodput in [0.0, -1.0, f64::NAN] {
            assert_eq!(chart.push(point(0, goodput)), None);
        }
        assert!(chart.points.is_empty());
    }

    /// `goodput watch --once` begins anew with each test.
    #[test]
    fn a_chart_that_is_restored_after_each_test_finds_the_same_change_once() {
        let all: Vec<Point> =
            (0..560).map(|n| point(n, noise(n) * if n < 500 { 9.4e8 } else { 5.5e8 })).collect();
        let mut marked: Vec<(Point, bool)> = all.iter().map(|point| (*point, false)).collect();
        let mut found = Vec::new();
        for n in 480..all.len() {
            if let Some(change) = OneClock::restored(&marked[..n]).push(all[n]) {
                marked[change.first_since.id as usize].1 = true;
                found.push(change);
            }
        }
        let [change] = &found[..] else { panic!("{found:?}") };
        assert!(change.first_since.id == 500 && change.tests <= 8, "{change:?}");
    }

    #[test]
    fn equal_tests_change_only_when_they_differ() {
        let found = changes((0..500).map(|n| point(n, if n < 400 { 1e9 } else { 9e8 })));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].first_since.id, 400);
    }
}
