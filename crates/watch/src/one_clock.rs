//! The control chart of one path whose rhythm follows one clock: takes each test as it comes, and says when the path
//! changed for good.
//!
//! A test counts by the logarithm of its value, such as the goodput, without the daily rhythm. The newest tests are compared by ranks with
//! the earlier ones since the last change: the Mann-Whitney statistic in a window that slides (Hawkins and Deng, "A
//! Nonparametric Change-Point Control Chart", Journal of Quality Technology 42, 2010; windows: Lai, "Sequential
//! Changepoint Detection", JRSS B 57, 1995). All lengths of the window are tried. When the change began follows from the
//! likelihood of each test (`beginning`).
//!
//! Noise of a path is rarely independent: a busy hour lasts. So what a test inherits from the one before it is taken out
//! first, and a sum of places is judged by how sums of as many tests varied in the path's own past (`noise`).

use goodput_model::{Estimate, median};

use crate::beginning::Beginning;
use crate::blocks;
use crate::noise::Noise;
use crate::ranks::{place, probability, standard_sum};
use crate::recovery::{Recovery, Since};
use crate::rhythm::{Rhythm, Seen};
use crate::shift::{is_sure, ratio, shift};
use crate::step::MOST_S;
use crate::window::{MAX_WINDOW, MIN_WINDOW};

/// Time measured before a change can be found, days: with less, a rhythm looks like a change.
pub const LEARNING_DAYS: f64 = 2.0;
/// Time that counts for the rhythm and for the path's usual noise, days.
const MEMORY_DAYS: f64 = 28.0;
/// Most tests kept, however often they come.
pub const MAX_TESTS: usize = 20_000;
/// Fewest tests before the window. With 24, four tests below all others have a probability of 1 in 20 000.
const MIN_REFERENCE: usize = 24;
/// Tests since a change with which another one is hardly found: the shortest reference, and the longest window after it.
const FEW: usize = MIN_REFERENCE + MAX_WINDOW;
/// Tests between two changes of which it is said what they showed, at least.
const FEWEST: usize = 3;
/// Tests before the window that count for the size of a change.
const COMPARED: usize = 200;
/// Probability, for one window, below which a change is reported. Windows overlap and have many lengths:
/// `tests/months.rs` counts what this means for a month.
const LEVEL: f64 = 1e-6;
/// Deviation from the mean, in standard deviations, below which the probability is not computed: it would be above
/// 1 %, because a sum of uniforms has lighter tails than a normal distribution.
const FAR_ENOUGH: f64 = 2.5;
const SECONDS_OF_A_DAY: f64 = 86_400.0;
/// How often a chart that has not learned looks whether it can, tests: the median of all times costs more than a test's share.
const LOOKS_EVERY: usize = 8;

/// Tests of a path, one every `every_s` seconds, before a change of it can be found.
pub fn tests_to_learn(every_s: f64) -> usize {
    let of_days = (LEARNING_DAYS * SECONDS_OF_A_DAY / every_s).ceil() as usize;
    of_days.max(MIN_REFERENCE).next_multiple_of(LOOKS_EVERY)
}

/// One whole test of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Number of its record, for the caller.
    pub id: i64,
    /// When it began, seconds since 1970, UTC.
    pub at_s: f64,
    /// Local time of day, 0 to 1; to a chart of one clock, the time of day by this clock.
    pub day_share: f64,
    /// What the chart is of, above zero: goodput in bits per second, or another quantity.
    pub value: f64,
}

/// A change of the path that lasts.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The first of the tests before it that it is compared with: since the change before that, if there was one.
    pub first_before: Point,
    /// The last test that is surely before it; not one whose clock was ahead.
    pub last_before: Point,
    /// The first test after it: the likeliest one.
    pub first_since: Point,
    /// The first test after it at the earliest and at the latest: the ends of the interval with 95 % of the likelihood.
    pub first_between: [Point; 2],
    /// The newest test.
    pub newest: Point,
    /// Number of tests since the change.
    pub tests: usize,
    /// Usual value before, without the daily rhythm, of the tests that are surely before it.
    pub before: f64,
    /// Usual value since, without the daily rhythm, of the tests that are surely since then.
    pub since: f64,
    /// Value since, divided by that before, with its interval.
    pub ratio: Estimate,
    /// Probability that tests of an unchanged path differ as much, for one window.
    pub probability: f64,
    /// If the path is as before an earlier change again, the first test after that one.
    pub takes_back: Option<Point>,
}

