//! A receiver's cumulative count as a curve over time.

/// Bytes received up to each instant; times strictly increase, bytes never decrease, at least two points.
pub(crate) struct Curve {
    points: Vec<(f64, u64)>,
}

impl Curve {
    /// The curve through `series`. Of several points at one instant the last counts. `None` if fewer than two instants
    /// remain, a time is not finite, or time or bytes run backwards: a counter that was reset is useless.
    pub(crate) fn new(series: &[(f64, u64)]) -> Option<Self> {
        let mut points: Vec<(f64, u64)> = Vec::with_capacity(series.len());
        for &(at, bytes) in series {
            if !at.is_finite() || points.last().is_some_and(|last| at < last.0 || bytes < last.1) {
                return None;
            }
            if points.last().is_some_and(|last| last.0 == at) {
                points.pop();
            }
            points.push((at, bytes));
        }
        (points.len() >= 2).then_some(Self { points })
    }

    /// First instant, seconds.
    pub(crate) fn start(&self) -> f64 {
        self.points[0].0
    }

    /// Last instant, seconds.
    pub(crate) fn end(&self) -> f64 {
        self.points[self.points.len() - 1].0
    }

    /// The part from the first point at or after `from_s`. `None` if fewer than two points
    /// remain.
    pub(crate) fn since(&self, from_s: f64) -> Option<Self> {
        let first = self.points.partition_point(|point| point.0 < from_s);
        let rest = self.points.get(first..)?;
        (rest.len() >= 2).then(|| Self { points: rest.to_vec() })
    }

    /// Bytes from the first to the last point.
    pub(crate) fn bytes(&self) -> u64 {
        self.points[self.points.len() - 1].1 - self.points[0].1
    }

    /// Length, seconds; more than zero.
    pub(crate) fn seconds(&self) -> f64 {
        self.end() - self.start()
    }

    /// Mean rate, bytes per second.
    pub(crate) fn mean(&self) -> f64 {
        self.bytes() as f64 / self.seconds()
    }

    /// The last point that leaves out at most `share` of the time and keeps at least `intervals`; the first point if
    /// there are no more intervals.
    pub(crate) fn latest_start(&self, share: f64, intervals: usize) -> f64 {
        let latest = self.start() + self.seconds() * share;
        let within = self.points.partition_point(|point| point.0 <= latest).saturating_sub(1);
        self.points[within.min(self.intervals().saturating_sub(intervals))].0
    }

    /// Number of intervals between neighbouring points.
    pub(crate) fn intervals(&self) -> usize {
        self.points.len() - 1
    }

    /// The longest interval between neighbouring points, seconds.
    pub(crate) fn longest_gap(&self) -> f64 {
        self.points.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(0.0, f64::max)
    }

    /// Beginning, seconds, and rate, bytes per second, of each interval.
    pub(crate) fn rates(&self) -> impl Iterator<Item = (f64, f64)> {
        let rate = |pair: &[(f64, u64)]| (pair[1].1 - pair[0].1) as f64 / (pair[1].0 - pair[0].0);
        self.points.windows(2).map(move |pair| (pair[0].0, rate(pair)))
    }

    /// Mean rates of `count` batches of equal length, bytes per second. Points need not be evenly spaced. An interval
    /// across a border gives each side its share by time, so every interval weighs as much as it is long, even an
    /// interval in which nothing arrived.
    pub(crate) fn batch_rates(&self, count: usize) -> Vec<f64> {
        let width = self.seconds() / count as f64;
        let border = |index: usize| self.bytes_at(self.start() + width * index as f64);
        (0..count).map(|batch| (border(batch + 1) - border(batch)) / width).collect()
    }

    fn bytes_at(&self, at: f64) -> f64 {
        let next = self.points.partition_point(|point| point.0 <= at);
        let (Some(after), Some(before)) = (self.points.get(next), self.points[..next].last())
        else {
            let nearest = if next == 0 { 0 } else { self.points.len() - 1 };
            return self.points[nearest].1 as f64;
        };
        let share = (at - before.0) / (after.0 - before.0);
        before.1 as f64 + share * (after.1 - before.1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn uneven_points_weigh_as_much_as_they_are_long() {
        let curve = Curve::new(&[(0.0, 0), (0.5, 50), (2.0, 200), (4.0, 200)]).unwrap();
        assert_eq!(curve.batch_rates(2), [100.0, 0.0]);
        assert_eq!((curve.bytes(), curve.seconds()), (200, 4.0));
    }

    #[test]
    fn a_counter_or_a_clock_that_runs_back_is_refused() {
        assert!(Curve::new(&[(0.0, 5), (1.0, 4)]).is_none());
        assert!(Curve::new(&[(1.0, 0), (0.5, 4)]).is_none());
        assert!(Curve::new(&[(0.0, 0), (f64::NAN, 4)]).is_none());
        assert!(Curve::new(&[(0.0, 0), (0.0, 4)]).is_none());
    }

    proptest! {
        #[test]
        fn batches_together_hold_every_byte(
            steps in proptest::collection::vec((0.001f64..1.0, 0u64..1_000_000), 2..50),
            count in 1usize..30,
        ) {
            let mut now = (0.0, 0);
            let series: Vec<_> = steps.iter().map(|(dt, bytes)| {
                now = (now.0 + dt, now.1 + bytes);
                now
            }).collect();
            let curve = Curve::new(&series).unwrap();
            let width = curve.seconds() / count as f64;
            let sum: f64 = curve.batch_rates(count).iter().map(|rate| rate * width).sum();
            prop_assert!((sum - curve.bytes() as f64).abs() < 1.0);
        }
    }
}
