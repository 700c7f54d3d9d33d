//! A token bucket over the whole run: what was saved up passes faster, then only what the bucket's rate lets through.
//!
//! ```text
//! passed   ──▶ tokens: depth + rate × time − passed, at most the depth ──▶ what arrives beyond them is lost
//! ```
//!
//! A full queue loses what arrives beyond its rate, too, but nothing passes faster before, and it loses only at its full
//! length. So the rivals are: a rate beyond which all is lost, at any queue or from a certain delay on; a chance that is
//! larger from a certain delay on; and chance alone. All explain the same steps, from the first sample on, all flows
//! together: the bucket is one.
//!
//! What stands before a bucket is a queue of a faster link, whatever its length. While it stands, more arrives than the
//! bucket's rate, so something is lost. If most of the time with a queue loses nothing, the queue is behind the bucket, as at
//! a shaper: it is the queue that drops.

use goodput_model::LossModel;

use super::fit::{EXCESSES, Fit, interval};
use super::level::distinct_quantiles;
use super::totals::Total;
use crate::fitted::Fitted;

/// Rates that are tried, in standard errors from the slope of what had passed at each loss.
const RATE_ERRORS: [f64; 7] = [-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0];
/// Shares of the steps that pass less than a rate that is tried.
const RATE_SHARES: [f64; 3] = [0.5, 0.75, 0.9];
/// How many depths, and how many delays, are tried: of those at losses.
const DEPTHS: usize = 8;
const DELAYS: usize = 10;
/// How much arrivals within a step vary, segments: a burst finds fewer tokens than the step has on average. With the middle
/// one alone, one of the five kept runs with a bucket loses it: its bucket holds five segments.
const BURSTS_SEGMENTS: [f64; 3] = [1.0, 4.0, 16.0];
/// Lost by something else, in each step, so that one stray loss does not rule a model out. All five kept runs with a bucket
/// have it also with a millionth of this, at the same rate within 2 %.
const OTHERWISE_LOST_SHARE: f64 = 0.002;
/// Fewer losses show no rate.
const MIN_LOSSES: usize = 4;
/// Fewer steps show no pattern.
const MIN_STEPS: usize = 8;
/// A shorter queue is the pacing's own bursts, segments. With 0, two of the five kept runs with a bucket lose it.
const MIN_QUEUE_SEGMENTS: f64 = 4.0;
/// What passes in a step at a rate differs from it by a packet that is between two samples, or by this share.
const AT_RATE_SEGMENTS: f64 = 1.0;
const AT_RATE_SHARE: f64 = 0.05;
/// Free parameters of the models: how much the number varies is one of each but of random loss.
const OF_RANDOM: f64 = 1.0;
const OF_RUNS: f64 = 2.0;
const OF_RATE: f64 = 4.0;
const OF_LEVEL: f64 = 4.0;
const OF_BUCKET: f64 = 5.0;
const OF_FULL_QUEUE: f64 = 5.0;

/// The bucket and its rivals, the best first; `None` if the bucket does not stand out, or a queue behind it drops.
pub fn stands_out(steps: &[Total]) -> Option<Vec<Fit>> {
    let run = Run::of(steps)?;
    let rates = run.rates()?;
    let bucket = run.bucket(&rates)?;
    let enough = Fitted::BucketAhead.value();
    let is_ahead = |of: &Fit| of.criterion - bucket.criterion >= enough;
    // Quick ones first.
    let quick = [run.chance(), run.level()].concat();
    let rival = |quick: &[Fit]| quick.iter().all(is_ahead);
    if !rival(&quick) || run.queues_without_loss(&bucket) {
        return None;
    }
    let full = run.full_queue(&rates)?;
    if !is_ahead(&full) {
        return None;
    }
    let mut fits = [vec![bucket, full], quick].concat();
    fits.sort_by(|a, b| a.criterion.total_cmp(&b.criterion));
    let mut seen = Vec::new();
    fits.retain(|fit| {
        let is_first = !seen.contains(&fit.model);
        seen.push(fit.model);
        is_first
    });
    Some(fits)
}

