//! How likely losses are under an explanation, and what it costs to have more parameters.

use goodput_model::{LossModel, LossParameter};

use super::series::LossStep;

/// Excess of the variance over the mean that is tried, for losses that come in runs; 0 is none (Poisson).
pub const EXCESSES: [f64; 10] = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
/// By how much the likelihood falls at the ends of an interval of 90 %: half of the 0.9 quantile of χ² with one degree
/// of freedom (profile likelihood; Venzon, Moolgavkar 1988).
pub const INTERVAL_NATS: f64 = 1.353;

/// One explanation, as well as it fits.
#[derive(Debug, Clone)]
pub struct Fit {
    /// Which.
    pub model: LossModel,
    /// Bayesian information criterion, the less the better (Schwarz 1978).
    pub criterion: f64,
    /// Properties of the path according to this explanation.
    pub parameters: Vec<LossParameter>,
}

impl Fit {
    /// An explanation with this many free parameters and this likelihood of what this many steps lost.
    pub fn new(model: LossModel, free: f64, nats: f64, steps: usize) -> Self {
        let criterion = free * (steps.max(1) as f64).ln() - 2.0 * nats;
        Self { model, criterion, parameters: Vec::new() }
    }

    /// The same with a property of the path.
    pub fn with(mut self, name: &str, value: f64, (least, most): (f64, f64)) -> Self {
        self.parameters.push(LossParameter { name: name.into(), value, least, most });
        self
    }

    /// The fit, if all its numbers are numbers.
    pub fn sound(self) -> Option<Self> {
        let numbers = self.parameters.iter().flat_map(|p| [p.value, p.least, p.most]);
        let sound = numbers.chain([self.criterion]).all(f64::is_finite);
        sound.then_some(self)
    }
}

/// Log-likelihood that `lost` segments are lost where `mean` are expected and the variance is `mean * (1 + excess)`: the
/// negative binomial distribution of size `mean / excess`, Poisson's without excess. The part that every explanation
/// has in common, the factorial of `lost`, is left out.
pub fn nats(lost: f64, mean: f64, excess: f64) -> f64 {
    if mean <= 0.0 {
        return if lost > 0.0 { f64::NEG_INFINITY } else { 0.0 };
    }
    if excess <= 0.0 {
        return lost * mean.ln() - mean;
    }
    let size = mean / excess;
    libm::lgamma(lost + size) - libm::lgamma(size) - size * excess.ln_1p()
        + lost * (excess / (1.0 + excess)).ln()
}

/// The same of what a step lost, if each of its segments is lost with this chance.
pub fn step_nats(step: &LossStep, share: f64, excess: f64) -> f64 {
    match step.is_all_lost {
        true => at_least_nats(step.lost, step.sent * share, excess),
        false => nats(step.lost, step.sent * share, excess),
    }
}

/// Log-likelihood that `least` segments are lost or more: a run of losses that takes all that is in flight would have taken
/// more. Nothing is left out.
fn at_least_nats(least: f64, mean: f64, excess: f64) -> f64 {
    const NEGLIGIBLE_SHARE: f64 = 1e-9;
    let first = nats(least, mean, excess) - libm::lgamma(least + 1.0);
    let (mut sum, mut chance, mut lost) = (0.0, 1.0, least);
    // Each chance over the first.
    while chance > NEGLIGIBLE_SHARE * sum || lost < mean {
        sum += chance;
        chance *= match excess > 0.0 {
            true => (lost + mean / excess) / (lost + 1.0) * excess / (1.0 + excess),
            false => mean / (lost + 1.0),
        };
        lost += 1.0;
    }
    if first.is_finite() { first + sum.ln() } else { first }
}

/// The excess at which `nats_at` is largest, and that.
pub fn best_excess(nats_at: impl Fn(f64) -> f64) -> (f64, f64) {
    let all = EXCESSES.into_iter().map(|excess| (excess, nats_at(excess)));
    all.fold((0.0, f64::NEG_INFINITY), |best, one| if one.1 > best.1 { one } else { best })
}

/// The least and the most of the values whose likelihood is hardly below the largest.
pub fn interval(tried: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64) {
    let best = tried.clone().map(|(_, nats)| nats).fold(f64::NEG_INFINITY, f64::max);
    let within = tried.filter(|(_, nats)| best - nats <= INTERVAL_NATS).map(|(value, _)| value);
    within.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(value), most.max(value))
    })
}

/// The interval of a share that was estimated by `likeliest`, above 0.
pub fn share_interval(likeliest: f64, nats_at: impl Fn(f64) -> f64) -> (f64, f64) {
    let enough = nats_at(likeliest) - INTERVAL_NATS;
    let end = |mut outside: f64| {
        let mut inside = likeliest;
        for _ in 0..40 {
            let middle = (inside * outside).sqrt();
            *(if nats_at(middle) >= enough { &mut inside } else { &mut outside }) = middle;
        }
        inside
    };
    (end(likeliest * 1e-3), end((likeliest * 1e3).min(1.0).max(likeliest)))
}

/// Sent and lost segments of steps.
pub fn sums<'a>(steps: impl Iterator<Item = &'a LossStep>) -> (f64, f64) {
    steps.fold((0.0, 0.0), |(sent, lost), step| (sent + step.sent, lost + step.lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_adds_up_to_one_and_has_its_mean() {
        for excess in EXCESSES {
            let chance = |lost: f64| (nats(lost, 3.0, excess) - libm::lgamma(lost + 1.0)).exp();
            let counts = || (0..20_000).map(f64::from);
            assert!((counts().map(chance).sum::<f64>() - 1.0).abs() < 1e-6, "{excess}");
            let mean: f64 = counts().map(|lost| lost * chance(lost)).sum();
            assert!((mean - 3.0).abs() < 1e-4, "{excess}: {mean}");
            let square: f64 = counts().map(|lost| lost * lost * chance(lost)).sum();
            let variance = 3.0 * (1.0 + excess);
            assert!((square - 9.0 - variance).abs() < 1e-3 * variance, "{excess}: {square}");
        }
    }

    #[test]
    fn what_is_lost_at_least_is_all_that_is_not_less() {
        for excess in EXCESSES {
            let chance = |lost: f64| (nats(lost, 3.0, excess) - libm::lgamma(lost + 1.0)).exp();
            let less: f64 = (0..5).map(f64::from).map(chance).sum();
            assert!(
                (at_least_nats(5.0, 3.0, excess).exp() - (1.0 - less)).abs() < 1e-6,
                "{excess}"
            );
        }
        assert!(at_least_nats(0.0, 3.0, 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_interval_of_a_share_holds_it_and_narrows_with_the_number() {
        let of = |lost: f64, sent: f64| {
            share_interval(lost / sent, |share| nats(lost, sent * share, 0.0))
        };
        let (least, most) = of(10.0, 1000.0);
        assert!((0.0050..0.0060).contains(&least) && (0.0160..0.0170).contains(&most));
        let (least, most) = of(1000.0, 100_000.0);
        assert!((0.0094..0.0096).contains(&least) && (0.0104..0.0106).contains(&most));
    }
}
