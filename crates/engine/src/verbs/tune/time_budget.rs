//! How the changes share the time of tuning, so that enough is left for the last comparison.

use std::time::{Duration, Instant};

use goodput_experiment::{BLOCKS_TO_BE_OBVIOUS, Design};

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
    /// How long a run takes with what is kept, seconds; `None` before anything is. Trials then no longer run the start.
    kept_run_s: Option<f64>,
    /// Blocks of the shortest comparison that can decide.
    first_look: u32,
}

impl TimeBudget {
    /// Starts now. `ways_to_win` is as in the design of each comparison.
    pub fn new(all: Duration, ways_to_win: usize) -> Self {
        let first_look = Design { ways_to_win, ..Design::default() }.looks().first();
        let (began, run_s, is_known, kept_run_s) = (Instant::now(), 0.0, false, None);
        Self { began, all, run_s, is_known, kept_run_s, first_look }
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
        self.kept_run_s = self.kept_run_s.map(|run_s| run_s + more_s);
    }

    /// A comparison of `runs` runs took this time.
    pub fn took(&mut self, time: Duration, runs: usize) {
        if runs > 0 {
            let mean_s = time.as_secs_f64() / runs as f64;
            self.run_s = if self.is_known { self.run_s.max(mean_s) } else { mean_s };
            self.kept_run_s = self.kept_run_s.map(|run_s| run_s.max(mean_s));
            self.is_known = true;
        }
    }

    /// A change was kept with which a run takes this time.
    pub fn keep(&mut self, run: Duration) {
        self.kept_run_s = Some(run.as_secs_f64());
        self.is_known = true;
    }

    /// The time for one more change while others wait, unless the last comparison would then have too little.
    pub fn for_a_change(&self, waiting: usize) -> Option<MaxTime> {
        let (left_s, trial_s, proof_s) =
            (self.left().as_secs_f64(), self.trial_s(), self.proof_s());
        let seconds = Duration::from_secs_f64;
        match self.is_known {
            true => {
                let least_s = self.least_trial_s();
                for_a_change(left_s, [least_s, trial_s], proof_s, waiting).map(|time_s| MaxTime {
                    all: seconds(time_s),
                    to_first_look: seconds(left_s - proof_s),
                })
            }
            false => Some(MaxTime {
                all: seconds(for_the_first(left_s, proof_s, waiting)),
                to_first_look: seconds(left_s),
            }),
        }
    }

    /// Whether there is time for another comparison with the start that can decide.
    pub fn allows_proof(&self) -> bool {
        self.left().as_secs_f64() >= self.proof_s()
    }

    /// Shortest time in which a comparison with the start can decide, seconds.
    pub fn proof_s(&self) -> f64 {
        self.run_s * self.shortest_runs()
    }

    /// Shortest time in which one more change can be decided on top of what is kept, seconds.
    pub fn trial_s(&self) -> f64 {
        self.kept_run_s.unwrap_or(self.run_s) * self.shortest_runs()
    }

    /// Shortest time in which one more change can be seen to be obviously better or worse, seconds.
    pub fn least_trial_s(&self) -> f64 {
        let blocks = BLOCKS_TO_BE_OBVIOUS as f64 + 1.0;
        self.trial_s() * blocks / f64::from(self.first_look + 1)
    }

    /// Whether a trial of this time can decide, however small the difference.
    pub fn can_decide(&self, time: &MaxTime) -> bool {
        time.all >= Duration::from_secs_f64(self.trial_s())
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

/// The time beside that of the proof, shared equally among this change and those that wait; at least that of a trial, or all
/// of it if only an obvious difference would show in it.
fn for_a_change(
    left_s: f64,
    [least_s, trial_s]: [f64; 2],
    proof_s: f64,
    waiting: usize,
) -> Option<f64> {
    let free = left_s - proof_s;
    let share = (1.0 / (1.0 + waiting as f64)).max(LEAST_SHARE_OF_A_CHANGE);
    (free >= least_s).then(|| (free * share).max(trial_s.min(free)))
}

/// A guess about the runs must not prevent the first change, which takes half of the time at most once its arms were
/// looked at.
fn for_the_first(left_s: f64, shortest_s: f64, waiting: usize) -> f64 {
    for_a_change(left_s, [shortest_s; 2], shortest_s, waiting).unwrap_or(left_s / 2.0)
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
        assert!(budget.allows_proof());
        budget.took(Duration::from_secs(280), 14);
        assert!(!budget.allows_proof());
    }

    #[test]
    fn trials_no_longer_run_the_start_once_something_is_kept() {
        let mut budget = TimeBudget::new(Duration::from_secs(200), 1);
        // Runs of the start take 11 s, and those with the change 1 s.
        budget.took(Duration::from_secs(84), 14);
        let short = budget.for_a_change(0).expect("60 s are enough to see an obvious difference");
        assert!(!budget.can_decide(&short), "two comparisons with the start take 210 s");
        budget.keep(Duration::from_secs(1));
        assert_eq!((budget.trial_s(), budget.proof_s()), (17.5, 105.0));
        let next = budget.for_a_change(0).expect("one of the start and one without it take 123 s");
        assert!(budget.can_decide(&next));
        assert!((94..=95).contains(&next.all.as_secs()), "{next:?}");
        budget.took(Duration::from_secs(28), 14);
        assert_eq!((budget.trial_s(), budget.proof_s()), (35.0, 105.0));
        budget.lengthen(1.0);
        assert_eq!((budget.trial_s(), budget.proof_s()), (52.5, 122.5));
    }

    /// Runs of 51 kbit/s take 3.4 s, so that a comparison that decides takes 60 s. The second of two such faults was not tried
    /// in 3 minutes, although three blocks show a difference of 3000 times.
    #[test]
    fn a_second_fault_is_tried_in_the_time_that_an_obvious_difference_takes() {
        let mut budget = TimeBudget::new(Duration::from_secs(100), 1);
        budget.took(Duration::from_secs_f64(8.0 * 3.4), 8);
        assert!((59.0..60.0).contains(&budget.proof_s()), "{}", budget.proof_s());
        assert!((34.0..=34.1).contains(&budget.least_trial_s()), "{}", budget.least_trial_s());
        let time = budget.for_a_change(1).expect("40 s are free");
        assert!((35..=41).contains(&time.all.as_secs()) && !budget.can_decide(&time), "{time:?}");
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
        let share = |left_s, waiting| for_a_change(left_s, [12.0, 20.0], 20.0, waiting);
        assert_eq!(share(170.0, 9), Some(50.0));
        assert_eq!(share(170.0, 1), Some(75.0), "half, beside one that waits");
        assert_eq!(share(170.0, 0), Some(150.0), "nobody else needs it");
        assert_eq!(share(50.0, 9), Some(20.0), "no less than it takes to speak");
        assert_eq!(
            share(39.0, 2),
            Some(19.0),
            "all that is free, for a difference that is obvious"
        );
        assert_eq!(share(31.0, 0), None);
    }
}