/// How far the bucket is ahead of the best of its rivals, in the information criterion; `None` if it can't be tried, or a queue
/// behind it drops.
pub fn ahead(steps: &[Total]) -> Option<f64> {
    let run = Run::of(steps)?;
    let rates = run.rates()?;
    let bucket = run.bucket(&rates)?;
    if run.queues_without_loss(&bucket) {
        return None;
    }
    let rivals = run.chance().into_iter().chain(run.level()).chain(run.full_queue(&rates));
    let next = rivals.map(|fit| fit.criterion).fold(f64::INFINITY, f64::min);
    Some(next - bucket.criterion)
}

/// Log-likelihood that `lost` segments are lost where `mean` are expected and the variance is `mean * (1 + excess)`, Poisson's
/// distribution or the negative binomial one, but for the factorial of `lost`. All explanations have it alike here, also if
/// most segments are lost. A binomial number then varies less than samples do that are taken at any point of a packet, and a
/// bucket of a few tokens explains such rounding better than a queue does.
fn nats(lost: f64, mean: f64, excess: f64) -> f64 {
    if mean.is_nan() || mean <= 0.0 {
        return if lost > 0.0 { f64::NEG_INFINITY } else { 0.0 };
    }
    if excess <= 0.0 {
        return lost * mean.ln() - mean;
    }
    let size = mean / excess;
    libm::lgamma(lost + size) - libm::lgamma(size) - size * excess.ln_1p()
        + lost * (excess / (1.0 + excess)).ln()
}

/// A run that lost something.
struct Run<'a> {
    steps: &'a [Total],
    /// Steps that lost something.
    lossy: Vec<usize>,
    arrived: f64,
    lost: f64,
}

impl<'a> Run<'a> {
    fn of(steps: &'a [Total]) -> Option<Self> {
        let lossy: Vec<usize> = (0..steps.len()).filter(|at| steps[*at].lost > 0.0).collect();
        let lost: f64 = steps.iter().map(|step| step.lost).sum();
        let arrived: f64 = steps.iter().map(Total::arrived).sum();
        let enough = steps.len() >= MIN_STEPS && lossy.len() >= MIN_LOSSES && lost < arrived;
        enough.then_some(Self { steps, lossy, arrived, lost })
    }

    /// Rates that are tried, segments a second.
    fn rates(&self) -> Option<Vec<f64>> {
        let passed = self.steps.iter().scan((0.0, 0.0), |(at_s, passed), step| {
            *at_s += step.seconds;
            *passed += step.passed;
            Some((*at_s, *passed))
        });
        let passed: Vec<(f64, f64)> = passed.collect();
        let at: Vec<(f64, f64)> = self.lossy.iter().map(|at| passed[*at]).collect();
        let (slope, error) = slope(&at)?;
        let mut each: Vec<f64> = self.steps.iter().map(|s| s.passed / s.seconds).collect();
        each.sort_by(f64::total_cmp);
        let share = |share: f64| each.get((share * each.len() as f64) as usize).copied();
        let near = RATE_ERRORS.map(|errors| slope + errors * error);
        let rates = near.into_iter().chain(RATE_SHARES.into_iter().filter_map(share));
        Some(rates.filter(|rate| *rate > 0.0 && rate.is_finite()).collect())
    }

    fn fit(&self, model: LossModel, free: f64, nats: f64) -> Fit {
        Fit::new(model, free, nats, self.steps.len())
    }

    /// Log-likelihood if these shares of what arrives in each step are lost, with the excess that fits best.
    fn nats(&self, shares: &[f64]) -> f64 {
        let at = |excess: f64| -> f64 {
            let both = self.steps.iter().zip(shares);
            both.map(|(step, share)| nats(step.lost, share * step.arrived(), excess)).sum()
        };
        EXCESSES.into_iter().step_by(3).map(at).fold(f64::NEG_INFINITY, f64::max)
    }

    fn chance(&self) -> Vec<Fit> {
        let share = self.lost / self.arrived;
        let random =
            self.steps.iter().map(|step| nats(step.lost, share * step.arrived(), 0.0)).sum();
        let runs = self.nats(&vec![share; self.steps.len()]);
        vec![
            self.fit(LossModel::Random, OF_RANDOM, random),
            self.fit(LossModel::Runs, OF_RUNS, runs),
        ]
    }

