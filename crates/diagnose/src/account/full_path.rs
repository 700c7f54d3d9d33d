//! When the path was full for all flows, also for those that did not wait in its queue at that moment.

use super::pair::Pair;
use crate::thresholds::MIN_WORTHWHILE_RATE_RATIO;

/// Share of what the path gives from which it is full: whatever else limits then, without it the rate would grow by less than
/// is worth a change.
pub const MIN_SHARE_OF_FULL: f64 = 1.0 / MIN_WORTHWHILE_RATE_RATIO;

/// Share of the time in which a queue must stand before the rate that it gives is taken for what the path carries. Chosen so
/// that a few samples that jitter raised don't count; not fitted.
const MIN_QUEUED_SHARE: f64 = 0.1;

/// Longest time over which rates are smoothed, seconds.
const MAX_SMOOTHED_S: f64 = 1.0;
/// Segments that a rate counts, if a second carries as many: 50 ms at 0.5 Mbit/s are two or three, and of 40, one more or less
/// is half of what [`MIN_SHARE_OF_FULL`] allows.
const SMOOTHED_SEGMENTS: f64 = 40.0;

/// What the path gives, segments per second but for the ceiling, which is in bits per second.
#[derive(Debug, Clone)]
pub struct FullPath {
    rates: Vec<Option<f64>>,
    /// Part of what seems to be lacking from the usual rate that nothing beyond it makes up for.
    lacking: f64,
    usual: Option<f64>,
    ceiling: Option<f64>,
}

impl FullPath {
    /// By the pairs of samples between which a queue stood, and what the slowest known link or shaper carries.
    pub fn of(pairs: &[Pair], queued: &[bool], ceiling: Option<f64>) -> Self {
        let often = queued.iter().filter(|queued| **queued).count() as f64
            >= MIN_QUEUED_SHARE * pairs.len() as f64;
        let beside_a_queue = |rates: &[Option<f64>]| {
            let full = rates.iter().zip(queued).filter(|(_, queued)| **queued);
            let usual = goodput_model::median(full.filter_map(|(rate, _)| *rate));
            usual.filter(|usual| often && *usual > 0.0)
        };
        // A queue that comes and goes within that time shows more than its mean, which tells how briefly to look.
        let about = beside_a_queue(&smoothed(pairs, MAX_SMOOTHED_S));
        let brief_s = about.map_or(MAX_SMOOTHED_S, |rate| SMOOTHED_SEGMENTS / rate);
        let rates = smoothed(pairs, brief_s.min(MAX_SMOOTHED_S));
        Self { usual: beside_a_queue(&rates), rates, lacking: 1.0, ceiling }
    }

    /// The same, if these of the pairs are what is measured: a little more at times makes up for a little less at others, so what
    /// lacks in all of them is what their mean lacks.
    pub fn measured_over(mut self, pairs: &[Pair], is_measured: impl Fn(&Pair) -> bool) -> Self {
        let measured = pairs.iter().enumerate().filter(|(_, pair)| is_measured(pair));
        let (mut falls_short_s, mut lacks_s) = (0.0, 0.0);
        for (number, pair) in measured {
            let short = 1.0 - self.of_usual(number).unwrap_or(1.0);
            lacks_s += short * pair.lasts_s();
            falls_short_s += short.max(0.0) * pair.lasts_s();
        }
        if falls_short_s > 0.0 {
            self.lacking = lacks_s.max(0.0) / falls_short_s;
        }
        self
    }

    fn of_usual(&self, number: usize) -> Option<f64> {
        self.usual.zip(self.rates[number]).map(|(usual, rate)| rate / usual)
    }

    /// Whether all flows together got what the slowest known link or shaper carries.
    pub fn is_at_ceiling(&self, pair: &Pair) -> bool {
        is_reached(self.ceiling, pair.rate())
    }

    /// What all flows together got around the pair with this number, as a share of what the path usually gives while a queue
    /// stands on it, 0 to 1. It is 0 if nobody knows what the path gives: then all of the time counts as lost.
    pub fn used_share(&self, number: usize) -> f64 {
        let of_usual = self.of_usual(number);
        of_usual.map_or(0.0, |share| 1.0 - self.lacking * (1.0 - share).max(0.0))
    }

