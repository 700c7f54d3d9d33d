//! The design of a comparison: its arms, the responses that judge them, and how long it may take.

use goodput_model::Response;

use crate::looks::Looks;

/// Number of the warm-up block. It never counts: caches, routes and the CPU's clock settle during this block.
pub const WARM_UP_BLOCK: u32 = 0;

/// The text of [`goodput_model::Trial::discarded`] for the runs of the warm-up block.
pub const WARM_UP: &str = "warm-up";

/// How a comparison runs and when it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// Arms, including the baseline (number 0); with fewer than 2 there is nothing to compare.
    pub arms: usize,
    /// The responses that judge the arms. An arm is run until all are decided; the first one counts.
    pub responses: Vec<Response>,
    /// Responses of which any single one may prove an arm better; they share the error. At least 1.
    pub ways_to_win: usize,
    /// An arm is no longer run after a look at which the interval of its first response is at most ± this wide,
    /// percent.
    pub precision_percent: f64,
    /// Smallest effect that counts as one, percent. At zero, "no difference" can't be shown.
    pub threshold_percent: f64,
    /// Most blocks that are run, including discarded blocks but not the warm-up. After the last look (80 for two arms)
    /// only discarded blocks make it run longer.
    pub max_blocks: u32,
    /// Whether the question is which part of a file transfer is the slowest, rather than how the arms differ: then the
    /// arms run until this is decided.
    pub is_about_parts: bool,
    /// Whether the runs only choose what is compared again: then an obvious difference ends them
    /// ([`crate::obvious()`]).
    pub chooses: bool,
    /// Determines the order within blocks. The same seed gives the same orders.
    pub seed: u64,
}

impl Default for Design {
    fn default() -> Self {
        let responses = vec![Response::Throughput];
        Self {
            arms: 2,
            responses,
            ways_to_win: 1,
            precision_percent: 1.0,
            threshold_percent: 3.0,
            max_blocks: 96,
            is_about_parts: false,
            chooses: false,
            seed: 0,
        }
    }
}

impl Design {
    /// When its arms are looked at. If any of several responses can support a claim, each is one more claim
    /// (Bonferroni).
    pub fn looks(&self) -> Looks {
        Looks::for_arms(1 + self.arms.saturating_sub(1) * self.ways_to_win.max(1))
    }
}
