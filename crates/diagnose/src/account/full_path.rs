//! When the path was full for all flows, also for those that did not wait in its queue at that moment.

use super::pair::Pair;
use crate::thresholds::MIN_WORTHWHILE_RATE_RATIO;

/// Share of what the path gives from which it is full: whatever else limits then, without it the rate would grow by less than
/// is worth a change.
const MIN_SHARE_OF_FULL: f64 = 1.0 / MIN_WORTHWHILE_RATE_RATIO;

/// What the path gives, bits per second.
#[derive(Debug, Clone, Copy)]
pub struct FullPath {
    usual: Option<f64>,
    ceiling: Option<f64>,
}

impl FullPath {
    /// By the pairs of samples between which a queue stood, and what the slowest known link or shaper carries.
    pub fn of(pairs: &[Pair], queued: &[bool], ceiling: Option<f64>) -> Self {
        let full = pairs.iter().zip(queued).filter(|(_, queued)| **queued);
        let usual = goodput_model::median(full.filter_map(|(pair, _)| pair.rate()));
        Self { usual, ceiling }
    }

    /// Whether the path gave all flows together what it can: the known ceiling, or, while a queue stood, what it usually
    /// gives with a queue.
    pub fn between(&self, pair: &Pair, queued: bool) -> bool {
        let reached = |full: Option<f64>| {
            full.zip(pair.rate()).is_some_and(|(full, rate)| rate >= MIN_SHARE_OF_FULL * full)
        };
        reached(self.ceiling) || queued && reached(self.usual)
    }
}
