//! When the path was full for all flows, also for those that did not wait in its queue at that moment.

use super::pair::Pair;
use crate::thresholds::MIN_WORTHWHILE_RATE_RATIO;

/// Share of what the path gives from which it is full: whatever else limits then, without it the rate would grow by less than
/// is worth a change.
const MIN_SHARE_OF_FULL: f64 = 1.0 / MIN_WORTHWHILE_RATE_RATIO;

/// Share of the time in which a queue must stand before the rate that it gives is taken for what the path carries. Chosen so
/// that a few samples that jitter raised don't count; not fitted.
const MIN_QUEUED_SHARE: f64 = 0.1;

/// Time over which rates are smoothed, seconds. 50 ms at 0.5 Mbit/s are two packets or three; a second is 41, so that one
/// more or less is half of what [`MIN_SHARE_OF_FULL`] allows.
const SMOOTHED_S: f64 = 1.0;

/// What the path gives, bits per second.
#[derive(Debug, Clone)]
pub struct FullPath {
    rates: Vec<Option<f64>>,
    usual: Option<f64>,
    ceiling: Option<f64>,
}

impl FullPath {
    /// By the pairs of samples between which a queue stood, and what the slowest known link or shaper carries.
    pub fn of(pairs: &[Pair], queued: &[bool], ceiling: Option<f64>) -> Self {
        let rates = smoothed(pairs);
        let beside_a_queue = rates.iter().zip(queued).filter(|(_, queued)| **queued);
        let full: Vec<f64> = beside_a_queue.filter_map(|(rate, _)| *rate).collect();
        let often = full.len() as f64 >= MIN_QUEUED_SHARE * pairs.len() as f64;
        let usual = goodput_model::median(full).filter(|_| often);
        Self { rates, usual, ceiling }
    }

    /// Whether all flows together got what the slowest known link or shaper carries.
    pub fn is_at_ceiling(&self, pair: &Pair) -> bool {
        is_reached(self.ceiling, pair.rate())
    }

    /// Whether around the pair with this number all flows together got what the path usually gives while a queue stands on
    /// it.
    pub fn is_at_usual(&self, number: usize) -> bool {
        is_reached(self.usual, self.rates[number])
    }
}

fn is_reached(full: Option<f64>, rate: Option<f64>) -> bool {
    full.zip(rate).is_some_and(|(full, rate)| rate >= MIN_SHARE_OF_FULL * full)
}

/// What was delivered in each pair together with those around it, segments per second. What was acknowledged would jump: a
/// hole that is filled acknowledges all behind it.
fn smoothed(pairs: &[Pair]) -> Vec<Option<f64>> {
    let moved = |pair: &Pair| Some((pair.delivered_segments()?, pair.lasts_s()));
    let moved: Vec<Option<(f64, f64)>> = pairs.iter().map(moved).collect();
    let around = |number: usize| {
        let is_near = |other: &usize| {
            (pairs[*other].middle_s() - pairs[number].middle_s()).abs() <= SMOOTHED_S / 2.0
        };
        let before = (0..number).rev().take_while(is_near);
        let near = before.chain((number..pairs.len()).take_while(is_near));
        let sum = |sum: (f64, f64), one: (f64, f64)| (sum.0 + one.0, sum.1 + one.1);
        let (segments, seconds) = near.filter_map(|other| moved[other]).fold((0.0, 0.0), sum);
        moved[number].map(|_| segments / seconds)
    };
    (0..pairs.len()).map(around).collect()
}

#[cfg(test)]
mod tests {
    use goodput_model::{FlowSample, Known, Role, TcpInfo};

    use super::*;

    /// A flow that has this many segments delivered, and this many bytes acknowledged.
    fn delivered(segments: u64, bytes: u64) -> FlowSample {
        let tcp = TcpInfo {
            delivered_segments: Some(segments),
            acked_bytes: Some(bytes),
            ..TcpInfo::default()
        };
        FlowSample { tcp: Known::Value(tcp), ..FlowSample::unreported(0, Role::Sender, 0, "") }
    }

    /// Pairs of `lasts_s` seconds, after each of which a flow is as one of `later`.
    fn pairs<'a>(nothing: &'a FlowSample, later: &'a [FlowSample], lasts_s: f64) -> Vec<Pair<'a>> {
        let pair = |(number, later)| {
            let from_s = number as f64 * lasts_s;
            Pair { from_s, to_s: from_s + lasts_s, flows: vec![(nothing, later)] }
        };
        later.iter().enumerate().map(pair).collect()
    }

    #[test]
    fn the_rate_beside_a_queue_is_what_the_path_gives_if_a_queue_stood_often_enough() {
        let later: Vec<_> = (0..20).map(|n| delivered(if n == 19 { 90 } else { 100 }, 0)).collect();
        let nothing = delivered(0, 0);
        let pairs = pairs(&nothing, &later, 2.0);
        let after = |queued: usize| {
            let queued: Vec<bool> = (0..20).map(|number| number < queued).collect();
            let full = FullPath::of(&pairs, &queued, None);
            [full.is_at_usual(10), full.is_at_usual(19)]
        };
        assert_eq!((after(2), after(1)), ([true, false], [false, false]));
    }

    #[test]
    fn two_packets_and_then_three_are_one_rate() {
        let segments = |n| if n % 2 == 0 { 2 } else { 3 };
        let later: Vec<_> = (0..100).map(|n| delivered(segments(n), 0)).collect();
        let nothing = delivered(0, 0);
        let full = FullPath::of(&pairs(&nothing, &later, 0.05), &[true; 100], None);
        assert!((0..100).all(|number| full.is_at_usual(number)));
    }

    #[test]
    fn a_known_ceiling_needs_no_queue() {
        let (nothing, later) = (delivered(0, 0), [delivered(1, 1_000)]);
        let pairs = pairs(&nothing, &later, 1.0);
        let at = |ceiling| FullPath::of(&[], &[], Some(ceiling)).is_at_ceiling(&pairs[0]);
        assert!(at(8_100.0) && !at(9_000.0));
    }
}
