//! How long a block of runs takes, and so how many more fit into the time.

use std::time::Duration;

/// The time that blocks take. Runs that failed and the pauses after them do not count: the next block
/// may have none, and a far end that was away for a minute must not end the comparison.
pub struct Pace {
    longest: Duration,
    this: Duration,
}

impl Pace {
    /// Before the first block, of which only the length of the plan is known.
    pub fn new(expected: Duration) -> Self {
        Self { longest: expected, this: Duration::ZERO }
    }

    /// A run of this block ended and took this time, including the change to its arm.
    pub fn run(&mut self, took: Duration) {
        self.this += took;
    }

    /// All runs of this block have come to their ends.
    pub fn end_block(&mut self) {
        self.longest = self.longest.max(std::mem::take(&mut self.this));
    }

    /// How many more blocks fit into `left`.
    pub fn blocks(&self, left: Duration) -> u32 {
        (left.as_secs_f64() / self.longest.as_secs_f64()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_came_to_their_end_count() {
        let seconds = Duration::from_secs;
        let mut pace = Pace::new(seconds(2));
        assert_eq!(pace.blocks(seconds(60)), 30);
        // Between the two a run failed and a pause was made, of which nothing is said.
        pace.run(seconds(1));
        pace.run(seconds(2));
        pace.end_block();
        assert_eq!(pace.blocks(seconds(60)), 20);
        pace.run(seconds(1));
        pace.end_block();
        assert_eq!(pace.blocks(seconds(60)), 20, "the longest one counts");
    }
}
