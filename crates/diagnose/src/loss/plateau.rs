//! All flows together: a rate that passes, and drops what exceeds it.
//!
//! ```text
//! flows that never send less       each alone: some of a few segments are lost, as by chance
//! than the path carries            together:   108 108 107 108 108 … segments pass, whatever was sent
//! ```
//!
//! Chance takes each segment alone, so the number that passes varies at least as a binomial one. Of many flows, each has too few
//! segments to show the difference, and their windows may be as small as they get, so no size tells a limit either. Their sum
//! tells it: given what was sent, a limit passes as much each time.
//!
//! This holds for senders that always have more to send. What a program hands over at its own pace arrives at that pace,
//! whatever is lost on the way, because it is sent again (`super::sends_freely`).

use goodput_model::LossModel;

use super::fit::{EXCESSES, Fit, interval, nats, ways};
use super::totals::Total;
use crate::fitted::Fitted;

/// Fewer steps show no rate. A run of 4 s reads 64 flows in detail seven times, a part of which is their start. Of so few, chance
/// looks like a rate in at most three of 100 runs in which as much comes each time, and in none in which it varies (simulated
/// below).
const MIN_STEPS: usize = 4;
/// How much the number that passes may vary beside the rate, segments: samples are not taken at the same point of a packet.
const DEVIATIONS_SEGMENTS: [f64; 9] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
/// Rates that are tried: of the steps that lost something, these quantiles of what passed.
const RATE_QUANTILES: [f64; 7] = [0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97];
/// The lost share, and how long runs are.
const OF_RANDOM: f64 = 1.0;
const OF_RUNS: f64 = 2.0;
/// The rate, and how much it varies.
const OF_RATE: f64 = 2.0;

/// The rate and its rivals.
pub struct Compared {
    rate: Fit,
    chance: Vec<Fit>,
    /// Share of the steps that the rate explains less well than anything might.
    pub accident_share: f64,
    /// Whether what passes varies less than by chance.
    is_steadier: bool,
}

impl Compared {
    /// Compares them since the flows' start; `None` if there is too little to compare.
    pub fn of(steps: &[Total]) -> Option<Self> {
        let steps: Vec<&Total> = steps.iter().filter(|step| step.has_started).collect();
        if steps.len() < MIN_STEPS {
            return None;
        }
        let share = lost_share(&steps)?;
        let chance = by_chance(&steps, share);
        let (rate, per_second, deviation) = at_a_rate(&steps)?;
        // Losses that vary more than each segment's own chance are runs, of whatever shape.
        let by_chance = steps.iter().map(|step| step.arrived() * share * (1.0 - share));
        let by_chance = by_chance.sum::<f64>() / steps.len() as f64;
        let is_off = |step: &&&Total| beyond_nats(step, per_second, deviation) < any_nats(step);
        let accident_share = steps.iter().filter(is_off).count() as f64 / steps.len() as f64;
        let is_steadier = deviation.powi(2) < by_chance;
        Some(Self { rate, chance, accident_share, is_steadier })
    }

    /// How far the rate is ahead of chance, in the information criterion.
    pub fn ahead(&self) -> f64 {
        let next = self.chance.iter().map(|fit| fit.criterion).fold(f64::INFINITY, f64::min);
        next - self.rate.criterion
    }

    /// What explains the losses clearly better than its rivals: the rate, if what passes also varies less than by chance, or
    /// chance.
    pub fn shown(&self) -> Option<LossModel> {
        let enough = Fitted::RateAhead.value();
        if self.is_steadier && self.ahead() >= enough {
            return Some(LossModel::Rate);
        }
        let best = self.chance.iter().min_by(|a, b| a.criterion.total_cmp(&b.criterion))?;
        (self.ahead() <= -enough).then_some(best.model)
    }

    /// All of them, the best first.
    pub fn fits(self) -> Vec<Fit> {
        let mut fits = self.chance;
        fits.push(self.rate);
        fits.sort_by(|a, b| a.criterion.total_cmp(&b.criterion));
        fits
    }
}

/// Compares them; `None` if there is too little to compare, or what passes varies as much as by chance.
pub fn compared(steps: &[Total]) -> Option<Compared> {
    Compared::of(steps).filter(|compared| compared.is_steadier)
}

/// Share of what came that was lost; `None` if that is nothing or all.
fn lost_share(steps: &[&Total]) -> Option<f64> {
    let sum = |of: fn(&Total) -> f64| steps.iter().map(|step| of(step)).sum::<f64>();
    let share = sum(|step| step.lost) / sum(Total::arrived);
    (share > 0.0 && share < 1.0).then_some(share)
}

