//! How the time of tuning is shared between the changes, so that enough is left for the last comparison.

use std::time::{Duration, Instant};

use goodput_experiment::Design;

/// How much longer than expected runs may take.
const RUN_TIME_MARGIN_RATIO: f64 = 1.25;
/// Share of the time left, beyond what is kept for the end, that one change may take.
const MAX_TIME_SHARE_OF_A_CHANGE: f64 = 1.0 / 3.0;

/// The time there is, and the time that a comparison takes.
pub struct Budget {
    began: Instant,
    all: Duration,
    run_s: f64,
    /// Blocks of the shortest comparison that can speak.
    first_look: u32,
}

impl Budget {
    /// From now on. `run` is how long a run is expected to take; `ways_to_win` as in the design of each comparison.
    pub fn new(all: Duration, run: Duration, ways_to_win: usize) -> Self {
        let first_look = Design { ways_to_win, ..Design::default() }.looks().first();
        Self { began: Instant::now(), all, run_s: run.as_secs_f64(), first_look }
    }

    /// The first measurement took this time; its payload moved for `moved_s` seconds. What it took besides, each run takes.
    pub fn beside_payload(&mut self, took: Duration, moved_s: f64) {
        self.run_s += (took.as_secs_f64() - moved_s).max(0.0);
    }

    /// A comparison of `runs` runs took this time.
    pub fn took(&mut self, time: Duration, runs: usize) {
        if runs > 0 {
            self.run_s = self.run_s.max(time.as_secs_f64() / runs as f64);
        }
    }

    /// The time for one more change, unless the last comparison would then have too little.
    pub fn for_a_change(&self) -> Option<Duration> {
        for_a_change(self.left().as_secs_f64(), self.shortest_s()).map(Duration::from_secs_f64)
    }

    /// The least time in which a comparison can speak, seconds.
    pub fn shortest_s(&self) -> f64 {
        // Two runs a block, the warm-up among the blocks.
        let blocks = self.first_look + 1;
        self.run_s * f64::from(2 * blocks) * RUN_TIME_MARGIN_RATIO
    }

    /// When all the time is over.
    pub fn end(&self) -> Instant {
        self.began + self.all
    }

    /// The time left.
    pub fn left(&self) -> Duration {
        self.all.saturating_sub(self.began.elapsed())
    }
}

fn for_a_change(left_s: f64, shortest_s: f64) -> Option<f64> {
    let free = left_s - shortest_s;
    (free >= shortest_s).then(|| (free * MAX_TIME_SHARE_OF_A_CHANGE).max(shortest_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_comparison_always_has_its_time() {
        assert_eq!(for_a_change(170.0, 20.0), Some(50.0));
        assert_eq!(for_a_change(50.0, 20.0), Some(20.0), "no less than it takes to speak");
        assert_eq!(for_a_change(39.0, 20.0), None);
    }
}
