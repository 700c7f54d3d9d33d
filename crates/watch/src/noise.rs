//! The usual noise of a path: how much a test inherits from the one before, and how sums of tests varied.

use goodput_model::median;

use crate::ranks::place;
use crate::rhythm::{Rhythm, Seen};

/// Standard deviations of normal noise in one median absolute deviation.
const PER_MAD: f64 = 1.4826;
/// Standard deviations beyond which a test passes nothing more on: one bad test is no busy hour.
const MAX_INHERITED: f64 = 3.0;
/// Largest share that a test can inherit. With more, a change would hardly show.
const MAX_SHARE: f64 = 0.9;
/// Share from which a busy hour lasts for hours. `tests/months.rs` counts the false alarms of ranks below it, which are few, and
/// of blocks above it.
const LASTING: f64 = 0.6;
/// Standard deviations from which a test pulls a mean no harder (Huber 1964: 95 % efficiency for normal noise).
const HUBER: f64 = 1.345;
/// Least standard deviation of a test beside a change, as a share of its size.
const LEAST_NOISE: f64 = 0.01;
/// Steps towards a mean, after which it hardly moves.
const STEPS: usize = 8;

/// The noise of one path.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Noise {
    /// Standard deviation of a test, robustly.
    scale: f64,
    /// Share of its deviation that a test passes on to the next: a first-order autoregression.
    share: f64,
    /// How many times the variance of sums of news exceeded that of independent ones, by number of tests.
    inflation: Vec<f64>,
}

impl Noise {
    /// The noise of `seen` beside its rhythm and levels, for sums of up to `longest` tests.
    pub(crate) fn of(rhythm: &Rhythm, seen: &[Seen], longest: usize) -> Self {
        let levels = rhythm.levels(seen);
        let off: Vec<f64> = seen
            .iter()
            .map(|test| test.value - rhythm.at(test.day_share) - levels[test.segment])
            .collect();
        let scale = PER_MAD * median(off.iter().map(|off| off.abs())).unwrap_or_default();
        let mut noise = Self { scale, share: 0.0, inflation: Vec::new() };
        noise.share = noise.inherited_share(seen, &off);
        let news: Vec<f64> = (0..off.len())
            .map(|index| {
                let before = index.checked_sub(1).filter(|before| follow(seen, *before));
                noise.news(before.map(|before| off[before]), off[index])
            })
            .collect();
        noise.inflation = inflation(seen, &news, longest);
        noise
    }

    /// What a test adds to what the test `before` it made likely; both as deviations from their level.
    pub(crate) fn news(&self, before: Option<f64>, off: f64) -> f64 {
        off - self.share * before.map_or(0.0, |before| self.inherited(before))
    }

    /// Whether tests depend so strongly on each other that a few in a row may all be far off.
    pub(crate) fn lasts(&self) -> bool {
        self.share >= LASTING
    }

    /// How many times the variance of a sum of the news of `tests` exceeds that of independent ones.
    pub(crate) fn inflation(&self, tests: usize) -> f64 {
        self.inflation.get(tests).copied().unwrap_or(1.0)
    }

    /// How many times the variance of a mean of tests exceeds that of independent ones.
    pub(crate) fn of_means(&self) -> f64 {
        // The sum of all autocorrelations of a first-order autoregression.
        (1.0 + self.share) / (1.0 - self.share) * self.inflation.last().copied().unwrap_or(1.0)
    }

    /// The mean of tests, to which one that is far off counts no more than one at the edge of the usual noise; none without
    /// tests.
    pub(crate) fn mean(&self, values: &[f64]) -> Option<f64> {
        let most = HUBER * self.scale;
        let median = median(values.iter().copied())?;
        let nearer = |mean: f64| {
            let off: f64 = values.iter().map(|value| (value - mean).clamp(-most, most)).sum();
            mean + off / values.len() as f64
        };
        Some((0..STEPS).fold(median, |mean, _| nearer(mean)))
    }

    /// Standard deviation of the mean of this number of tests.
    pub(crate) fn error_of_mean(&self, tests: usize) -> f64 {
        self.scale * (self.of_means() / tests as f64).sqrt()
    }

    /// How much likelier a test is after a change from one of these levels to the other one, as a difference of logarithms: of
    /// normal noise, with Huber's weights for what is far off, and of what tests inherit.
    pub(crate) fn evidence(&self, test: f64, [before, since]: [f64; 2]) -> f64 {
        // Equal tests have no noise. Then each says all.
        let scale = self.scale.max(LEAST_NOISE * (since - before).abs());
        if scale == 0.0 {
            return 0.0;
        }
        let loss = |level: f64| {
            let off = (test - level).abs() / scale;
            if off <= HUBER { off * off / 2.0 } else { HUBER * (off - HUBER / 2.0) }
        };
        (loss(before) - loss(since)) / self.of_means()
    }

    fn inherited(&self, off: f64) -> f64 {
        let most = MAX_INHERITED * self.scale;
        off.clamp(-most, most)
    }