/// Each segment with this chance, alone or in runs.
fn by_chance(steps: &[&Total], share: f64) -> Vec<Fit> {
    let ways: Vec<f64> = steps.iter().map(|step| ways(step.lost, step.arrived())).collect();
    let at = |excess: f64| -> f64 {
        let one = |(step, ways): (&&Total, &f64)| {
            or_accident(nats(step.lost, step.arrived(), share, excess) + ways, step)
        };
        steps.iter().zip(&ways).map(one).sum()
    };
    let alone = at(0.0);
    let runs = EXCESSES.into_iter().skip(1).map(at);
    let runs = runs.fold(f64::NEG_INFINITY, f64::max);
    vec![
        Fit::new(LossModel::Random, OF_RANDOM, alone, steps.len()),
        Fit::new(LossModel::Runs, OF_RUNS, runs, steps.len()),
    ]
}

/// What exceeds a rate is lost; the rate, segments a second, and by how many segments the number that passes varies.
fn at_a_rate(steps: &[&Total]) -> Option<(Fit, f64, f64)> {
    let lossy = steps.iter().filter(|step| step.lost > 0.0);
    let mut rates: Vec<f64> = lossy.map(|step| step.passed / step.seconds).collect();
    rates.sort_by(f64::total_cmp);
    let quantile = |share: f64| rates.get((share * rates.len() as f64) as usize).copied();
    let at = |rate: f64, deviation: f64| {
        let one = |step: &&Total| or_accident(beyond_nats(step, rate, deviation), step);
        steps.iter().map(one).sum::<f64>()
    };
    let of = |rate: f64| {
        let each = DEVIATIONS_SEGMENTS.into_iter().map(|one| (rate, one, at(rate, one)));
        each.max_by(|a, b| a.2.total_cmp(&b.2))
    };
    let rates = RATE_QUANTILES.into_iter().filter_map(quantile);
    let tried: Vec<(f64, f64, f64)> = rates.filter_map(of).collect();
    let (rate, deviation, nats) = tried.iter().copied().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let fit = Fit::new(LossModel::Rate, OF_RATE, nats, steps.len())
        .with("rate_segments_per_s", rate, interval(tried.iter().map(|one| (one.0, one.2))))
        .sound()?;
    Some((fit, rate, deviation))
}

/// Log-likelihood of what a step lost, if a number that is normally distributed about the rate passes of what came.
fn beyond_nats(step: &Total, rate: f64, deviation: f64) -> f64 {
    let below = |passed: f64| {
        let off = (passed - rate * step.seconds) / deviation;
        0.5 * libm::erfc(-off / std::f64::consts::SQRT_2)
    };
    match step.lost > 0.0 {
        true => (below(step.passed + 0.5) - below(step.passed - 0.5)).ln(),
        // More might have passed.
        false => (1.0 - below(step.passed - 0.5)).ln(),
    }
}

/// The same, if some steps are accidents.
fn or_accident(nats: f64, step: &Total) -> f64 {
    let accident = Fitted::AccidentShare.value();
    ((1.0 - accident) * nats.exp() + accident * any_nats(step).exp()).ln()
}

