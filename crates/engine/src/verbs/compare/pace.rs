//! How long the runs of a block take, and so how many more fit into the time.

use std::time::Duration;

/// The time that runs take. Runs that failed and the pauses after them do not count: the next block
/// may have none, and a far end that was away for a minute must not end the comparison.
pub struct Pace {
    /// Mean of one block's runs, of the block in which it was longest.
    longest: Duration,
    this: Duration,
    runs: u32,
}

impl Pace {
    /// Before the first block, of which only the length of the plan is known.
    pub fn new(expected: Duration) -> Self {
        Self { longest: expected, this: Duration::ZERO, runs: 0 }
    }

    /// A run of this block ended and took this time, including the change to its arm.
    pub fn run(&mut self, took: Duration) {
        self.this += took;
        self.runs += 1;
    }

    /// All runs of this block have come to their ends.
    pub fn end_block(&mut self) {
        let mean = std::mem::take(&mut self.this).checked_div(std::mem::take(&mut self.runs));
        self.longest = self.longest.max(mean.unwrap_or_default());
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
    fn only_runs_that_came_to_their_end_count() {
        let seconds = Duration::from_secs;
        let mut pace = Pace::new(seconds(1));
        assert_eq!(pace.runs(seconds(60)), 60);
        // Between the two a run failed and a pause was made, of which nothing is said.
        pace.run(seconds(1));
        pace.run(seconds(3));
        pace.end_block();
        assert_eq!((pace.runs(seconds(60)), pace.time_s(30)), (30, 60.0));
        pace.run(seconds(1));
        pace.end_block();
        assert_eq!(pace.runs(seconds(60)), 30, "the longest one counts");
    }
}
