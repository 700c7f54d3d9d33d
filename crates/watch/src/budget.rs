//! How many bytes the tests of a watch may cost.
//!
//! The budget holds for every 24 hours, not for each calendar day: so it needs no time zone, and a day of 25 hours or a
//! restart at midnight gets nothing extra.

use std::collections::VecDeque;
use std::fmt;

use goodput_model::Bytes;

/// The time that the budget is for, seconds.
const DAY_S: f64 = 86_400.0;

/// The bytes of the last 24 hours, and how many may be spent.
#[derive(Debug, Clone)]
pub struct Budget {
    limit: u64,
    /// When they were spent, seconds since the watch began (negative: before), and how many; oldest first.
    spent: VecDeque<(f64, u64)>,
}

/// Why a test is not made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsedUp {
    /// Bytes of the last 24 hours.
    pub used: Bytes,
    /// Bytes that may be spent in 24 hours.
    pub limit: Bytes,
    /// Time until the test would fit, seconds.
    pub free_in_s: f64,
}

impl fmt::Display for UsedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { used, limit, .. } = self;
        write!(f, "the budget is used up: {used} of {limit} in the last 24 hours")
    }
}

impl Budget {
    /// At most `limit` bytes in any 24 hours.
    pub fn new(limit: Bytes) -> Self {
        Self { limit: limit.0, spent: VecDeque::new() }
    }

    /// The share of one test, if `targets` targets are tested once in every `every_s` seconds. A random beginning lets
    /// one more round fall into a day.
    pub fn share(&self, every_s: f64, targets: usize) -> Bytes {
        Bytes((self.limit as f64 / shares(every_s, targets)) as u64)
    }

    /// The smallest budget with a round number of bytes of which this is the share of one test.
    pub fn smallest(share: Bytes, every_s: f64, targets: usize) -> Bytes {
        // A byte more than the share: a quotient may be rounded down.
        round_up((share.0.saturating_add(1) as f64 * shares(every_s, targets)).ceil() as u64)
    }

    /// Bytes that may be spent in any 24 hours.
    pub fn limit(&self) -> Bytes {
        Bytes(self.limit)
    }

    /// Seconds from `now_s` after which nothing is left, if `targets` targets are tested once in every `every_s` seconds and a
    /// test costs `bytes`; none if the budget of 24 hours suffices for this.
    pub fn lasts_s(
        &mut self,
        now_s: f64,
        every_s: f64,
        targets: usize,
        bytes: Bytes,
    ) -> Option<f64> {
        let tests = (DAY_S / every_s).max(1.0) * targets.max(1) as f64;
        let of = |budget: u64| budget as f64 / bytes.0.max(1) as f64;
        let left = self.left(now_s).0;
        (of(self.limit) < tests).then(|| of(left).floor() / targets.max(1) as f64 * every_s)
    }

    /// Whether a test that costs `bytes` may begin at `now_s`.
    ///
    /// # Errors
    /// The budget is used up.
    pub fn allow(&mut self, now_s: f64, bytes: Bytes) -> Result<(), UsedUp> {
        let used = self.used(now_s);
        let mut surplus = used.0.saturating_add(bytes.0).saturating_sub(self.limit);
        if surplus == 0 {
            return Ok(());
        }
        // What was spent first is free again first. A test larger than the whole budget never fits.
        let mut free_in_s = f64::INFINITY;
        for (at_s, spent) in &self.spent {
            surplus = surplus.saturating_sub(*spent);
            if surplus == 0 {
                free_in_s = at_s + DAY_S - now_s;
                break;
            }
        }
        Err(UsedUp { used, limit: Bytes(self.limit), free_in_s })
    }

    /// What is left at `now_s`.
    pub fn left(&mut self, now_s: f64) -> Bytes {
        Bytes(self.limit.saturating_sub(self.used(now_s).0))
    }

    /// Notes that `bytes` were spent at `at_s`.
    pub fn spend(&mut self, at_s: f64, bytes: Bytes) {
        let place = self.spent.partition_point(|(other, _)| *other <= at_s);
        self.spent.insert(place, (at_s, bytes.0));
    }