/// The same of an accident, in which any number may be lost.
fn any_nats(step: &Total) -> f64 {
    -step.arrived().ln_1p()
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// The fits if the rate stands out.
    fn stands_out(steps: &[Total]) -> Option<Vec<Fit>> {
        let compared = Compared::of(steps)?;
        (compared.shown() == Some(LossModel::Rate)).then(|| compared.fits())
    }

    fn total(passed: u32, lost: u32) -> Total {
        let (passed, lost) = (f64::from(passed), f64::from(lost));
        Total { seconds: 0.1, passed, lost, queue_s: 0.0, least_queue_s: 0.0, has_started: true }
    }

    /// Forty steps, of each of which this many segments pass of those that came.
    fn stands(seed: u64, mut passed: impl FnMut(u32, &mut Xoshiro256PlusPlus) -> u32) -> bool {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut step = |_| {
            let came = rng.random_range(145..175);
            let passed = passed(came, &mut rng).min(came);
            total(passed, came - passed)
        };
        stands_out(&(0..40).map(&mut step).collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn what_passes_as_steadily_as_no_chance_lets_it_is_a_rate_s() {
        assert!((0..20).all(|seed| stands(seed, |_, rng| rng.random_range(107..110))));
        // As much varies as samples between two packets of 64 flows leave.
        assert!((0..20).all(|seed| stands(seed, |_, rng| rng.random_range(105..112))));
    }

    #[test]
    fn chance_is_no_rate_however_many_flows_it_takes_from() {
        let alone = |share: f64| {
            move |came: u32, rng: &mut Xoshiro256PlusPlus| {
                (0..came).filter(|_| !rng.random_bool(share)).count() as u32
            }
        };
        for share in [0.003, 0.03, 0.33] {
            assert!((0..50).all(|seed| !stands(seed, alone(share))), "{share}");
        }
    }

    /// As much comes each time, as of senders that pace: then only the spread tells chance from a rate.
    #[test]
    fn chance_is_no_rate_of_what_comes_at_a_steady_pace() {
        let steps = |seed: u64, wobble: f64| -> Vec<Total> {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut step = |_| {
                let share = (0.3 + wobble * rng.random_range(-1.0..1.0_f64)).clamp(0.01, 0.99);
                let lost = (0..160).filter(|_| rng.random_bool(share)).count() as u32;
                total(160 - lost, lost)
            };
            (0..40).map(&mut step).collect()
        };
        for wobble in [0.0, 0.1, 0.28] {
            assert!((0..50).all(|seed| stands_out(&steps(seed, wobble)).is_none()), "{wobble}");
        }
    }

    /// 64 flows are read in detail each 0.6 s, so that a run of 4 s has few steps, each of many segments.
    #[test]
    fn few_steps_of_many_segments_show_a_rate_and_seldom_take_chance_for_one() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(64);
        for count in 4..8 {
            for share in [0.05, 0.3] {
                let mut run = |comes: std::ops::Range<u32>, is_rate: bool| {
                    let mut step = |_| {
                        let came = rng.random_range(comes.clone());
                        let by_chance = (0..came).filter(|_| rng.random_bool(share)).count() as u32;
                        let passes = rng.random_range(597..604);
                        if is_rate {
                            total(passes, came - passes)
                        } else {
                            total(came - by_chance, by_chance)
                        }
                    };
                    stands_out(&(0..count).map(&mut step).collect::<Vec<_>>()).is_some()
                };
                let times =
                    |stands: &mut dyn FnMut() -> bool| (0..100).filter(|_| stands()).count();
                let rates = times(&mut || run(700..1000, true));
                let mistaken = times(&mut || run(500..1000, false));
                let mistaken_if_steady = times(&mut || run(900..901, false));
                assert!(rates >= 90, "{count} {share}: {rates}");
                assert!(
                    mistaken == 0 && mistaken_if_steady <= 3,
                    "{count} {share}: {mistaken} {mistaken_if_steady}"
                );
            }
        }
    }

    /// Of what comes unevenly, chance takes as large a share each time, and a rate lets as much pass each time.
    #[test]
    fn chance_stands_out_of_what_comes_unevenly_and_never_of_a_rate() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
        let mut run = |passes: &mut dyn FnMut(u32, &mut Xoshiro256PlusPlus) -> u32| {
            let mut step = |_| {
                let came = rng.random_range(400..1000);
                let passed = passes(came, &mut rng).min(came);
                total(passed, came - passed)
            };
            let steps: Vec<_> = (0..12).map(&mut step).collect();
            Compared::of(&steps).unwrap().shown()
        };
        for _ in 0..50 {
            let mut chance = |came: u32, rng: &mut Xoshiro256PlusPlus| {
                (0..came).filter(|_| !rng.random_bool(0.08)).count() as u32
            };
            assert_eq!(run(&mut chance), Some(LossModel::Random));
            // Samples of 64 flows lie up to as many segments apart.
            let wobbly = run(&mut |_, rng| rng.random_range(550..614));
            assert!(matches!(wobbly, None | Some(LossModel::Rate)), "{wobbly:?}");
            assert_eq!(run(&mut |_, rng| rng.random_range(380..390)), Some(LossModel::Rate));
        }
    }

    #[test]
    fn a_rate_that_drops_has_its_number() {
        let steps: Vec<_> = (0..20).map(|n| total(108, 30 + 7 * (n % 4))).collect();
        let fits = stands_out(&steps).unwrap();
        assert_eq!(fits[0].model, LossModel::Rate);
        assert!((fits[0].parameters[0].value - 1080.0).abs() < 1.0, "{fits:?}");
        assert!(stands_out(&steps[..3]).is_none());
        let start: Vec<_> =
            steps.iter().map(|step| Total { has_started: false, ..*step }).collect();
        assert!(stands_out(&start).is_none());
    }
}