    /// Delays at losses.
    fn delays(&self) -> Vec<f64> {
        distinct_quantiles(self.lossy.iter().map(|at| self.steps[*at].queue_s), DELAYS)
    }

    /// A larger chance from a certain delay on.
    fn level(&self) -> Vec<Fit> {
        let at = |delay_s: f64| {
            let is_in = |step: &&Total| step.queue_s >= delay_s;
            let within = || self.steps.iter().filter(is_in);
            let (arrived, lost) =
                within().fold((0.0, 0.0), |sum, s| (sum.0 + s.arrived(), sum.1 + s.lost));
            let (share, below) = (lost / arrived, (self.lost - lost) / (self.arrived - arrived));
            let of = |step: &Total| if step.queue_s >= delay_s { share } else { below };
            let shares: Vec<f64> = self.steps.iter().map(of).collect();
            // Without steps below, there is no share of theirs.
            (share > below).then(|| self.nats(&shares))
        };
        let best = self.delays().into_iter().filter_map(at).reduce(f64::max);
        best.map(|nats| self.fit(LossModel::Queue, OF_LEVEL, nats)).into_iter().collect()
    }

    /// Log-likelihood if of each step is lost what exceeds its room by this much, on average.
    fn beyond(&self, excess: &[f64]) -> f64 {
        let at = |bursts: f64| {
            let shares = self.steps.iter().zip(excess).map(|(step, excess)| {
                let beyond = mean_above_zero(*excess, bursts) / step.arrived();
                // Not a number if nothing arrived, of which nothing is lost.
                beyond.min(1.0) + OTHERWISE_LOST_SHARE
            });
            self.nats(&shares.collect::<Vec<f64>>())
        };
        BURSTS_SEGMENTS.into_iter().map(at).fold(f64::NEG_INFINITY, f64::max)
    }

    /// What is beyond a rate is lost, always or from a certain delay on.
    fn full_queue(&self, rates: &[f64]) -> Option<Fit> {
        let (mut always, mut delayed) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        let delays = self.delays();
        for rate in rates {
            let excess: Vec<f64> =
                self.steps.iter().map(|s| s.arrived() - rate * s.seconds).collect();
            always = always.max(self.beyond(&excess));
            for delay_s in &delays {
                let only = self.steps.iter().zip(&excess).map(|(step, excess)| {
                    if step.queue_s >= *delay_s { *excess } else { f64::NEG_INFINITY }
                });
                delayed = delayed.max(self.beyond(&only.collect::<Vec<f64>>()));
            }
        }
        let fits = [(OF_RATE, always), (OF_FULL_QUEUE, delayed)];
        let fits = fits.map(|(free, nats)| self.fit(LossModel::Queue, free, nats));
        fits.into_iter().min_by(|a, b| a.criterion.total_cmp(&b.criterion))
    }

    fn bucket(&self, rates: &[f64]) -> Option<Fit> {
        let mut tried = Vec::new();
        for rate in rates {
            let levels: Vec<f64> = self.used(*rate, f64::INFINITY);
            let at = self.lossy.iter().map(|at| levels[*at].max(1.0));
            for depth in distinct_quantiles(at, DEPTHS) {
                let excess: Vec<f64> =
                    self.used(*rate, depth).into_iter().map(|used| used - depth).collect();
                tried.push((*rate, depth, self.beyond(&excess)));
            }
        }
        let best = *tried.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
        self.fit(LossModel::Bucket, OF_BUCKET, best.2)
            .with("rate_segments_per_s", best.0, interval(tried.iter().map(|one| (one.0, one.2))))
            .with("depth_segments", best.1, interval(tried.iter().map(|one| (one.1, one.2))))
            .sound()
    }

    /// Tokens that each step would have used in all, if everything that arrived had passed.
    fn used(&self, rate: f64, depth: f64) -> Vec<f64> {
        let used = self.steps.iter().scan(0.0_f64, |used, step| {
            let filled = rate * step.seconds;
            let would = *used + step.arrived() - filled;
            *used = (*used + step.passed - filled).clamp(0.0, depth);
            Some(would)
        });
        used.collect()
    }

