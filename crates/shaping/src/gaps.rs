//! The pauses between arrivals, and the rhythm of bursts.

use std::collections::BTreeMap;

use goodput_model::{Bytes, GapBin, Gaps, Rhythm, median};

use crate::trace::Came;

/// Where the bins begin, seconds; shorter pauses are those within a batch of the receiver's.
const FIRST_BIN_S: f64 = 1e-6;
/// A pause of at least this share of the longest ends a burst.
const PAUSE_SHARE: f64 = 0.5;
/// Share of the time that the pauses take, at least, if bursts are what is seen.
const MIN_PAUSED_SHARE: f64 = 0.5;
/// Bursts between pauses, at least.
const MIN_BURSTS: usize = 4;
/// Share of the mean period by which periods spread, at most, if they are even.
const MAX_SPREAD: f64 = 0.15;

pub(crate) fn gaps(held: &[Came], frame: f64) -> Gaps {
    let pauses: Vec<f64> = held.windows(2).map(|two| two[1].came_s - two[0].came_s).collect();
    let longest_s = pauses.iter().copied().fold(0.0, f64::max);
    Gaps { longest_s, histogram: histogram(&pauses), rhythm: rhythm(held, &pauses, frame) }
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

/// Bursts of several frames, with long pauses at even times between them.
fn rhythm(held: &[Came], pauses: &[f64], frame: f64) -> Option<Rhythm> {
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
    let frames = median(bursts.clone().map(|two| (two[1] - two[0]) as f64))?;
    let periods: Vec<f64> = bursts.map(|two| held[two[1]].came_s - held[two[0]].came_s).collect();
    let mean = periods.iter().sum::<f64>() / periods.len() as f64;
    let spread = periods.iter().map(|period| (period - mean).powi(2)).sum::<f64>();
    let is_even = (spread / periods.len() as f64).sqrt() <= MAX_SPREAD * mean;
    // Single frames at even times are a rate, and no bursts.
    let burst_bytes = Bytes((frames * frame).round() as u64);
    (is_even && frames >= 2.0).then_some(Rhythm { period_s: mean, burst_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(came_s: f64) -> Came {
        Came { sent_s: 0.0, came_s, wait_s: 0.0, lost_before: 0 }
    }

    #[test]
    fn bursts_each_200_ms_are_a_rhythm() {
        let times = (0..10).flat_map(|burst| [0.0, 1e-5, 2e-5].map(|t| f64::from(burst) * 0.2 + t));
        let held: Vec<Came> = times.map(at).collect();
        let gaps = gaps(&held, 1514.0);
        let rhythm = gaps.rhythm.unwrap();
        assert!((rhythm.period_s - 0.2).abs() < 1e-9, "{rhythm:?}");
        assert_eq!(rhythm.burst_bytes, Bytes(3 * 1514));
        assert!(gaps.longest_s > 0.19, "{gaps:?}");
        assert_eq!(gaps.histogram.iter().map(|bin| bin.count).collect::<Vec<_>>(), [20, 9]);
    }

    #[test]
    fn single_frames_at_even_times_are_none() {
        let held: Vec<Came> = (0..100).map(|n| at(f64::from(n) * 1e-3)).collect();
        assert_eq!(gaps(&held, 1514.0).rhythm, None);
    }
}
