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
/// come in bursts say less: the numbers and the chances of an arm are divided by its dispersion, which is 1 for independent
/// events, and never less (McCullagh and Nelder, 1989, "Generalized linear models", section 6.2.3).
pub(crate) fn chance_of_fall(limited: &[WitnessCount], free: &[WitnessCount]) -> f64 {
    let most = MOST_EVENTS / (events(limited) + events(free)).max(1.0);
    let [before, after] = dispersions(limited, free).map(|dispersion| (1.0 / dispersion).min(most));
    let share = after * chances(free) / (before * chances(limited) + after * chances(free));
    let (before, after) = ((events(limited) * before).floor(), (events(free) * after).ceil());
    at_most(before + after, after, share)
}

/// How much the events of runs of each arm vary over how much independent ones would, at least 1: of the limited runs, and of
/// the others.
///
/// A rate that differs from run to run shows the more, the more events a run has: runs that a fault lets carry a few packets
/// vary little, and those without it by hundreds of drops. So such an arm has a dispersion of its own, at least what
/// the differences of the rates make at its number of chances. Few events show no bursts: an arm with fewer chances that
/// seems better has at least the dispersion of both together.
fn dispersions(limited: &[WitnessCount], free: &[WitnessCount]) -> [f64; 2] {
    let arms = [limited, free];
    let rate = (events(limited) + events(free)) / (chances(limited) + chances(free));
    let (together, spread) = (together(arms), spread_of_rates(arms));
    let of = |arm: &[WitnessCount]| {
        let mean_events = rate * chances(arm) / arm.len() as f64;
        own(arm).unwrap_or(1.0).max(1.0 + spread * mean_events)
    };
    let has_more = chances(limited) >= chances(free);
    let before = of(limited).max(if has_more { together } else { 1.0 });
    [before, of(free).max(together)]
}

/// Pearson's statistic of the runs of one arm for each degree of freedom; `None` without events, or in one run alone.
fn own(runs: &[WitnessCount]) -> Option<f64> {
    if events(runs) == 0.0 || runs.len() < 2 {
        return None;
    }
    let of = deviations(runs).map(|(squared, expected)| squared / expected);
    Some(of.sum::<f64>() / (runs.len() as f64 - 1.0))
}

/// The same of both arms together, at least 1.
fn together(arms: [&[WitnessCount]; 2]) -> f64 {
    let (mut sum, mut freedom) = (0.0, 0.0);
    for runs in arms {
        if let Some(own) = own(runs) {
            let degrees = runs.len() as f64 - 1.0;
            (sum, freedom) = (sum + own * degrees, freedom + degrees);
        }
    }
    if freedom > 0.0 { (sum / freedom).max(1.0) } else { 1.0 }
}

/// Squared coefficient of variation of the rates from run to run, beyond what independent events make, by moments.
fn spread_of_rates(arms: [&[WitnessCount]; 2]) -> f64 {
    let (mut beyond, mut all) = (0.0, 0.0);
    for runs in arms.into_iter().filter(|runs| own(runs).is_some()) {
        let count = runs.len() as f64;
        for (squared, expected) in deviations(runs) {
            beyond += squared * count / (count - 1.0) - expected;
            all += expected * expected;
        }
    }
    if all > 0.0 { (beyond / all).max(0.0) } else { 0.0 }
}

/// The squared distance of each run's events from those that are expected, and these.
fn deviations(runs: &[WitnessCount]) -> impl Iterator<Item = (f64, f64)> {
    let rate = events(runs) / chances(runs);
    runs.iter().map(move |run| ((run.events - run.of * rate).powi(2), run.of * rate))
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

    /// A fault lets a few packets through, one of nine of which is dropped; without it slow start drops some of very many, in
    /// each run a different part.
    #[test]
    fn runs_of_a_few_packets_are_not_judged_by_how_much_those_of_very_many_vary() {
        let run = |(events, of): (u32, u32)| WitnessCount {
            events: events.into(),
            of: of.into(),
            per: 100.0,
        };
        let limited = [(6, 50), (5, 47), (7, 52), (5, 50), (6, 49), (5, 51)].map(run);
        let others = [(280, 17_000), (760, 16_800), (190, 17_100), (640, 17_000), (420, 16_900)];
        let free = others.map(run);
        let parts = [pooled(&limited), pooled(&free)].map(|part| part.unwrap());
        assert!((parts[0] - 11.4).abs() < 0.1 && (parts[1] - 2.7).abs() < 0.1, "{parts:?}");
        assert!(chance_of_fall(&limited, &free) < 1e-3);
        assert!(chance_of_fall(&free, &limited) > 0.5, "not the other way round");
        let few = [(1, 50), (0, 47), (2, 52), (0, 50), (1, 49), (1, 51)].map(run);
        assert!(chance_of_fall(&few, &free) > 0.05, "2 % is no fall to 3 %");
    }

    /// Six runs with bursts of a mean length, about `mean` of them in each, among `of` packets.
    fn bursts(random: &mut impl RngExt, mean: f64, length: f64, of: f64) -> Vec<WitnessCount> {
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
        runs(&events).into_iter().map(|run| WitnessCount { of, ..run }).collect()
    }

    #[test]
    fn arms_of_which_one_carries_far_more_rarely_seem_different() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(15);
        for (mean, length) in [(2.0, 1.0), (2.0, 4.0), (2.0, 20.0), (10.0, 4.0)] {
            for shares in [[0.1, 1.0], [1.0, 0.1], [0.02, 1.0], [1.0, 0.02]] {
                let falls = (0..400).filter(|_| {
                    let of = |share: f64| (mean * share, 5000.0 * share);
                    let [one, other] = shares.map(|share| {
                        let (mean, of) = of(share);
                        bursts(&mut random, mean, length, of)
                    });
                    chance_of_fall(&one, &other) <= 0.05
                });
                let falls = falls.count();
                assert!(falls <= 20, "{falls} of 400 at {mean} bursts of {length}, {shares:?}");
            }
        }
    }

    #[test]
    fn equal_arms_rarely_seem_different_whether_events_come_alone_or_in_bursts() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(14);
        for (mean, length) in [(0.5, 1.0), (2.0, 1.0), (2.0, 4.0), (2.0, 20.0), (10.0, 4.0)] {
            let falls = (0..400).filter(|_| {
                let [one, other] = [(); 2].map(|()| bursts(&mut random, mean, length, 5000.0));
                chance_of_fall(&one, &other) <= 0.05
            });
            let falls = falls.count();
            assert!(falls <= 20, "{falls} of 400 at {mean} bursts of {length}");
        }
    }
}
