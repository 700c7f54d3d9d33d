//! How likely losses are under an explanation, and what it costs to have more parameters.

use goodput_model::{LossModel, LossParameter};

use super::series::LossStep;

/// Excesses of the variance over that of chance without memory that are tried, for losses that come in runs.
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

/// Log-likelihood that `lost` of the segments that came are lost, if each is lost with the chance `share`, and the number varies
/// by `1 + excess` as much as without memory: the binomial distribution without excess, else the beta-binomial one of as many
/// independent draws as there are runs, `came / excess`. Its variance is `came * share * (1 - share)`, times
/// `1 + excess * (came - 1) / (came + excess)`: a run that is longer than what came takes all of it. If losses are rare,
/// this is Poisson's distribution and the negative binomial one. The part that every explanation has in common, [`ways`], is
/// left out.
pub fn nats(lost: f64, came: f64, share: f64, excess: f64) -> f64 {
    #[cfg(test)]
    counted::one();
    let passed = came - lost;
    if passed < 0.0 || share <= 0.0 && lost > 0.0 || share >= 1.0 && passed > 0.0 {
        return f64::NEG_INFINITY;
    }
    if came <= 0.0 || share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    if excess <= 0.0 {
        return lost * share.ln() + passed * (-share).ln_1p();
    }
    let draws = came / excess;
    rising(draws * share, lost) + rising(draws * (1.0 - share), passed) - rising(draws, came)
}

/// Logarithm of `from * (from + 1) * …`, with this many factors.
fn rising(from: f64, factors: f64) -> f64 {
    if factors > 0.0 { libm::lgamma(from + factors) - libm::lgamma(from) } else { 0.0 }
}

/// Logarithm of how many ways there are to lose so many of what came.
pub fn ways(lost: f64, came: f64) -> f64 {
    libm::lgamma(came + 1.0) - libm::lgamma(lost + 1.0) - libm::lgamma(came - lost + 1.0)
}

/// [`nats`] of what a step lost, if each of its segments is lost with this chance.
pub fn step_nats(step: &LossStep, share: f64, excess: f64) -> f64 {
    match step.is_all_lost {
        true => all_lost_nats(step.came(), share, excess),
        false => nats(step.lost, step.came(), share, excess),
    }
}

/// Mean length of a run of losses, segments. The number lost in runs of mean length r varies by `2 r (1 - share) - 1` times as
/// much as without memory (a chain of two states, Gilbert 1960), which is 1 for runs by chance: `1 / (1 - share)`.
pub fn mean_run(share: f64, excess: f64) -> f64 {
    (1.0 + excess / 2.0) / (1.0 - share)
}

/// Log-likelihood that all of so many segments are lost: a run begins, and goes on to the last. What was lost of more that
/// might have been sent is not known, so the run may be longer.
pub fn all_lost_nats(count: f64, share: f64, excess: f64) -> f64 {
    if count <= 0.0 {
        return 0.0;
    }
    share.ln() + (count - 1.0) * (-1.0 / mean_run(share, excess)).ln_1p()
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

/// Segments of steps that came to where they pass or are lost, and those lost.
pub fn sums<'a>(steps: impl Iterator<Item = &'a LossStep>) -> (f64, f64) {
    steps.fold((0.0, 0.0), |(came, lost), step| (came + step.came(), lost + step.lost))
}

/// How many likelihoods were computed: they are most of what a diagnosis costs.
#[cfg(test)]
pub mod counted {
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    pub fn one() {
        COUNT.with(|count| count.set(count.get() + 1));
    }

    /// Of this thread, during `work`.
    pub fn during(work: impl FnOnce()) -> u64 {
        let before = COUNT.with(Cell::get);
        work();
        COUNT.with(Cell::get) - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAME: f64 = 60.0;

    fn chance(lost: f64, share: f64, excess: f64) -> f64 {
        (nats(lost, CAME, share, excess) + ways(lost, CAME)).exp()
    }

    #[test]
    fn the_distribution_adds_up_to_one_and_has_its_mean_and_variance() {
        for (share, excess) in
            [0.01, 0.3, 0.9].iter().flat_map(|share| EXCESSES.map(|excess| (*share, excess)))
        {
            let counts = || (0..=60).map(f64::from);
            let mean_of = |of: &dyn Fn(f64) -> f64| {
                counts().map(|lost| of(lost) * chance(lost, share, excess)).sum::<f64>()
            };
            assert!((mean_of(&|_| 1.0) - 1.0).abs() < 1e-9, "{share} {excess}");
            let mean = CAME * share;
            assert!((mean_of(&|lost| lost) - mean).abs() < 1e-9, "{share} {excess}");
            let variance = mean * (1.0 - share) * (1.0 + excess * (CAME - 1.0) / (CAME + excess));
            let is = mean_of(&|lost| (lost - mean).powi(2));
            assert!((is - variance).abs() < 1e-6 * variance, "{share} {excess}: {is} {variance}");
        }
    }

    /// Of rare losses, Poisson's distribution and the negative binomial one, of mean 3.
    #[test]
    fn rare_losses_have_the_distributions_of_rare_events() {
        let (came, share) = (3e7, 1e-7);
        for lost in (0..12).map(f64::from) {
            let of = |excess: f64| nats(lost, came, share, excess) + ways(lost, came);
            let poisson = lost * 3.0_f64.ln() - 3.0 - libm::lgamma(lost + 1.0);
            assert!((of(0.0) - poisson).abs() < 1e-4, "{lost}: {} {poisson}", of(0.0));
            let size = 3.0 / 2.0;
            let negative = libm::lgamma(lost + size)
                - libm::lgamma(size)
                - libm::lgamma(lost + 1.0)
                - size * 3.0_f64.ln()
                + lost * (2.0_f64 / 3.0).ln();
            assert!((of(2.0) - negative).abs() < 1e-4, "{lost}: {} {negative}", of(2.0));
        }
    }

    #[test]
    fn what_can_not_be_has_no_likelihood() {
        assert_eq!(nats(5.0, 4.0, 0.5, 0.0), f64::NEG_INFINITY);
        assert_eq!(nats(1.0, 4.0, 0.0, 2.0), f64::NEG_INFINITY);
        assert_eq!(nats(3.0, 4.0, 1.0, 2.0), f64::NEG_INFINITY);
        assert_eq!((nats(4.0, 4.0, 1.0, 2.0), nats(0.0, 0.0, f64::NAN, 2.0)), (0.0, 0.0));
    }

    #[test]
    fn all_are_lost_by_chance_alone_or_in_one_run() {
        let alone = all_lost_nats(7.0, 0.3, 0.0);
        assert!((alone - nats(7.0, 7.0, 0.3, 0.0)).abs() < 1e-9, "{alone}");
        // Runs of ten in the mean, of which one has seven segments or more.
        let run = all_lost_nats(7.0, 0.1, 2.0 * (10.0 * 0.9 - 1.0));
        assert!((run - (0.1_f64.ln() + 6.0 * 0.9_f64.ln())).abs() < 1e-9, "{run}");
    }

    #[test]
    fn the_interval_of_a_share_holds_it_and_narrows_with_the_number() {
        let of = |lost: f64, came: f64| {
            share_interval(lost / came, |share| nats(lost, came, share, 0.0))
        };
        let (least, most) = of(10.0, 1000.0);
        assert!((0.0050..0.0060).contains(&least) && (0.0160..0.0170).contains(&most));
        let (least, most) = of(1000.0, 100_000.0);
        assert!((0.0094..0.0096).contains(&least) && (0.0104..0.0106).contains(&most));
    }
}
