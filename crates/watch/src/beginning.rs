//! With which test a change began, and how surely: its likelihood for each test (Hinkley, "Inference About the Change-Point in a
//! Sequence of Random Variables", Biometrika 57, 1970).
//!
//! The window whose ranks are the least likely ones of an unchanged path says that it changed, and only about when: a test before
//! the change that lies high by chance makes a longer window no likelier, so that on a noisy path the window began hours
//! early. With the levels of both sides known, each test says to which side it belongs.

use crate::noise::Noise;

/// Share of the likelihood that the interval has.
const SURE: f64 = 0.95;
/// Rounds after which the level since the change and its beginning hardly move.
const ROUNDS: usize = 3;

/// Places among some tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// The likeliest first test after the change.
    pub(crate) first: usize,
    /// The first one at the earliest, with 95 % of the likelihood in the interval.
    pub(crate) earliest: usize,
    /// At the latest.
    pub(crate) latest: usize,
}

impl Beginning {
    /// Of a change from the level `before` to another one, which began with one of the tests from `first` to `last`; `near`
    /// is about where. `tests` are logarithms without the daily rhythm. None without tests since then.
    pub(crate) fn find(
        tests: &[f64],
        before: f64,
        (first, near, last): (usize, usize, usize),
        noise: &Noise,
    ) -> Option<Self> {
        let mut found = Self { first: near, earliest: near, latest: near };
        for _ in 0..ROUNDS {
            let since = noise.mean(tests.get(found.first..)?)?;
            found = Self::between(tests, [before, since], first..=last, noise)?;
        }
        Some(found)
    }

    /// Of a change between these levels, before and since, which began with one of the tests `among`.
    pub(crate) fn between(
        tests: &[f64],
        levels: [f64; 2],
        among: std::ops::RangeInclusive<usize>,
        noise: &Noise,
    ) -> Option<Self> {
        let first = *among.start();
        let mut sum = 0.0;
        // A test that belongs to the level since the change makes each beginning after it less likely.
        let belongs = tests.get(first..*among.end())?.iter();
        let mut likelihoods = vec![0.0];
        likelihoods.extend(belongs.map(|test| {
            sum -= noise.evidence(*test, levels);
            sum
        }));
        let most = likelihoods.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = likelihoods.iter().map(|one| (one - most).exp()).collect();
        let [likeliest, earliest, latest] = interval(&weights)?;
        Some(Self { first: first + likeliest, earliest: first + earliest, latest: first + latest })
    }
}

/// The place of the largest weight, and the ends of the shortest run around it that has most of all weights.
fn interval(weights: &[f64]) -> Option<[usize; 3]> {
    let likeliest = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b]))?;
    let (mut low, mut high, mut has) = (likeliest, likeliest, weights[likeliest]);
    let wanted = SURE * weights.iter().sum::<f64>();
    while has < wanted {
        let below = low.checked_sub(1).map(|place| weights[place]);
        let above = weights.get(high + 1).copied();
        match (below, above) {
            (Some(below), above) if above.is_none_or(|above| below >= above) => {
                (low, has) = (low - 1, has + below);
            }
            (_, Some(above)) => (high, has) = (high + 1, has + above),
            _ => break,
        }
    }
    Some([likeliest, low, high])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rhythm::{Rhythm, Seen};
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// Tests whose standard deviation is 0.02, the last `since` of which are lower by this.
    fn tests(seed: u64, since: usize, drop: f64) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let level = |n: usize| if n >= 200 - since { 20.0 - drop } else { 20.0 };
        (0..200).map(|n| level(n) + 0.02 * normal()).collect()
    }

    fn noise(tests: &[f64]) -> Noise {
        let seen = |value: &f64| Seen { day_share: 0.0, value: *value, segment: 0 };
        Noise::of(&Rhythm::default(), &tests.iter().map(seen).collect::<Vec<_>>(), 32)
    }

    fn found(tests: &[f64], near: usize) -> Beginning {
        Beginning::find(tests, 20.0, (168, near, 196), &noise(&tests[..160])).unwrap()
    }

    #[test]
    fn a_clear_change_is_dated_to_the_test_wherever_the_window_began() {
        let tests = tests(1, 8, 0.4);
        for near in [170, 186, 192, 196] {
            let at = |place| Beginning { first: place, earliest: place, latest: place };
            assert_eq!(found(&tests, near), at(192), "{near}");
        }
    }

    /// As a busy host's round trips vary: the change is hardly larger than the noise.
    #[test]
    fn an_unclear_change_is_dated_with_its_uncertainty() {
        let (mut off, mut within, mut wide) = (0.0, 0, 0);
        for seed in 0..200 {
            let found = found(&tests(seed, 10, 0.04), 180);
            off += found.first as f64 - 190.0;
            within += usize::from((found.earliest..=found.latest).contains(&190));
            wide += usize::from(found.latest > found.earliest);
        }
        assert!((off / 200.0).abs() < 1.0, "{off}: neither early nor late");
        assert!(within >= 180 && wide >= 180, "{within} {wide}");
    }

    #[test]
    fn equal_tests_have_a_sure_beginning() {
        let mut tests = vec![20.0; 200];
        tests[194..].fill(19.5);
        let found = Beginning::find(&tests, 20.0, (168, 190, 196), &noise(&tests[..160])).unwrap();
        assert_eq!((found.first, found.earliest, found.latest), (194, 194, 194));
    }

    #[test]
    fn an_interval_has_most_of_the_weight_and_ends_at_the_ends() {
        assert_eq!(interval(&[0.0, 1.0, 0.0]), Some([1, 1, 1]));
        assert_eq!(interval(&[1.0, 1.0]), Some([1, 0, 1]));
        assert_eq!(interval(&[0.3, 1.0, 0.2, 0.01]), Some([1, 0, 2]));
        assert_eq!(interval(&[]), None);
        assert_eq!(Beginning::find(&[], 20.0, (0, 0, 0), &Noise::default()), None);
    }
}
