//! How long the runs of a block take, and so how many more fit into the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use goodput_experiment::Design;

use super::same_values;
use crate::near::latency::IDLE_PHASE_TIME;

/// Longest run unless the user sets a length, seconds: past slow start on most paths, and short enough for the dozen
/// runs that a proof takes.
pub const LONGEST_RUN_S: f64 = 2.0;
/// Shortest run, seconds.
const SHORTEST_RUN_S: f64 = 0.3;
/// Share of a run in which payload moves. In the rest, flows are connected and the hosts are inspected.
const PAYLOAD_SHARE: f64 = 0.5;

/// Length of one run unless the user sets it, seconds. With many arms each run is shorter, so that they are judged
/// before the time is up. With `latency`, a run first looks at the idle path.
pub fn run_s(arms: usize, max_time: Duration, latency: bool) -> f64 {
    let idle = if latency { IDLE_PHASE_TIME } else { Duration::ZERO };
    let blocks = Design { arms, ..Design::default() }.looks().first() + 1;
    let most_s = max_time.as_secs_f64() / (f64::from(blocks) * arms.max(1) as f64);
    (most_s * PAYLOAD_SHARE - idle.as_secs_f64()).clamp(SHORTEST_RUN_S, LONGEST_RUN_S)
}

/// What it takes until each arm is judged for the first time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeToJudge {
    /// Runs of an arm that count.
    pub runs_each: u32,
    /// At least, seconds: payload alone, without a warm-up.
    pub least_s: f64,
    /// About, seconds: with a warm-up, and what is done between the runs.
    pub about_s: f64,
}

/// The time until each of these arms is judged, if payload moves for `seconds` in each run.
pub fn time_to_judge(arms: usize, seconds: f64, latency: bool) -> TimeToJudge {
    let idle_s = if latency { IDLE_PHASE_TIME.as_secs_f64() } else { 0.0 };
    let first = Design { arms, ..Design::default() }.looks().first();
    let between_s = seconds.min(LONGEST_RUN_S) * (1.0 / PAYLOAD_SHARE - 1.0);
    let all = |blocks: u32, run_s: f64| f64::from(blocks) * arms as f64 * (run_s + idle_s);
    TimeToJudge {
        runs_each: first,
        least_s: all(first, seconds),
        about_s: all(first + 1, seconds + between_s),
    }
}

/// Least time in which each of these arms runs once, without a warm-up.
pub fn least_time(arms: usize) -> Duration {
    Duration::from_secs_f64(SHORTEST_RUN_S * arms as f64)
}

/// The length of a run whose payload moves for `seconds` now, if `runs` of them take `needed_s` and only `left_s` are
/// left; not below the shortest.
pub fn shorter_s(seconds: f64, runs: u32, needed_s: f64, left_s: f64) -> f64 {
    let over_s = needed_s * RUN_TIME_MARGIN_RATIO - left_s;
    (seconds - over_s.max(0.0) / f64::from(runs.max(1))).max(SHORTEST_RUN_S.min(seconds))
}

/// How much longer than those before runs may take.
const RUN_TIME_MARGIN_RATIO: f64 = 1.1;

/// The time that runs take. Failed runs and the pauses after them do not count: the next block may have none, and a far
/// end that was away for a minute must not end the comparison.
pub struct Pace {
    /// Mean run time of the block with the longest mean.
    longest: Duration,
    this: Duration,
    runs: u32,
    /// Time and number of the runs of each arm.
    arms: BTreeMap<usize, (Duration, u32)>,
}

impl Pace {
    /// Before the first block, when only the length of the plan is known.
    pub fn new(expected: Duration) -> Self {
        Self { longest: expected, this: Duration::ZERO, runs: 0, arms: BTreeMap::new() }
    }

    /// A run of this block ended and took this time, including the change to its arm.
    pub fn run(&mut self, arm: usize, took: Duration) {
        self.this += took;
        self.runs += 1;
        let (time, runs) = self.arms.entry(arm).or_default();
        *time += took;
        *runs += 1;
    }

    /// Mean time of a run of this arm.
    pub fn mean_of(&self, arm: usize) -> Option<Duration> {
        let (time, runs) = self.arms.get(&arm)?;
        time.checked_div(*runs)
    }

    /// Forgets the arms that are gone; the others get the numbers that they leave.
    pub fn leave_out(&mut self, gone: &BTreeSet<usize>) {
        self.arms = same_values::of_others(std::mem::take(&mut self.arms), gone);
    }

    /// All runs of this block have completed.
    pub fn end_block(&mut self) {
        let mean = std::mem::take(&mut self.this).checked_div(std::mem::take(&mut self.runs));
        self.longest = self.longest.max(mean.unwrap_or_default());
    }

