//! Whether a witness that counts events is lower in one arm, by all events of its runs together: a run of a second may see
//! two drops or none, so that neither the median nor the number of runs with a difference says anything.

use goodput_model::WitnessCount;

/// More events than this prove no more, and cost time.
const MOST_EVENTS: f64 = 10_000.0;

/// The witness of all these runs together; `None` without any.
pub(crate) fn pooled(runs: &[WitnessCount]) -> Option<f64> {
    let per = runs.first()?.per;
    Some(per * events(runs) / chances(runs))
}

fn events(runs: &[WitnessCount]) -> f64 {
    runs.iter().map(|run| run.events).sum()
}

fn chances(runs: &[WitnessCount]) -> f64 {
    runs.iter().map(|run| run.of).sum()
}

/// Probability that chance alone leaves as few events to `free`, or fewer, if events are as frequent in both.
///
/// Given their number in both together, the number in one of two equal arms is binomial, with the share of that arm's
/// chances (Przyborowski and Wilenski, 1940, "Homogeneity of results in testing samples from Poisson series"). Events that
/// come in bursts say less: both numbers are divided by the dispersion, which is 1 for independent events, and never less
/// (McCullagh and Nelder, 1989, "Generalized linear models", section 6.2.3).
pub(crate) fn chance_of_fall(limited: &[WitnessCount], free: &[WitnessCount]) -> f64 {
    let most = MOST_EVENTS / (events(limited) + events(free)).max(1.0);
    let scale = (1.0 / dispersion([limited, free])).min(most);
    let (before, after) = ((events(limited) * scale).floor(), (events(free) * scale).ceil());
    let share = chances(free) / (chances(limited) + chances(free));
    at_most(before + after, after, share)
}

/// How much the events of runs of one arm vary over how much independent ones would: Pearson's statistic for each degree of
/// freedom, at least 1.
fn dispersion(arms: [&[WitnessCount]; 2]) -> f64 {
    let (mut sum, mut freedom) = (0.0, 0.0);
    for runs in arms.into_iter().filter(|runs| events(runs) > 0.0) {
        let rate = events(runs) / chances(runs);
        let expected = |run: &WitnessCount| run.of * rate;
        sum += runs
            .iter()
            .map(|run| (run.events - expected(run)).powi(2) / expected(run))
            .sum::<f64>();
        freedom += runs.len() as f64 - 1.0;
    }
    if freedom > 0.0 { (sum / freedom).max(1.0) } else { 1.0 }
}

/// Probability of at most `few` of `all` events, each of which is one of these with probability `share`.
fn at_most(all: f64, few: f64, share: f64) -> f64 {
    if few >= all * share {
        // About half or more: nothing that would be claimed.
        return 1.0;
    }
    // From C(all, few) share^few (1 - share)^(all - few) downwards, by logarithms: the first may be very small.
    let ways: f64 = (0..few as u64).map(|i| ((all - i as f64) / (few - i as f64)).ln()).sum();
    let mut exactly = (ways + few * share.ln() + (all - few) * (1.0 - share).ln()).exp();
    let (mut sum, mut left) = (0.0, few);
    while exactly > 0.0 {
        sum += exactly;
        exactly *= left / (all - left + 1.0) * (1.0 - share) / share;
        left -= 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn runs(events: &[u32]) -> Vec<WitnessCount> {
        let of = |events: &u32| WitnessCount { events: (*events).into(), of: 5000.0, per: 100.0 };
        events.iter().map(of).collect()
    }

    #[test]
    fn the_binomial_has_its_known_probabilities() {
        assert!((at_most(5.0, 0.0, 0.5) - 1.0 / 32.0).abs() < 1e-12);
        assert!((at_most(8.0, 1.0, 0.5) - 9.0 / 256.0).abs() < 1e-12);
        assert!((at_most(4.0, 1.0, 0.5) - 5.0 / 16.0).abs() < 1e-12);
        assert!((at_most(3.0, 0.0, 0.25) - 27.0 / 64.0).abs() < 1e-12);
        assert_eq!(at_most(0.0, 0.0, 0.5), 1.0);
        assert!(at_most(10_000.0, 1000.0, 0.5) < 1e-300);
    }

    #[test]
    fn few_events_count_together_and_a_single_burst_counts_once() {
        let none = runs(&[0; 6]);
        assert!(chance_of_fall(&runs(&[2, 0, 3, 0, 1, 1]), &none) < 0.05);
        assert!(chance_of_fall(&runs(&[1, 0, 1, 0, 0, 1]), &none) > 0.05, "3 events prove nothing");
        assert!(chance_of_fall(&runs(&[500, 0, 0, 0, 0, 0]), &none) > 0.05, "one burst");
        assert!(chance_of_fall(&runs(&[500, 460, 530, 480, 510, 520]), &runs(&[9; 6])) < 1e-9);
        assert_eq!(pooled(&runs(&[2, 0, 3, 0])), Some(100.0 * 5.0 / 20_000.0));
        let short = WitnessCount { of: 50.0, ..none[0] };
        assert!(chance_of_fall(&runs(&[2, 0, 3, 0, 1, 1]), &[short]) > 0.05, "it had no chance");
    }

    /// Six runs with bursts of a mean length, about `mean` of them in each.
    fn bursts(random: &mut impl RngExt, mean: f64, length: f64) -> Vec<WitnessCount> {
        let mut events = [0; 6];
        for run in &mut events {
            for _ in 0..100 {
                let mut goes_on = random.random_bool(mean / 100.0);
                while goes_on {
                    *run += 1;
                    goes_on = !random.random_bool(1.0 / length);
                }
            }
        }
        runs(&events)
    }

    #[test]
    fn equal_arms_rarely_seem_different_whether_events_come_alone_or_in_bursts() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(14);
        for (mean, length) in [(0.5, 1.0), (2.0, 1.0), (2.0, 4.0), (2.0, 20.0), (10.0, 4.0)] {
            let falls = (0..400).filter(|_| {
                let [one, other] = [(); 2].map(|()| bursts(&mut random, mean, length));
                chance_of_fall(&one, &other) <= 0.05
            });
            let falls = falls.count();
            assert!(falls <= 20, "{falls} of 400 at {mean} bursts of {length}");
        }
    }
}
