//! How long each way takes when idle, on the uncorrected clocks: differences between the far end's
//! clock and the near end's. Subtracting them from the same differences under load gives the queue of
//! each way alone; offset, drift and asymmetry cancel.
//!
//! The idle time is a straight line through the fastest exchange before the payload and the fastest
//! after it.

use goodput_model::{ClockRelation, Exchange, Missing};

/// How far a line through two idle times may be off in between, as a share of the time: clocks do not
/// drift evenly.
const MAX_UNEVEN_DRIFT_SHARE: f64 = 50e-6;
/// The same if only one side is known, and the drift is not.
const MAX_UNKNOWN_DRIFT_SHARE: f64 = 100e-6;
/// The bound of the mean of exponential excesses that holds the least of them with 95 %: ln 20.
const MEAN_EXCESS_BOUND_RATIO: f64 = 3.0;

/// Idle times of both ways over time.
#[derive(Debug, Clone, Copy)]
pub struct Idle {
    there: Line,
    back: Line,
}

/// One way's clock difference when idle.
#[derive(Debug, Clone, Copy)]
struct Line {
    origin_ns: u64,
    /// Subtracted from each difference, so that nothing is lost to rounding.
    guess_ns: i64,
    at_origin_ns: f64,
    slope: f64,
    error_ns: f64,
}

impl Idle {
    /// From exchanges around the time in which payload moved, on the near end's clock. The relation shows
    /// whether both ends have one clock.
    pub fn of(
        exchanges: &[Exchange],
        (from_ns, to_ns): (u64, u64),
        relation: &ClockRelation,
    ) -> Result<Self, Missing> {
        let before: Vec<_> = exchanges.iter().filter(|e| e.back_ns <= from_ns).collect();
        let after: Vec<_> = exchanges.iter().filter(|e| e.sent_ns >= to_ns).collect();
        let all: Vec<_> = exchanges.iter().collect();
        let span = (from_ns, to_ns.wrapping_sub(from_ns) as f64);
        let line = |way: fn(&Exchange) -> (u64, i64)| {
            let guess_ns = exchanges.first().map_or(0, |e| way(e).1);
            let points = |some: &[&Exchange]| -> Vec<Point> {
                let relative = |(at, apart): (u64, i64)| {
                    let at = at.wrapping_sub(from_ns) as i64 as f64;
                    (at, apart.wrapping_sub(guess_ns) as f64)
                };
                some.iter().map(|e| relative(way(e))).collect()
            };
            let sides = [Side::of(&points(&before)), Side::of(&points(&after))];
            Line::through(sides, span, relation.error_ns == 0.0, guess_ns)
                .map(|line| line.not_above(&points(&all)))
        };
        Ok(Self {
            there: line(|e| (e.sent_ns, e.received_ns.wrapping_sub(e.sent_ns) as i64))?,
            back: line(|e| (e.back_ns, e.back_ns.wrapping_sub(e.answered_ns) as i64))?,
        })
    }

    /// How long something waited from the near end to the far end beyond the idle time, seconds: it left at
    /// `near_ns` and arrived at `far_ns`.
    pub fn waited_there_s(&self, near_ns: u64, far_ns: u64) -> f64 {
        self.there.beyond_s(near_ns, far_ns.wrapping_sub(near_ns) as i64)
    }

    /// The same on the way back: it left the far end at `far_ns` and arrived here at `near_ns`.
    pub fn waited_back_s(&self, far_ns: u64, near_ns: u64) -> f64 {
        self.back.beyond_s(near_ns, near_ns.wrapping_sub(far_ns) as i64)
    }

    /// Error bound of [`Self::waited_there_s`], seconds.
    pub fn error_there_s(&self) -> f64 {
        self.there.error_ns / 1e9
    }

    /// Error bound of [`Self::waited_back_s`], seconds.
    pub fn error_back_s(&self) -> f64 {
        self.back.error_ns / 1e9
    }
}

/// A time and a difference, nanoseconds from the origin and from the guess.
type Point = (f64, f64);

/// The fastest exchange of one side, and how far above the idle time it may be.
#[derive(Clone, Copy)]
struct Side {
    fastest: Point,
    error_ns: f64,
}

impl Side {
    /// `None` for fewer than two exchanges, which don't show their spread. The least of n excesses of
    /// an exponential distribution is itself exponential, with an nth of their mean.
    fn of(points: &[Point]) -> Option<Self> {
        let count = points.len() as f64;
        let fastest = points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let excess: f64 = points.iter().map(|point| point.1 - fastest.1).sum();
        let error_ns = MEAN_EXCESS_BOUND_RATIO * excess / (count - 1.0) / count;
        (points.len() >= 2).then_some(Self { fastest, error_ns })
    }
}