    /// Each run is shorter from here on, by these seconds.
    pub fn shorten(&mut self, less_s: f64) {
        self.longest = self.longest.saturating_sub(Duration::from_secs_f64(less_s.max(0.0)));
    }

    /// How long this many runs take, seconds.
    pub fn time_s(&self, runs: u32) -> f64 {
        f64::from(runs) * self.longest.as_secs_f64()
    }

    /// How many more runs fit into `left`.
    pub fn runs(&self, left: Duration) -> u32 {
        (left.as_secs_f64() / self.longest.as_secs_f64()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_many_arms_are_shorter_so_that_all_are_judged() {
        let five_minutes = Duration::from_secs(300);
        let run_s = |arms, time| run_s(arms, time, false);
        assert_eq!(run_s(2, five_minutes), LONGEST_RUN_S);
        // The first look at 18 arms is after 11 blocks, and one block is the warm-up.
        let of_eighteen = run_s(18, five_minutes);
        assert!((of_eighteen - 300.0 / (18.0 * 12.0) / 2.0).abs() < 1e-9, "{of_eighteen}");
        assert_eq!(run_s(18, Duration::from_secs(10)), SHORTEST_RUN_S);
        assert_eq!(run_s(0, five_minutes), LONGEST_RUN_S);
    }

    #[test]
    fn the_time_until_all_are_judged_grows_with_arms_runs_and_waits() {
        let two = time_to_judge(2, 2.0, false);
        assert_eq!((two.runs_each, two.least_s, two.about_s), (6, 24.0, 56.0));
        // What is done between runs does not grow with their length.
        assert_eq!(time_to_judge(2, 10.0, false).about_s, 7.0 * 2.0 * 12.0);
        let eighteen = time_to_judge(18, SHORTEST_RUN_S, false);
        assert!((eighteen.least_s - 11.0 * 18.0 * 0.3).abs() < 1e-9, "{eighteen:?}");
        let idle_s = IDLE_PHASE_TIME.as_secs_f64();
        assert_eq!(time_to_judge(2, 2.0, true).least_s, 12.0 * (2.0 + idle_s));
    }

    /// With the length that `run_s` gives, the time is enough unless a run can't get shorter.
    #[test]
    fn runs_whose_length_fits_the_time_are_judged_in_it() {
        for arms in 2..40 {
            for time_s in [30.0, 60.0, 300.0, 3600.0] {
                let seconds = run_s(arms, Duration::from_secs_f64(time_s), false);
                let about_s = time_to_judge(arms, seconds, false).about_s;
                assert!(about_s <= time_s + 1e-6 || seconds == SHORTEST_RUN_S, "{arms} {time_s}");
            }
        }
    }

    #[test]
    fn a_wait_before_the_payload_is_part_of_a_run() {
        let [without, with] =
            [false, true].map(|latency| run_s(4, Duration::from_secs(120), latency));
        assert!((without - with - 1.0).abs() < 1e-9, "{without} {with}");
    }

    #[test]
    fn runs_get_as_short_as_the_time_needs_and_no_shorter() {
        // 12 runs of 4 s of which 2 s are payload take 52.8 s with the margin; 16.8 s too much with 36 s left.
        assert!((shorter_s(2.0, 12, 48.0, 36.0) - 0.6).abs() < 1e-9);
        assert_eq!(shorter_s(2.0, 12, 48.0, 60.0), 2.0, "there is time enough");
        assert_eq!(shorter_s(2.0, 12, 48.0, 10.0), SHORTEST_RUN_S);
        assert_eq!(shorter_s(0.1, 12, 48.0, 10.0), 0.1, "it was shorter before");
    }

    #[test]
    fn only_runs_that_came_to_their_end_count() {
        let seconds = Duration::from_secs;
        let mut pace = Pace::new(seconds(1));
        assert_eq!(pace.runs(seconds(60)), 60);
        // Between the two, a run failed and a pause was made; neither is counted.
        pace.run(0, seconds(1));
        pace.run(1, seconds(3));
        pace.end_block();
        assert_eq!((pace.runs(seconds(60)), pace.time_s(30)), (30, 60.0));
        pace.run(1, seconds(1));
        pace.end_block();
        assert_eq!(pace.runs(seconds(60)), 30, "the longest one counts");
        assert_eq!((pace.mean_of(1), pace.mean_of(2)), (Some(seconds(2)), None));
        pace.leave_out(&BTreeSet::from([0]));
        assert_eq!((pace.mean_of(0), pace.mean_of(1)), (Some(seconds(2)), None), "it is the first");
    }
}
