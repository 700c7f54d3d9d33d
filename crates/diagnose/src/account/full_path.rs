//! When the path was full for all flows, also for those that did not wait in its queue at that moment.

use super::pair::Pair;
use crate::thresholds::MIN_WORTHWHILE_RATE_RATIO;

/// Share of what the path gives from which it is full: whatever else limits then, without it the rate would grow by less than
/// is worth a change.
const MIN_SHARE_OF_FULL: f64 = 1.0 / MIN_WORTHWHILE_RATE_RATIO;

/// Share of the time in which a queue must stand before the rate that it gives is taken for what the path carries.
const MIN_QUEUED_SHARE: f64 = 0.1;

/// What the path gives, bits per second.
#[derive(Debug, Clone, Copy)]
pub struct FullPath {
    usual: Option<f64>,
    ceiling: Option<f64>,
}

impl FullPath {
    /// By the pairs of samples between which a queue stood, and what the slowest known link or shaper carries.
    pub fn of(pairs: &[Pair], queued: &[bool], ceiling: Option<f64>) -> Self {
        let full: Vec<&Pair> =
            pairs.iter().zip(queued).filter(|(_, queued)| **queued).map(|(pair, _)| pair).collect();
        let often = full.len() as f64 >= MIN_QUEUED_SHARE * pairs.len() as f64;
        let usual = goodput_model::median(full.into_iter().filter_map(Pair::rate));
        Self { usual: usual.filter(|_| often), ceiling }
    }

    /// Whether all flows together got what the slowest known link or shaper carries.
    pub fn is_at_ceiling(&self, pair: &Pair) -> bool {
        Self::is_reached(self.ceiling, pair)
    }

    /// Whether all flows together got what the path usually gives while a queue stands on it.
    pub fn is_at_usual(&self, pair: &Pair) -> bool {
        Self::is_reached(self.usual, pair)
    }

    fn is_reached(full: Option<f64>, pair: &Pair) -> bool {
        full.zip(pair.rate()).is_some_and(|(full, rate)| rate >= MIN_SHARE_OF_FULL * full)
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{FlowSample, Known, Role, TcpInfo};

    use super::*;

    /// A flow that has this many bytes acknowledged.
    fn acked(bytes: u64) -> FlowSample {
        let tcp = TcpInfo { acked_bytes: Some(bytes), ..TcpInfo::default() };
        FlowSample { tcp: Known::Value(tcp), ..FlowSample::unreported(0, Role::Sender, 0, "") }
    }

    #[test]
    fn the_rate_beside_a_queue_is_what_the_path_gives_if_a_queue_stood_often_enough() {
        let (nothing, slow, fast) = (acked(0), acked(900), acked(1_000));
        let pair = |later| Pair { from_s: 0.0, to_s: 1.0, flows: vec![(&nothing, later)] };
        let pairs: Vec<Pair> = (0..20).map(|_| pair(&fast)).collect();
        let after = |queued: usize| {
            let queued: Vec<bool> = (0..pairs.len()).map(|number| number < queued).collect();
            let full = FullPath::of(&pairs, &queued, None);
            [full.is_at_usual(&pair(&fast)), full.is_at_usual(&pair(&slow))]
        };
        assert_eq!((after(2), after(1)), ([true, false], [false, false]));
    }

    #[test]
    fn a_known_ceiling_needs_no_queue() {
        let (nothing, fast) = (acked(0), acked(1_000));
        let pair = Pair { from_s: 0.0, to_s: 1.0, flows: vec![(&nothing, &fast)] };
        let at = |ceiling| FullPath::of(&[], &[], Some(ceiling)).is_at_ceiling(&pair);
        assert!(at(8_100.0) && !at(9_000.0));
    }
}
