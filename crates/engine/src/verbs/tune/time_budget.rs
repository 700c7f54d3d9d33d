//! How the changes share the time of tuning, so that enough is left for the last comparison.

use std::time::{Duration, Instant};

use goodput_experiment::Design;

use crate::verbs::compare::MaxTime;

/// How much longer than expected runs may take.
const RUN_TIME_MARGIN_RATIO: f64 = 1.25;
/// Comparisons that tuning usually needs: two changes, one of them left out again, and the proof.
const USUAL_COMPARISONS: f64 = 4.0;
/// Least share of the remaining time that one change may take, after the reserve for the end, however many others wait.
const LEAST_SHARE_OF_A_CHANGE: f64 = 1.0 / 3.0;

/// The total time, and the time that a comparison takes.
pub struct TimeBudget {
    began: Instant,
    all: Duration,
    run_s: f64,
    /// Whether a comparison has shown how long a run takes. The first measurement may be slow for the very reason that
    /// a change removes.
    is_known: bool,
    /// Blocks of the shortest comparison that can decide.
    first_look: u32,
}

impl TimeBudget {
    /// Starts now. `ways_to_win` is as in the design of each comparison.
    pub fn new(all: Duration, ways_to_win: usize) -> Self {
        let first_look = Design { ways_to_win, ..Design::default() }.looks().first();
        Self { began: Instant::now(), all, run_s: 0.0, is_known: false, first_look }
    }

    /// Longest run with which the usual number of comparisons can still decide, seconds.
    pub fn longest_run_s(&self) -> f64 {
        self.left().as_secs_f64() / (USUAL_COMPARISONS * self.shortest_runs())
    }

    /// The first measurement lets expect runs of this time, seconds.
    pub fn expect(&mut self, run_s: f64) {
        self.run_s = run_s;
    }

    /// Whether this many comparisons can still decide if each run is longer by these seconds.
    pub fn may_lengthen(&self, more_s: f64, comparisons: u8) -> bool {
        let run_s = self.run_s + more_s;
        f64::from(comparisons) * run_s * self.shortest_runs() <= self.left().as_secs_f64()
    }

    /// Makes each run longer by these seconds.
    pub fn lengthen(&mut self, more_s: f64) {
        self.run_s += more_s;
    }

    /// A comparison of `runs` runs took this time.
    pub fn took(&mut self, time: Duration, runs: usize) {
        if runs > 0 {
            let mean_s = time.as_secs_f64() / runs as f64;
            self.run_s = if self.is_known { self.run_s.max(mean_s) } else { mean_s };
            self.is_known = true;
        }
    }

    /// The time for one more change while others wait, unless the last comparison would then have too little.
    pub fn for_a_change(&self, waiting: usize) -> Option<MaxTime> {
        let (left_s, shortest_s) = (self.left().as_secs_f64(), self.shortest_s());
        let seconds = Duration::from_secs_f64;
        match self.is_known {
            true => for_a_change(left_s, shortest_s, waiting).map(|time_s| MaxTime {
                all: seconds(time_s),
                to_first_look: seconds(left_s - shortest_s),
            }),
            false => Some(MaxTime {
                all: seconds(for_the_first(left_s, shortest_s, waiting)),
                to_first_look: seconds(left_s),
            }),
        }
    }

    /// Whether there is time for another comparison that can decide.
    pub fn allows_another(&self) -> bool {
        self.left().as_secs_f64() >= self.shortest_s()
    }

    /// Shortest time in which a comparison can decide, seconds.
    pub fn shortest_s(&self) -> f64 {
        self.run_s * self.shortest_runs()
    }

    /// Runs of this comparison, with the margin.
    fn shortest_runs(&self) -> f64 {
        // Two runs in each block, and the warm-up is one of the blocks.
        let blocks = self.first_look + 1;
        f64::from(2 * blocks) * RUN_TIME_MARGIN_RATIO
    }

    /// When the time is up.
    pub fn end(&self) -> Instant {
        self.began + self.all
    }

    /// The time left.
    pub fn left(&self) -> Duration {
        self.all.saturating_sub(self.began.elapsed())
    }
}

/// The free time, shared equally among this change and those that wait.
fn for_a_change(left_s: f64, shortest_s: f64, waiting: usize) -> Option<f64> {
    let free = left_s - shortest_s;
    let share = (1.0 / (1.0 + waiting as f64)).max(LEAST_SHARE_OF_A_CHANGE);
    (free >= shortest_s).then(|| (free * share).max(shortest_s))
}

/// A guess about the runs must not prevent the first change, which takes half of the time at most once its arms were
/// looked at.
fn for_the_first(left_s: f64, shortest_s: f64, waiting: usize) -> f64 {
    for_a_change(left_s, shortest_s, waiting).unwrap_or(left_s / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_keeps_nothing_from_being_tried() {
        assert_eq!(for_the_first(170.0, 20.0, 2), 50.0);
        assert_eq!(for_the_first(170.0, 120.0, 2), 85.0);
        let mut budget = TimeBudget::new(Duration::from_secs(180), 1);
        budget.expect(8.0);
        let first = budget.for_a_change(2).expect("it may be the fault that takes the time");
        assert!(first.all.as_secs() < 90 && first.to_first_look.as_secs() > 170, "{first:?}");
        budget.took(Duration::from_secs(28), 14);
        assert_eq!(budget.run_s, 2.0, "what was measured takes the place of the guess");
        budget.took(Duration::from_secs(112), 14);
        assert!(budget.for_a_change(2).is_none(), "two comparisons take longer than there is time");
        assert!(budget.allows_another());
        budget.took(Duration::from_secs(280), 14);
        assert!(!budget.allows_another());
    }

    #[test]
    fn runs_get_longer_while_the_comparisons_fit() {
        let mut budget = TimeBudget::new(Duration::from_secs(140), 1);
        budget.took(Duration::from_secs(14), 14);
        assert!(budget.may_lengthen(2.9, 2));
        budget.lengthen(2.9);
        assert!(
            !budget.may_lengthen(0.2, 2),
            "2 comparisons of 14 runs of 4.1 s, and a quarter more, take 143 s"
        );
        assert!(budget.may_lengthen(4.0, 1), "one of runs of 7.9 s takes 138 s");
    }

    #[test]
    fn four_comparisons_of_the_longest_runs_fit() {
        let budget = TimeBudget::new(Duration::from_secs(140), 1);
        // 7 blocks of two runs each, and a quarter more.
        assert!((1.99..=2.0).contains(&budget.longest_run_s()), "{}", budget.longest_run_s());
    }

    #[test]
    fn the_last_comparison_always_has_its_time() {
        assert_eq!(for_a_change(170.0, 20.0, 9), Some(50.0));
        assert_eq!(for_a_change(170.0, 20.0, 1), Some(75.0), "half, beside one that waits");
        assert_eq!(for_a_change(170.0, 20.0, 0), Some(150.0), "nobody else needs it");
        assert_eq!(for_a_change(50.0, 20.0, 9), Some(20.0), "no less than it takes to speak");
        assert_eq!(for_a_change(39.0, 20.0, 0), None);
    }
}