impl Line {
    fn through(
        sides: [Option<Side>; 2],
        (origin_ns, span_ns): (u64, f64),
        one_clock: bool,
        guess_ns: i64,
    ) -> Result<Self, Missing> {
        let flat = |side: Side, error_ns| (side.fastest.1, 0.0, error_ns);
        let (at_origin_ns, slope, error_ns) = match sides {
            [Some(a), Some(b)] if one_clock => {
                let fastest = if a.fastest.1 <= b.fastest.1 { a } else { b };
                flat(fastest, fastest.error_ns)
            }
            [Some(a), Some(b)] => {
                let slope = (b.fastest.1 - a.fastest.1) / (b.fastest.0 - a.fastest.0);
                let error_ns = a.error_ns.max(b.error_ns) + MAX_UNEVEN_DRIFT_SHARE * span_ns;
                (a.fastest.1 - slope * a.fastest.0, slope, error_ns)
            }
            [Some(one), None] | [None, Some(one)] if one_clock => flat(one, one.error_ns),
            [Some(one), None] | [None, Some(one)] => {
                let distance = one.fastest.0.abs().max((span_ns - one.fastest.0).abs());
                flat(one, one.error_ns + MAX_UNKNOWN_DRIFT_SHARE * distance)
            }
            [None, None] => {
                return Err(Missing::because(
                    "no exchange of the clocks came through while the path was idle",
                ));
            }
        };
        Ok(Self { origin_ns, guess_ns, at_origin_ns, slope, error_ns })
    }

    /// An exchange faster than the idle time shows how far the idle time is off.
    fn not_above(mut self, points: &[Point]) -> Self {
        let over = |point: &Point| self.at_origin_ns + self.slope * point.0 - point.1;
        let most = points.iter().map(over).fold(0.0, f64::max);
        self.error_ns = self.error_ns.max(most);
        self
    }

    fn beyond_s(&self, at_ns: u64, apart_ns: i64) -> f64 {
        let at = at_ns.wrapping_sub(self.origin_ns) as i64 as f64;
        let apart = apart_ns.wrapping_sub(self.guess_ns) as f64;
        (apart - self.at_origin_ns - self.slope * at) / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::relation;
    use proptest::prelude::*;

    const LOADED: (u64, u64) = (2_000_000_000, 6_000_000_000);

    /// Sixteen exchanges before, one every 50 ms under load, sixteen after; the far clock is ahead and
    /// gains; `queues` there and back under load, seconds.
    fn around(ahead_s: f64, ppm: f64, ways_s: (f64, f64), queues_s: (f64, f64)) -> Vec<Exchange> {
        let far = |at_s: f64| ((at_s + ahead_s + at_s * ppm * 1e-6) * 1e9) as u64;
        let one = |at_s: f64| {
            let loaded = (2.0..6.0).contains(&at_s);
            let (there, back) = if loaded { queues_s } else { (0.0, 0.0) };
            let arrives = at_s + ways_s.0 + there;
            let is_back = arrives + ways_s.1 + back;
            let (sent_ns, back_ns) = ((at_s * 1e9) as u64, (is_back * 1e9) as u64);
            Exchange { sent_ns, received_ns: far(arrives), answered_ns: far(arrives), back_ns }
        };
        let before = (0..16).map(|n| 1.0 + f64::from(n) * 0.004);
        let during = (0..80).map(|n| 2.0 + f64::from(n) * 0.05);
        let after = (0..16).map(|n| 6.5 + f64::from(n) * 0.004);
        before.chain(during).chain(after).map(one).collect()
    }

    fn idle(exchanges: &[Exchange], one_clock: bool) -> Idle {
        let relation = relation(exchanges, one_clock).unwrap();
        Idle::of(exchanges, LOADED, &relation).unwrap()
    }

    proptest! {
        #[test]
        fn queues_of_either_way_need_no_offset(
            ahead_s in 0.0f64..1e6, ppm in -100.0f64..100.0,
            ways in (0.0001f64..0.2, 0.0001f64..0.2), queues in (0.0f64..0.2, 0.0f64..0.2),
        ) {
            let all = around(ahead_s, ppm, ways, queues);
            let idle = idle(&all, false);
            let e = &all[50];
            let there = idle.waited_there_s(e.sent_ns, e.received_ns);
            let back = idle.waited_back_s(e.answered_ns, e.back_ns);
            prop_assert!((there - queues.0).abs() <= idle.error_there_s() + 1e-6, "{there} {queues:?}");
            prop_assert!((back - queues.1).abs() <= idle.error_back_s() + 1e-6, "{back} {queues:?}");
            prop_assert!(idle.error_there_s() < 0.001);
        }
    }

    #[test]
    fn one_clock_leaves_no_drift_to_allow_for() {
        let all = around(0.0, 0.0, (0.001, 0.002), (0.003, 0.0));
        assert!(idle(&all, true).error_there_s() < 1e-8);
        assert!(idle(&all, false).error_there_s() > 1e-4);
    }

    #[test]
    fn without_an_idle_exchange_nothing_is_known() {
        let all = around(0.0, 0.0, (0.001, 0.002), (0.003, 0.0));
        let relation = relation(&all, true).unwrap();
        assert!(Idle::of(&all[16..96], LOADED, &relation).is_err());
        let one_side = Idle::of(&all[..96], LOADED, &ClockRelation { error_ns: 5.0, ..relation });
        assert!(one_side.unwrap().error_there_s() > 4e-4);
    }

    #[test]
    fn an_exchange_below_the_idle_time_widens_the_bound() {
        let mut all = around(0.0, 0.0, (0.001, 0.002), (0.0, 0.0));
        all[50].received_ns -= 800_000;
        all[50].answered_ns -= 800_000;
        let relation = ClockRelation::one_clock(0, 1);
        let idle = Idle::of(&all, LOADED, &relation).unwrap();
        assert!((idle.error_there_s() - 8e-4).abs() < 1e-7, "{idle:?}");
    }
}