    /// Bytes of the 24 hours before `now_s`.
    pub fn used(&mut self, now_s: f64) -> Bytes {
        while self.spent.front().is_some_and(|(at_s, _)| at_s + DAY_S <= now_s) {
            self.spent.pop_front();
        }
        Bytes(self.spent.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes)))
    }
}

/// Tests that share a day.
fn shares(every_s: f64, targets: usize) -> f64 {
    let tests = (DAY_S / every_s).max(1.0).ceil() + 1.0;
    tests * targets.max(1) as f64
}

/// The next number with at most two digits that are not zero: a person can type it.
pub fn round_up(bytes: u64) -> Bytes {
    let mut unit = 1_u64;
    while bytes / unit >= 100 {
        unit *= 10;
    }
    Bytes(bytes.div_ceil(unit).saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_S: f64 = 3600.0;

    #[test]
    fn a_used_up_budget_is_free_again_after_a_day() {
        let mut budget = Budget::new(Bytes(1000));
        budget.spend(-2.0 * HOUR_S, Bytes(600));
        assert_eq!(budget.allow(0.0, Bytes(400)), Ok(()));
        budget.spend(0.0, Bytes(400));
        let why = budget.allow(1.0, Bytes(500)).unwrap_err();
        assert_eq!((why.used, why.free_in_s), (Bytes(1000), 22.0 * HOUR_S - 1.0));
        assert_eq!(why.to_string(), "the budget is used up: 1 kB of 1 kB in the last 24 hours");
        assert_eq!(budget.allow(22.0 * HOUR_S, Bytes(500)), Ok(()));
        assert_eq!(budget.allow(0.0, Bytes(2000)).unwrap_err().free_in_s, f64::INFINITY);
    }

    #[test]
    fn a_schedule_that_costs_more_than_the_budget_uses_it_up_before_the_day_ends() {
        let mut budget = Budget::new(Bytes(2_000_000_000));
        let share = budget.share(900.0, 10);
        // 500 tests of 21 600.
        assert_eq!(budget.lasts_s(0.0, 4.0, 1, Bytes(4_000_000)), Some(2000.0));
        assert_eq!(budget.lasts_s(0.0, 4.0, 2, Bytes(4_000_000)), Some(1000.0));
        assert_eq!(budget.lasts_s(0.0, 4.0, 1, Bytes(3_000_000_000)), Some(0.0));
        assert_eq!(budget.lasts_s(0.0, 900.0, 10, share), None);
        assert_eq!(budget.lasts_s(0.0, 900.0, 0, Bytes(0)), None);
        // What is spent does not come back before the rest is.
        budget.spend(-100.0, Bytes(1_600_000_000));
        assert_eq!(budget.lasts_s(0.0, 4.0, 1, Bytes(4_000_000)), Some(400.0));
        assert_eq!(budget.lasts_s(0.0, 900.0, 10, share), None, "it suffices day by day");
    }

    #[test]
    fn the_smallest_budget_has_the_share_and_can_be_typed() {
        for (share, every_s, targets) in [(1_111_112, 900.0, 1), (2_222_223, 7.0, 3), (1, 1e7, 1)] {
            let smallest = Budget::smallest(Bytes(share), every_s, targets);
            assert_eq!(round_up(smallest.0), smallest);
            let of = |bytes| Budget::new(bytes).share(every_s, targets);
            assert!(of(smallest) >= Bytes(share), "{smallest}");
            assert!(of(Bytes(smallest.0 / 10 * 8)) < Bytes(share.max(2)), "{smallest}");
        }
        assert_eq!(Budget::smallest(Bytes(1_111_112), 900.0, 1), Bytes(110_000_000));
        assert_eq!([99, 100, 101, 1999].map(round_up), [99, 100, 110, 2000].map(Bytes));
        assert!(round_up(u64::MAX) >= Bytes(u64::MAX));
    }

    #[test]
    fn the_shares_of_a_day_with_one_round_more_fit() {
        let mut budget = Budget::new(Bytes(5_000_000_000));
        let share = budget.share(900.0, 10);
        for test in 0..970 {
            let now_s = f64::from(test) * 89.0;
            assert_eq!(budget.allow(now_s, share), Ok(()), "{test}");
            budget.spend(now_s, share);
        }
        assert_eq!(Budget::new(Bytes(100)).share(7.0 * 86_400.0, 1), Bytes(50));
    }
}