    /// Whether that is all of it.
    pub fn is_at_usual(&self, number: usize) -> bool {
        is_reached(self.usual, self.rates[number])
    }
}

fn is_reached(full: Option<f64>, rate: Option<f64>) -> bool {
    full.zip(rate).is_some_and(|(full, rate)| rate >= MIN_SHARE_OF_FULL * full)
}

/// What was delivered in each pair together with those around it, segments per second. What was acknowledged would jump: a
/// hole that is filled acknowledges all behind it.
fn smoothed(pairs: &[Pair], seconds: f64) -> Vec<Option<f64>> {
    let moved = |pair: &Pair| Some((pair.delivered_segments()?, pair.lasts_s()));
    let moved: Vec<Option<(f64, f64)>> = pairs.iter().map(moved).collect();
    let around = |number: usize| {
        let is_near = |other: &usize| {
            (pairs[*other].middle_s() - pairs[number].middle_s()).abs() <= seconds / 2.0
        };
        let before = (0..number).rev().take_while(is_near);
        let near = before.chain((number..pairs.len()).take_while(is_near));
        let sum = |sum: (f64, f64), one: (f64, f64)| (sum.0 + one.0, sum.1 + one.1);
        let (segments, lasts_s) = near.filter_map(|other| moved[other]).fold((0.0, 0.0), sum);
        moved[number].map(|_| segments / lasts_s)
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
    fn what_is_a_tenth_less_uses_nine_tenths() {
        // A window that grows back for a while.
        let later: Vec<_> = (0..40).map(|n| delivered(if n < 12 { 90 } else { 100 }, 0)).collect();
        let nothing = delivered(0, 0);
        let pairs = pairs(&nothing, &later, 2.0);
        let queued: Vec<bool> = (0..40).map(|number| number >= 12).collect();
        let full = FullPath::of(&pairs, &queued, None).measured_over(&pairs, |_| true);
        assert!((full.used_share(3) - 0.9).abs() < 1e-9 && full.used_share(30) == 1.0);
        let unknown = FullPath::of(&pairs, &[false; 40], None).measured_over(&pairs, |_| true);
        assert_eq!(unknown.used_share(3), 0.0);
    }

    #[test]
    fn what_comes_late_and_then_at_once_is_not_lacking() {
        let segments = |n| if n % 2 == 0 { 80 } else { 120 };
        let later: Vec<_> = (0..40).map(|n| delivered(segments(n), 0)).collect();
        let nothing = delivered(0, 0);
        let pairs = pairs(&nothing, &later, 2.0);
        let full = FullPath::of(&pairs, &[true; 40], None).measured_over(&pairs, |_| true);
        assert!((0..40).all(|number| full.used_share(number) > 0.99));
    }

    #[test]
    fn a_rate_is_read_as_briefly_as_its_segments_allow() {
        // The queue stands in every fourth tenth of a second, and only then is the path full.
        let segments = |n| if n % 4 == 0 { 200 } else { 100 };
        let later: Vec<_> = (0..40).map(|n| delivered(segments(n), 0)).collect();
        let nothing = delivered(0, 0);
        let pairs = pairs(&nothing, &later, 0.1);
        let queued: Vec<bool> = (0..40).map(|number| number % 4 == 0).collect();
        let full = FullPath::of(&pairs, &queued, None).measured_over(&pairs, |_| true);
        assert!((full.used_share(4) - 1.0).abs() < 1e-9 && (full.used_share(5) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_known_ceiling_needs_no_queue() {
        let (nothing, later) = (delivered(0, 0), [delivered(1, 1_000)]);
        let pairs = pairs(&nothing, &later, 1.0);
        let at = |ceiling| FullPath::of(&[], &[], Some(ceiling)).is_at_ceiling(&pairs[0]);
        assert!(at(8_100.0) && !at(9_000.0));
    }
}