/// What was found by now to begin with a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark {
    /// Nothing.
    Nothing,
    /// A change.
    Change,
    /// A change after which the path is as before an earlier one again, whose first test began at this time, seconds since
    /// 1970.
    Return(f64),
}

/// The chart of one path, by one clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct OneClock {
    points: Vec<Point>,
    /// Logarithm of each point without the rhythm.
    residuals: Vec<f64>,
    /// Number of changes before each point, without those that were taken back.
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
    /// The chart after these tests, oldest first, and what was found to begin with each by then.
    pub(crate) fn restored(tests: &[(Point, Mark)]) -> Self {
        let mut chart = Self::default();
        for (point, mark) in tests {
            if chart.take(*point) {
                chart.begin(chart.points.len() - 1, *mark);
            }
        }
        if chart.points.len() >= MIN_REFERENCE {
            chart.learn();
        }
        chart
    }

    /// Lets the tests from `first` on follow what begins with them. Those of a change that was taken back are left out: it
    /// is as if it had not been.
    fn begin(&mut self, first: usize, mark: Mark) {
        let change = match mark {
            Mark::Nothing => return,
            Mark::Change => None,
            Mark::Return(began_s) => {
                self.changes().find(|change| self.points[*change].at_s == began_s)
            }
        };
        let segment = match change {
            Some(change) => self.segments[change] - 1,
            // What is taken back may be forgotten.
            None => self.segments[first] + 1,
        };
        self.segments[first..].fill(segment);
        if let Some(change) = change {
            self.points.drain(change..first);
            self.residuals.drain(change..first);
            self.segments.drain(change..first);
        }
    }

    /// The first test after each change, the newest change first.
    fn changes(&self) -> impl Iterator<Item = usize> {
        let last = self.segments.last().copied().unwrap_or_default();
        (1..=last).rev().map(|number| self.segments.partition_point(|segment| *segment < number))
    }

    /// Takes the next test. Returns a change if this test makes one certain enough.
    ///
    /// A value of zero or less has no logarithm, and is left out: nothing was measured.
    pub(crate) fn push(&mut self, point: Point) -> Option<Change> {
        if !self.take(point) {
            return None;
        }
        self.fit_when_due();
        self.spacing_s?;
        self.slide();
        if let Some((change, recovery)) = self.recovery() {
            return Some(self.recovered(change, recovery));
        }
        let (window, probability) = self.least_likely()?;
        (probability < LEVEL).then(|| self.changed(window, probability)).flatten()
    }

    /// Appends a test, if it has a logarithm.
    fn take(&mut self, point: Point) -> bool {
        if point.value.is_nan() || point.value <= 0.0 {
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
        point.value.ln() - self.rhythm.at(point.day_share)
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
            None => {
                self.points.len() >= MIN_REFERENCE && self.points.len().is_multiple_of(LOOKS_EVERY)
            }
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
                value: point.value.ln(),
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

    /// The newest of the changes of which the path is as before again, and since when.
    fn recovery(&self) -> Option<(usize, Recovery)> {
        let segment = self.segment();
        let (last, newest_s) = (self.points.len(), self.points.last()?.at_s);
        // A path with few tests since a change finds hardly another one: its end is the next news, whatever time this takes.
        let most_s = |change: usize| if last - change <= FEW { f64::INFINITY } else { MOST_S };
        let is_recent = |change: &usize| newest_s - self.points[*change].at_s <= most_s(*change);
        let at_s: Vec<f64> = self.points[segment.clone()].iter().map(|point| point.at_s).collect();
        self.changes().take_while(is_recent).find_map(|change| {
            let values = &self.residuals[segment.clone()];
            let (began_s, most_s) = (self.points[change].at_s, most_s(change));
            let since = Since { values, at_s: &at_s, began_s, most_s };
            let before = &self.residuals[self.compared_before(change)];
            Some((change, Recovery::find(before, since, &self.noise)?))
        })
    }

    /// The tests that count as those before a change with this first test.
    fn compared_before(&self, first: usize) -> std::ops::Range<usize> {
        let segment = self.segments[first - 1];
        let begin = self.segments.partition_point(|other| *other < segment);
        begin.max(first.saturating_sub(COMPARED))..first
    }

    /// Goes on with the segment before `change`, which is taken back.
    fn recovered(&mut self, change: usize, recovery: Recovery) -> Change {
        let segment = self.segment();
        let first = self.points.len() - recovery.tests;
        let [earliest, latest] = recovery.between.map(|place| segment.start + place);
        let (earliest, latest) = (earliest.min(first), latest.max(first));
        let beginning = Beginning { first, earliest, latest };
        let before = self.surely_since(segment.start, earliest);
        let takes_back = Some(self.points[change]);
        let (shift, probability) = (recovery.shift, recovery.probability);
        let found = Change { takes_back, ..self.change(before, beginning, shift, probability) };
        self.begin(first, Mark::Return(self.points[change].at_s));
        self.set_level();
        found
    }

    /// Begins a new segment where the change of the window began. None if the tests since then can't say by how much.
    fn changed(&mut self, window: usize, probability: f64) -> Option<Change> {
        let beginning = self.beginning(window)?;
        let first = beginning.first;
        let before = self.segment().start.max(first.saturating_sub(COMPARED))..first;
        let shift = self.amount(before.clone(), &beginning)?;
        let change = self.change(before.start, beginning, shift, probability);
        self.begin(first, Mark::Change);
        self.set_level();
        Some(change)
    }

    /// By how much the path changed since this beginning, if that is sure. Tests that depend strongly on each other need the path's own
    /// past to be sure.
    fn amount(&self, before: std::ops::Range<usize>, beginning: &Beginning) -> Option<Estimate> {
        let Beginning { first, earliest, latest } = *beginning;
        if self.noise.lasts() {
            let past = (&self.residuals[..earliest], &self.segments[..earliest]);
            return blocks::shift(past, &self.residuals[latest..]);
        }
        let (one, other) = (&self.residuals[before], &self.residuals[first..]);
        shift(one, other, self.noise.of_means()).filter(is_sure)
    }

    /// When the change of this window began.
    fn beginning(&self, window: usize) -> Option<Beginning> {
        let (last, longest) = (self.points.len(), self.longest_window());
        let begin = last - longest;
        let before = self.segment().start.max(begin.saturating_sub(COMPARED))..begin;
        let level = self.noise.mean(&self.residuals[before])?;
        let places = (begin, last - window, last - MIN_WINDOW);
        Beginning::find(&self.residuals, level, places, &self.noise)
    }

    /// The first test that is surely since the change which began with the test `first`, and before the test `until`, of which at
    /// least a few are: with the levels on both sides, each test says where it belongs.
    fn surely_since(&self, first: usize, until: usize) -> usize {
        let before = self.compared_before(first);
        let from = before.start.max(first.saturating_sub(MAX_WINDOW));
        let last = first.max(until.saturating_sub(FEWEST));
        let levels = [&self.residuals[before], &self.residuals[first..until]]
            .map(|tests| self.noise.mean(tests).unwrap_or_default());
        let found = Beginning::between(&self.residuals, levels, from..=last, &self.noise);
        found.map_or(first, |found| found.latest.max(first))
    }

    /// A change of which tests from `before` on are compared with those since its beginning; there are some of both. Tests that may
    /// be of either side show neither.
    fn change(
        &self,
        before: usize,
        Beginning { first, earliest, latest }: Beginning,
        shift: Estimate,
        probability: f64,
    ) -> Change {
        let usual = |tests: &[f64]| median(tests.iter().copied()).unwrap_or_default().exp();
        Change {
            first_before: self.points[before],
            last_before: self.points[self.last_before(earliest, first)],
            first_since: self.points[first],
            first_between: [earliest, latest].map(|first| self.points[first]),
            newest: self.points[self.points.len() - 1],
            tests: self.points.len() - first,
            before: usual(&self.residuals[before..earliest]),
            since: usual(&self.residuals[latest..]),
            ratio: ratio(shift),
            probability,
            takes_back: None,
        }
    }

    /// The last test before the test `until` that did not begin after the test `first`: a clock that was ahead says so of tests that
    /// were made before.
    fn last_before(&self, until: usize, first: usize) -> usize {
        let since_s = self.points[first].at_s;
        let is_earlier = |point: &Point| point.at_s <= since_s;
        self.points[..until].iter().rposition(is_earlier).unwrap_or(until - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUARTER_HOUR_S: f64 = 900.0;

    /// The n-th test of every quarter of an hour.
    fn point(n: usize, goodput: f64) -> Point {
        let day_share = (n % 96) as f64 / 96.0;
        Point { id: n as i64, at_s: n as f64 * QUARTER_HOUR_S, day_share, value: goodput }
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
        assert_eq!(change.first_between.map(|point| point.id), [500, 500]);
        let ratio = change.ratio;
        assert!(ratio.low < 0.585 && ratio.high > 0.585 && ratio.value < 0.6, "{ratio:?}");
        assert!((change.before / 9.4e8 - 1.0).abs() < 0.02, "{change:?}");
        assert!((change.since / 5.5e8 - 1.0).abs() < 0.02, "{change:?}");
    }

    /// The clock was a year ahead for the last two tests before the change.
    #[test]
    fn a_test_whose_clock_was_ahead_is_not_the_last_one_before_a_change() {
        let tests = (0..600).map(|n| {
            let one = point(n, noise(n) * if n < 500 { 9.4e8 } else { 5.5e8 });
            let ahead_s = if (498..500).contains(&n) { 365.0 * SECONDS_OF_A_DAY } else { 0.0 };
            Point { at_s: one.at_s + ahead_s, ..one }
        });
        let found = changes(tests);
        let [change] = &found[..] else { panic!("{found:?}") };
        assert_eq!((change.last_before.id, change.first_since.id), (497, 500));
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
        let mut marked: Vec<(Point, Mark)> =
            all.iter().map(|point| (*point, Mark::Nothing)).collect();
        let mut found = Vec::new();
        for n in 480..all.len() {
            if let Some(change) = OneClock::restored(&marked[..n]).push(all[n]) {
                marked[change.first_since.id as usize].1 = Mark::Change;
                found.push(change);
            }
        }
        let [change] = &found[..] else { panic!("{found:?}") };
        assert!(change.first_since.id == 500 && change.tests <= 8, "{change:?}");
    }

    /// A test a day, of a path that is slower for ten days.
    #[test]
    fn a_change_of_a_path_that_is_seldom_tested_needs_more_tests_at_first_and_its_end_is_said_after_days()
     {
        for (at, most) in [(40, 10), (60, 8), (80, 8), (120, 8)] {
            let level = |n| if (at..at + 12).contains(&n) { 5.5e8 } else { 9.4e8 };
            let daily = |n: usize| Point {
                at_s: n as f64 * SECONDS_OF_A_DAY,
                ..point(96 * n, noise(n) * level(n))
            };
            let found = changes((0..at + 30).map(daily));
            let [drop, recovery] = &found[..] else { panic!("{at}: {found:?}") };
            assert_eq!(recovery.takes_back.map(|first| first.id), Some(drop.first_since.id));
            assert!(drop.tests <= most && recovery.tests <= 8, "{at}: {found:?}");
        }
    }

    /// A path that is slower for 30 tests from the 500th on, and again from the 700th on.
    fn up_and_down(n: usize) -> Point {
        let slower = (500..530).contains(&n) || n >= 700;
        point(n, noise(n) * if slower { 5.5e8 } else { 9.4e8 })
    }

    /// What is said of a change: its first test, and that of the one that it takes back.
    fn first_tests(change: &Change) -> (i64, Option<i64>) {
        (change.first_since.id, change.takes_back.map(|first| first.id))
    }

    const UP_AND_DOWN: [(i64, Option<i64>); 3] = [(500, None), (530, Some(500)), (700, None)];

    /// Three tests of four may be enough, which are then four.
    fn assert_found(found: &[(i64, Option<i64>)], expected: &[(i64, Option<i64>)]) {
        let near = |(one, other): (&(i64, _), &(i64, _))| {
            one.1 == other.1 && (other.0 - 1..=other.0).contains(&one.0)
        };
        assert!(found.iter().zip(expected).all(near), "{found:?}");
        assert_eq!(found.len(), expected.len(), "{found:?}");
    }

    #[test]
    fn a_path_that_soon_recovers_is_as_before_again_and_the_next_drop_is_found_as_soon() {
        let found = changes((0..720).map(up_and_down));
        assert_found(&found.iter().map(first_tests).collect::<Vec<_>>(), &UP_AND_DOWN);
        assert!(found.iter().all(|change| change.tests <= 8), "{found:?}");
        assert!((found[1].before / 5.5e8 - 1.0).abs() < 0.02, "{found:?}");
        assert!(found[1].ratio.value > 1.6, "{found:?}");
    }

    #[test]
    fn a_chart_that_is_restored_after_each_test_finds_the_same_recovery() {
        let all: Vec<Point> = (0..720).map(up_and_down).collect();
        let mut marked: Vec<_> = all.iter().map(|point| (*point, Mark::Nothing)).collect();
        let mut found = Vec::new();
        for n in 480..all.len() {
            let Some(change) = OneClock::restored(&marked[..n]).push(all[n]) else { continue };
            let back = change.takes_back.map(|first| Mark::Return(first.at_s));
            marked[change.first_since.id as usize].1 = back.unwrap_or(Mark::Change);
            found.push(first_tests(&change));
        }
        assert_found(&found, &UP_AND_DOWN);
    }

    #[test]
    fn a_recovery_from_two_drops_at_once_takes_the_first_one_back() {
        let level = |n| match n {
            500..540 => 8e8,
            540..560 => 6e8,
            _ => 9.4e8,
        };
        let found = changes((0..620).map(|n| point(n, noise(n) * level(n))));
        let found: Vec<_> = found.iter().map(first_tests).collect();
        assert_found(&found, &[(500, None), (540, None), (560, Some(500))]);
    }

    /// The path is slower from the 500th to the 520th test. The last three of these lie between both levels: its end may have begun
    /// with them.
    #[test]
    fn what_is_said_of_the_time_before_a_recovery_is_of_tests_that_are_surely_since_the_change() {
        let level = |n| match n {
            500..517 => 8e8,
            517..520 => 8.67e8,
            _ => 9.4e8,
        };
        let found = changes((0..560).map(|n| point(n, noise(n) * level(n))));
        let [_, recovery] = &found[..] else { panic!("{found:?}") };
        assert_eq!(recovery.first_before.id, 500, "{recovery:?}");
        assert!(recovery.last_before.id < recovery.first_between[0].id, "{recovery:?}");
        assert!((recovery.before / 8e8 - 1.0).abs() < 0.03, "{recovery:?}");
        assert!((recovery.since / 9.4e8 - 1.0).abs() < 0.03, "{recovery:?}");
    }

    #[test]
    fn a_return_to_what_is_forgotten_begins_a_segment() {
        let marked = [Mark::Nothing, Mark::Return(-900.0), Mark::Nothing];
        let tests: Vec<_> = (0..3).map(|n| (point(n, 1e9), marked[n])).collect();
        assert_eq!(OneClock::restored(&tests).segments, [0, 1, 1]);
    }

    #[test]
    fn equal_tests_change_only_when_they_differ() {
        let found = changes((0..500).map(|n| point(n, if n < 400 { 1e9 } else { 9e8 })));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].first_since.id, 400);
    }
}
