//! When to test which target.
//!
//! Time is divided into rounds of `every`, and a round into a part for each target. Each test begins at a random time
//! within its part: watchers that began together don't stay together, and no test keeps falling on the same second of
//! someone else's timer (RFC 2330, section 11.1.1, on why samples at fixed times mislead). Times are seconds since the
//! watch began, on a clock that never steps.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// The next test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Index of the target.
    pub target: usize,
    /// When to begin, seconds since the watch began.
    pub due_s: f64,
    /// When its part of the round ends, seconds since the watch began.
    pub end_s: f64,
    /// Number of turns that passed unused, because something took too long.
    pub missed: u64,
}

impl Turn {
    /// The targets whose turns passed before it, of all `targets`, each once.
    pub fn passed(&self, targets: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, missed) = (self.target, usize::try_from(self.missed).unwrap_or(usize::MAX));
        (0..missed.min(targets)).map(move |number| (first + number) % targets)
    }
}

/// Deals out the turns.
#[derive(Debug)]
pub struct Schedule {
    /// Length of one target's part of a round, seconds.
    part_s: f64,
    targets: usize,
    /// Number of the next part since the beginning.
    next: u64,
    /// Number of turns that were dealt out.
    dealt: u64,
    random: Xoshiro256PlusPlus,
}

impl Schedule {
    /// One test of each of `targets` targets in every `every_s` seconds.
    pub fn new(every_s: f64, targets: usize, seed: u64) -> Self {
        let targets = targets.max(1);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { part_s: every_s / targets as f64, targets, next: 0, dealt: 0, random }
    }

    /// Number of turns that are over unused at `now_s`.
    fn missed(&self, now_s: f64) -> u64 {
        let present = (now_s / self.part_s).max(0.0) as u64;
        present.saturating_sub(self.next)
    }

    /// The next turn, at `now_s`. Parts that are over are left out. The targets take turns all the same, so that one whose tests
    /// take long costs all others as many.
    pub fn next(&mut self, now_s: f64) -> Turn {
        let missed = self.missed(now_s);
        let part = self.next + missed;
        self.next = part + 1;
        let begin_s = part as f64 * self.part_s;
        let due_s = begin_s + self.random.random::<f64>() * self.part_s;
        let target = (self.dealt % self.targets as u64) as usize;
        self.dealt += 1;
        Turn { target, due_s: due_s.max(now_s), end_s: begin_s + self.part_s, missed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_target_has_one_turn_in_each_round() {
        let mut schedule = Schedule::new(900.0, 3, 7);
        let mut now_s = 0.0;
        for number in 0..30 {
            let turn = schedule.next(now_s);
            assert_eq!((turn.target, turn.missed), (number % 3, 0));
            let begin_s = number as f64 * 300.0;
            assert!((begin_s..begin_s + 300.0).contains(&turn.due_s), "{turn:?}");
            now_s = turn.due_s + 5.0;
        }
    }

    #[test]
    fn what_took_too_long_costs_turns_and_is_counted() {
        let mut schedule = Schedule::new(60.0, 2, 7);
        assert_eq!(schedule.next(0.0).missed, 0);
        assert_eq!([31.0, 61.0, 151.0].map(|now_s| schedule.missed(now_s)), [0, 1, 4]);
        let late = schedule.next(151.0);
        assert_eq!((late.missed, late.target), (4, 1));
        assert!(late.due_s >= 151.0 && late.end_s == 180.0, "{late:?}");
        assert_eq!(late.passed(2).collect::<Vec<_>>(), [1, 0]);
        let passed = |missed| Turn { missed, ..late }.passed(3).collect::<Vec<_>>();
        assert_eq!((passed(0), passed(1), passed(2)), (vec![], vec![1], vec![1, 2]));
    }

    #[test]
    fn a_target_whose_tests_take_long_starves_no_other() {
        let mut schedule = Schedule::new(6.0, 3, 7);
        let (mut now_s, mut turns) = (0.0, [0; 3]);
        for _ in 0..30 {
            let turn = schedule.next(now_s);
            turns[turn.target] += 1;
            // The first one is gone: each try takes a whole round.
            now_s = turn.due_s + if turn.target == 0 { 6.0 } else { 0.1 };
        }
        assert_eq!(turns, [10; 3]);
    }

    #[test]
    fn watchers_that_begin_together_do_not_stay_together() {
        let [mut one, mut other] = [1, 2].map(|seed| Schedule::new(900.0, 1, seed));
        let met = (0..100).filter(|_| (one.next(0.0).due_s - other.next(0.0).due_s).abs() < 5.0);
        assert!(met.count() < 10);
    }

    proptest! {
        #[test]
        fn no_turn_lies_in_the_past(every_s in 1.0f64..1e6, targets in 1usize..50, times in prop::collection::vec(0.0f64..1e7, 1..50)) {
            let mut schedule = Schedule::new(every_s, targets, 1);
            let mut now_s: f64 = 0.0;
            for time in times {
                now_s = now_s.max(time);
                let turn = schedule.next(now_s);
                prop_assert!(turn.due_s >= now_s && turn.target < targets);
            }
        }
    }
}
