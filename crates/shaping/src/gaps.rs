//! The pauses between arrivals, and the rhythm of bursts.

use std::collections::BTreeMap;

use goodput_model::{Bytes, GapBin, Gaps, Rhythm, median};

/// Beginning of the first bin, seconds. It also counts shorter pauses, which lie within a batch of the receiver.
const FIRST_BIN_S: f64 = 1e-6;
/// Smallest length of a pause that ends a burst, as a share of the longest.
const PAUSE_SHARE: f64 = 0.5;
/// Smallest share of the time that the pauses between bursts take.
const MIN_PAUSED_SHARE: f64 = 0.5;
/// Smallest number of bursts between long pauses.
const MIN_BURSTS: usize = 4;
/// Largest difference of an even period from the median, as a share of the median.
const MAX_SPREAD: f64 = 0.15;
/// Smallest share of even periods in a rhythm. Not all, because the first and the last burst may be cut off. Of random
/// periods, one in ten would be as near the median.
const MIN_EVEN_SHARE: f64 = 0.75;

/// A packet that passed a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Passed {
    /// Time, seconds.
    pub(crate) at_s: f64,
    /// Size.
    pub(crate) bytes: f64,
}

/// The pauses between packets, the earliest first.
pub(crate) fn gaps(passed: &[Passed]) -> Gaps {
    let pauses: Vec<f64> = passed.windows(2).map(|two| two[1].at_s - two[0].at_s).collect();
    let longest_s = pauses.iter().copied().fold(0.0, f64::max);
    Gaps { longest_s, histogram: histogram(&pauses), rhythm: rhythm(passed, &pauses) }
}

fn histogram(pauses: &[f64]) -> Vec<GapBin> {
    let bin = |pause: &f64| (pause / FIRST_BIN_S).log2().floor().max(0.0) as i32;
    let mut counts = BTreeMap::new();
    for pause in pauses {
        *counts.entry(bin(pause)).or_insert(0) += 1;
    }
    let bins = counts.into_iter();
    bins.map(|(bin, count)| GapBin { from_s: FIRST_BIN_S * 2f64.powi(bin), count }).collect()
}

/// Bursts of several packets, with long pauses at even times between them.
fn rhythm(passed: &[Passed], pauses: &[f64]) -> Option<Rhythm> {
    let longest = pauses.iter().copied().fold(0.0, f64::max);
    let long = |pause: f64| pause >= PAUSE_SHARE * longest;
    let begins: Vec<usize> =
        pauses.iter().enumerate().filter(|(_, p)| long(**p)).map(|(at, _)| at + 1).collect();
    let paused: f64 = pauses.iter().copied().filter(|pause| long(*pause)).sum();
    let all: f64 = pauses.iter().sum();
    if begins.len() <= MIN_BURSTS || paused < MIN_PAUSED_SHARE * all {
        return None;
    }
    let bursts = begins.windows(2);
    let packets = median(bursts.clone().map(|two| (two[1] - two[0]) as f64))?;
    let bytes = |two: &[usize]| passed[two[0]..two[1]].iter().map(|one| one.bytes).sum();
    let burst_bytes = median(bursts.clone().map(bytes))?;
    let periods: Vec<f64> = bursts.map(|two| passed[two[1]].at_s - passed[two[0]].at_s).collect();
    let period_s = median(periods.iter().copied())?;
    let is_near = |period: &&f64| (**period - period_s).abs() <= MAX_SPREAD * period_s;
    let even = periods.iter().filter(is_near).count();
    let is_even = even as f64 >= MIN_EVEN_SHARE * periods.len() as f64;
    // Single packets at even times are a rate, and no bursts.
    let burst_bytes = Bytes(burst_bytes.round() as u64);
    (is_even && packets >= 2.0).then_some(Rhythm { period_s, burst_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_s: f64) -> Passed {
        Passed { at_s, bytes: 1514.0 }
    }

    #[test]
    fn bursts_each_200_ms_are_a_rhythm() {
        let times = (0..10).flat_map(|burst| [0.0, 1e-5, 2e-5].map(|t| f64::from(burst) * 0.2 + t));
        let passed: Vec<Passed> = times.map(at).collect();
        let gaps = gaps(&passed);
        let rhythm = gaps.rhythm.unwrap();
        assert!((rhythm.period_s - 0.2).abs() < 1e-9, "{rhythm:?}");
        assert_eq!(rhythm.burst_bytes, Bytes(3 * 1514));
        assert!(gaps.longest_s > 0.19, "{gaps:?}");
        assert_eq!(gaps.histogram.iter().map(|bin| bin.count).collect::<Vec<_>>(), [20, 9]);
    }

    #[test]
    fn a_last_burst_of_its_own_time_takes_no_rhythm_away() {
        let at_burst = |begun: f64| [0.0, 1e-5].map(|t| at(begun + t));
        let even = (0..8).flat_map(|burst| at_burst(f64::from(burst) * 0.208));
        let passed: Vec<_> = even.chain(at_burst(1.53)).chain(at_burst(1.88)).collect();
        let rhythm = gaps(&passed).rhythm.unwrap();
        assert!((rhythm.period_s - 0.208).abs() < 1e-9, "{rhythm:?}");
        let random = [0.0, 0.2, 0.33, 0.7, 0.81, 1.2, 1.38, 1.9].into_iter().flat_map(at_burst);
        assert_eq!(gaps(&random.collect::<Vec<_>>()).rhythm, None);
    }

    #[test]
    fn single_frames_at_even_times_are_none() {
        let passed: Vec<Passed> = (0..100).map(|n| at(f64::from(n) * 1e-3)).collect();
        assert_eq!(gaps(&passed).rhythm, None);
    }
}