    /// Whether a queue stood and nothing was lost for most of the time with a queue, since the first loss. Or before it, if just
    /// the bucket's rate passed then: what waits before a bucket passes faster until the tokens are used up, so that queue is
    /// at the rate itself. A flow that does not come to the rate yet has no queue there: what it shows is jitter.
    fn queues_without_loss(&self, bucket: &Fit) -> bool {
        let Some(rate) = bucket.parameters.first().map(|rate| rate.value) else { return false };
        let is_queued = |step: &&Total| step.least_queue_s * rate > MIN_QUEUE_SEGMENTS;
        let (before, since) = self.steps.split_at(self.lossy[0]);
        let beyond = |step: &Total| step.passed - rate * step.seconds;
        let near = |step: &Total| AT_RATE_SEGMENTS.max(AT_RATE_SHARE * rate * step.seconds);
        let early = || before.iter().filter(is_queued);
        let faster = early().filter(|step| beyond(step) > near(step)).count();
        let at_the_rate = early().filter(|step| beyond(step).abs() <= near(step)).count();
        let (lossy, without): (Vec<&Total>, Vec<&Total>) =
            since.iter().filter(is_queued).partition(|step| step.lost > 0.0);
        at_the_rate > faster || without.len() > lossy.len()
    }
}

/// Slope of a line through points, and its standard error: at least half a segment at each end.
fn slope(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (middle_s, middle) = (sum(&|p| p.0) / count, sum(&|p| p.1) / count);
    let spread = sum(&|p| (p.0 - middle_s).powi(2));
    if points.len() < MIN_LOSSES || spread <= 0.0 {
        return None;
    }
    let slope = sum(&|p| (p.0 - middle_s) * (p.1 - middle)) / spread;
    let rest = sum(&|p| (p.1 - middle - slope * (p.0 - middle_s)).powi(2));
    Some((slope, (rest / (count - 2.0) / spread).sqrt().max(0.5 / spread.sqrt())))
}