    /// The autocorrelation of neighbours, without a few bad tests' weight.
    fn inherited_share(&self, seen: &[Seen], off: &[f64]) -> f64 {
        let off: Vec<f64> = off.iter().map(|off| self.inherited(*off)).collect();
        let pairs = (0..off.len().saturating_sub(1)).filter(|first| follow(seen, *first));
        let (mut both, mut square, mut number) = (0.0, 0.0, 0.0_f64);
        for first in pairs {
            both += off[first] * off[first + 1];
            square += off[first] * off[first];
            number += 1.0;
        }
        // A standard error more (Bartlett 1946): a share that is too small makes false alarms, one that is too large
        // costs little.
        let share = both / square + 1.0 / number.sqrt();
        if share.is_finite() { share.clamp(0.0, MAX_SHARE) } else { 0.0 }
    }
}

/// Whether no change is between this test and the next.
fn follow(seen: &[Seen], first: usize) -> bool {
    seen[first].segment == seen[first + 1].segment
}

/// By number of tests: the mean square deviation of sums of as many places in a row, compared with that of independent
/// places; at least 1. Sums across a change don't count.
fn inflation(seen: &[Seen], news: &[f64], longest: usize) -> Vec<f64> {
    let mut sorted = news.to_vec();
    sorted.sort_by(f64::total_cmp);
    let places: Vec<f64> = news.iter().map(|news| place(&sorted, *news) - 0.5).collect();
    // Sums of the first n places: a sum of some in a row is a difference.
    let mut sums = vec![0.0];
    sums.extend(places.iter().scan(0.0, |sum, place| {
        *sum += place;
        Some(*sum)
    }));
    let of = |tests: usize| {
        let (mut square, mut number) = (0.0, 0.0);
        for end in tests..=places.len() {
            if seen[end - tests].segment == seen[end - 1].segment {
                square += (sums[end] - sums[end - tests]).powi(2);
                number += 1.0;
            }
        }
        // A uniform place has a variance of 1/12.
        let ratio = square / number / (tests as f64 / 12.0);
        if ratio.is_finite() { ratio.max(1.0) } else { 1.0 }
    };
    std::iter::once(1.0).chain((1..=longest).map(of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// Noise of which each test passes on this share.
    fn noise(share: f64) -> Noise {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut value = 0.0;
        let seen = (0..4000).map(|_| {
            value = share * value + 0.02 * (random.random::<f64>() - 0.5);
            Seen { day_share: 0.0, value: 20.0 + value, segment: 0 }
        });
        Noise::of(&Rhythm::default(), &seen.collect::<Vec<_>>(), 32)
    }

    #[test]
    fn independent_tests_inherit_nothing() {
        let noise = noise(0.0);
        assert!(noise.share < 0.05, "{noise:?}");
        assert!((1.0..1.2).contains(&noise.inflation(8)), "{noise:?}");
    }

    #[test]
    fn what_is_inherited_is_taken_out() {
        let noise = noise(0.5);
        assert!((0.4..0.6).contains(&noise.share), "{noise:?}");
        assert!(noise.inflation(8) < 1.4 && noise.of_means() > 2.0, "{noise:?}");
        assert!(!noise.lasts(), "{noise:?}");
    }

    #[test]
    fn a_mean_has_the_error_of_what_tests_inherit_and_hardly_moves_by_a_bad_one() {
        let noise = noise(0.5);
        // Uniform within 0.02 and inherited by a half: 0.0067, and a sum of n varies three times as much.
        assert!((0.0035..0.0055).contains(&noise.error_of_mean(8)), "{noise:?}");
        let mut values = [20.0, 20.01, 19.99, 20.0, 20.01, 19.99, 20.0, 20.0];
        assert!((noise.mean(&values).unwrap() - 20.0).abs() < 1e-9);
        values[3] = 19.0;
        assert!((noise.mean(&values).unwrap() - 20.0).abs() < 0.003);
        assert_eq!(noise.mean(&[]), None);
    }

    #[test]
    fn a_test_says_to_which_level_it_belongs_and_a_bad_one_not_more_than_others() {
        let noise = noise(0.0);
        let of = |test| noise.evidence(test, [20.0, 19.95]);
        assert!(of(20.0) < -1.0 && of(19.95) > 1.0 && of(19.975).abs() < 1e-9);
        assert!(of(10.0) < 2.0 * of(19.9));
        assert_eq!(noise.evidence(20.0, [20.0, 20.0]), 0.0);
        assert_eq!(Noise::default().evidence(20.0, [20.0, 20.0]), 0.0);
    }

    #[test]
    fn equal_tests_have_no_noise() {
        let seen = vec![Seen { day_share: 0.0, value: 20.0, segment: 0 }; 100];
        let noise = Noise::of(&Rhythm::default(), &seen, 32);
        assert_eq!(noise.news(Some(0.0), -0.1), -0.1);
        assert_eq!(noise.inflation(8), 1.0);
    }
}