/// Mean of what a normally distributed number of this mean and deviation has above zero.
fn mean_above_zero(mean: f64, deviation: f64) -> f64 {
    const FAR: f64 = 8.0;
    let deviations = mean / deviation;
    if deviations > FAR {
        return mean;
    }
    if deviations < -FAR {
        return 0.0;
    }
    let above = 0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2);
    let density = (-deviations.powi(2) / 2.0).exp() / std::f64::consts::TAU.sqrt();
    mean * above + deviation * density
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a sender meets that keeps this many segments in flight, in steps of 0.1 s.
    struct Path {
        /// Segments that the first link passes each second, and segments that may wait there.
        link: (f64, f64),
        /// Rate and depth of a bucket behind it.
        bucket: Option<(f64, f64)>,
        /// Share lost by chance.
        chance: f64,
    }

    const STEP_S: f64 = 0.1;
    const ROUND_TRIP_S: f64 = 0.02;

    /// A window that grows by a segment each round trip, and loses 30 % of itself at a loss.
    fn steps(path: &Path) -> Vec<Total> {
        let (rate, length) = path.link;
        let (mut window, mut tokens) = (20.0_f64, path.bucket.map_or(0.0, |bucket| bucket.1));
        let step = |number: i32| {
            let waiting = (window - rate * ROUND_TRIP_S).max(0.0);
            let overflow = (waiting - length).max(0.0);
            let queue_s = waiting.min(length) / rate;
            let came = (window / (ROUND_TRIP_S + queue_s) * STEP_S).min(rate * STEP_S).round();
            let by_bucket = path.bucket.map_or(0.0, |(rate, depth)| {
                tokens = (tokens + rate * STEP_S).min(depth);
                let dropped = (came - tokens).max(0.0).ceil();
                tokens -= came - dropped;
                dropped
            });
            let by_chance = if number % 3 == 0 { (3.0 * path.chance * came).round() } else { 0.0 };
            let lost = overflow.ceil() + by_bucket + by_chance;
            window = if lost > 0.0 { (0.7 * window).max(2.0) } else { window + 4.0 };
            Total {
                seconds: STEP_S,
                passed: came - by_bucket - by_chance,
                lost,
                queue_s,
                least_queue_s: queue_s,
                has_started: true,
            }
        };
        (0..40).map(step).collect()
    }

    fn parameter(fit: &Fit, name: &str) -> (f64, f64, f64) {
        let one = fit.parameters.iter().find(|one| one.name == name).expect("it has it");
        (one.least, one.value, one.most)
    }

    #[test]
    fn a_bucket_behind_a_queue_has_its_rate_and_depth() {
        for (rate, depth) in [(50.0, 60.0), (400.0, 300.0)] {
            let path = Path { link: (2.0 * rate, 200.0), bucket: Some((rate, depth)), chance: 0.0 };
            let fits = stands_out(&steps(&path)).expect("it stands out");
            assert_eq!(fits[0].model, LossModel::Bucket);
            let (least, value, most) = parameter(&fits[0], "rate_segments_per_s");
            assert!((value / rate - 1.0).abs() < 0.05 && least <= value && value <= most);
            let (_, value, _) = parameter(&fits[0], "depth_segments");
            assert!((value / depth - 1.0).abs() < 0.2, "{value} for {depth}");
            assert!(fits.iter().any(|fit| fit.model == LossModel::Queue));
        }
    }

    #[test]
    fn neither_a_full_queue_nor_chance_is_a_bucket() {
        let none = |path: Path| stands_out(&steps(&path)).is_none();
        assert!(none(Path { link: (400.0, 20.0), bucket: None, chance: 0.0 }));
        assert!(none(Path { link: (400.0, 200.0), bucket: None, chance: 0.0 }));
        assert!(none(Path { link: (400.0, 200.0), bucket: None, chance: 0.02 }));
        assert!(none(Path { link: (4000.0, 200.0), bucket: None, chance: 0.1 }));
    }

    /// A full queue of a slow link: packets of its rate pass from the start, and as many are lost once it is full.
    #[test]
    fn a_queue_that_stood_at_the_rate_before_it_lost_anything_drops_itself() {
        let step = |number: usize| Total {
            seconds: STEP_S,
            passed: [5.0, 4.0, 5.0, 5.0, 6.0][number % 5],
            lost: if number >= 18 { [5.0, 6.0, 5.0, 5.0, 4.0][number % 5] } else { 0.0 },
            queue_s: 0.1 * number as f64,
            least_queue_s: 0.1 * number as f64 - 0.02,
            has_started: true,
        };
        assert!(stands_out(&(0..40).map(step).collect::<Vec<_>>()).is_none());
    }

    /// Slow start takes some steps to come to the rate of a fast policer. A millisecond of jitter is more than a few segments
    /// there, but no queue.
    #[test]
    fn jitter_before_the_first_loss_is_no_queue_at_the_rate() {
        let step = |passed: f64, lost: f64, queue_s: f64| Total {
            seconds: STEP_S,
            passed,
            lost,
            queue_s,
            least_queue_s: queue_s,
            has_started: true,
        };
        let before = [40.0, 80.0, 160.0, 320.0, 640.0, 1600.0, 1600.0];
        let before = before.into_iter().map(|passed| step(passed, 0.0, 0.001));
        let slow: Vec<Total> = before.chain((0..30).map(|_| step(800.0, 40.0, 0.0))).collect();
        let run = Run::of(&slow).expect("it loses");
        let bucket = Fit::new(LossModel::Bucket, OF_BUCKET, 0.0, slow.len());
        let bucket = bucket.with("rate_segments_per_s", 8000.0, (8000.0, 8000.0));
        assert!(!run.queues_without_loss(&bucket));
    }

    /// A shaper: what it had saved up passes at once, then a queue stands behind and overflows.
    #[test]
    fn a_queue_behind_a_bucket_drops_itself() {
        let step = |number: usize| Total {
            seconds: STEP_S,
            passed: if number == 0 { 180.0 } else { 90.0 },
            lost: if number >= 3 && number.is_multiple_of(3) { 20.0 } else { 0.0 },
            queue_s: 0.19,
            least_queue_s: 0.18,
            has_started: true,
        };
        assert!(stands_out(&(0..40).map(step).collect::<Vec<_>>()).is_none());
    }
}
