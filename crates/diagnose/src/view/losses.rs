//! How losses are spread over the run: this distinguishes a rate limit from chance.
//!
//! Chance loses the same share of whatever is sent, so the number lost in a step is binomial.
//! A limit passes the same amount in every step, so everything sent beyond the limit is lost.

use goodput_model::{FlowSample, Missing, Role, Sample};

use super::{LossStep, STANDARD_DEVIATIONS_PER_MAD, Side, median, positive};

/// Fewer steps show no spread.
const MIN_STEPS: usize = 6;
/// A step shorter than this is the last, incomplete one, seconds.
const SHORTEST_S: f64 = 0.05;
/// After losses by chance, the passed amount also varies by chance. Less than this part of that variance
/// means a limit, more than the second part means chance.
const MAX_VARIANCE_RATIO_BY_LIMIT: f64 = 0.2;
const MIN_VARIANCE_RATIO_BY_CHANCE: f64 = 0.6;
/// Mean losses in a step below which chance spreads them from none to many times the mean.
const MIN_LOST_PER_STEP: f64 = 4.0;
/// How probable an accident may be that is not taken for one.
const MAX_ACCIDENT: f64 = 0.01;
/// Fewer steps than this can be as even by chance once in 160 times.
const MIN_STEPS_FOR_EVENNESS: usize = 10;
/// Index of dispersion that chance does not reach in ten or more steps; chance gives 1 ± 0.4.
const MIN_DISPERSION_BEYOND_CHANCE: f64 = 2.0;

/// The steps of the window, and what they have in common; at least six.
#[derive(Debug, Clone, PartialEq)]
pub struct Losses {
    steps: Vec<LossStep>,
    /// Lost share of all that was sent, above 0 and below 1.
    pub share: f64,
}

impl Side<'_> {
    /// How the sender's losses are spread over the window, judged by TCP's retransmissions.
    pub fn losses(&self) -> Result<Losses, Missing> {
        Losses::of(self.steps(self.samples()?, sent_again)?)
    }

    /// The same for datagrams, judged by the receiver's sequence numbers.
    pub fn datagram_losses(&self) -> Result<Losses, Missing> {
        Losses::of(self.steps(self.samples()?, gaps)?)
    }

    fn steps<'a>(
        &self,
        samples: impl Iterator<Item = &'a Sample>,
        read: impl Fn(&FlowSample) -> Result<(u64, u64), Missing>,
    ) -> Result<Vec<LossStep>, Missing> {
        let mut totals = Vec::new();
        for sample in samples.filter(|sample| !sample.flows.is_empty()) {
            totals.push((sample.at_s, total(&sample.flows, self.role, &read)?));
        }
        let step = |pair: &[(f64, (u64, u64, usize))]| {
            let ((from_s, from), (to_s, to)) = (pair[0], pair[1]);
            let grown = |from: u64, to: u64| to.checked_sub(from).map(|grown| grown as f64);
            (from.2 == to.2 && to_s - from_s > 0.0).then_some(LossStep {
                seconds: to_s - from_s,
                sent: grown(from.0, to.0)?,
                lost: grown(from.1, to.1)?,
            })
        };
        Ok(totals.windows(2).filter_map(step).collect())
    }
}

/// Variance of the losses in each step over that of the same share lost by chance.
fn dispersion(steps: &[LossStep]) -> f64 {
    let sum = |of: &dyn Fn(&LossStep) -> f64| steps.iter().map(of).sum::<f64>();
    let share = sum(&|step| step.lost) / sum(&|step| step.sent);
    let expected = sum(&|step| step.sent * share * (1.0 - share));
    sum(&|step| (step.lost - step.sent * share).powi(2)) / expected
}

fn total(
    flows: &[FlowSample],
    role: Role,
    read: impl Fn(&FlowSample) -> Result<(u64, u64), Missing>,
) -> Result<(u64, u64, usize), Missing> {
    let mut sum = (0u64, 0u64, 0);
    for flow in flows.iter().filter(|flow| flow.role == role) {
        let (sent, lost) = read(flow)?;
        sum = (sum.0.saturating_add(sent), sum.1.saturating_add(lost), sum.2 + 1);
    }
    Ok(sum)
}

fn sent_again(flow: &FlowSample) -> Result<(u64, u64), Missing> {
    let tcp = flow.tcp.get()?;
    Ok((tcp.data_segs_out()?, tcp.total_retrans_segments()?))
}

fn gaps(flow: &FlowSample) -> Result<(u64, u64), Missing> {
    let counts = flow.datagrams.ok_or_else(|| Missing::because("datagrams were not counted"))?;
    let lost = counts.lost()?;
    Ok((counts.received.saturating_add(lost), lost))
}

impl Losses {
    fn of(mut steps: Vec<LossStep>) -> Result<Self, Missing> {
        steps.retain(|step| step.seconds >= SHORTEST_S);
        if steps.len() < MIN_STEPS {
            return Err(Missing::because(format!(
                "{} steps of loss, needs {MIN_STEPS}",
                steps.len()
            )));
        }
        let sum = |read: fn(&LossStep) -> f64| steps.iter().map(read).sum::<f64>();
        let share = sum(|step| step.lost) / positive(sum(|step| step.sent), "the packets sent")?;
        if !(share > 0.0 && share < 1.0) {
            return Err(Missing::because(format!("{share} of the packets were lost")));
        }
        Ok(Self { steps, share })
    }

    /// Packets lost.
    pub fn lost(&self) -> f64 {
        self.steps.iter().map(|step| step.lost).sum()
    }

    /// Steps in all.
    pub fn count(&self) -> usize {
        self.steps.len()
    }

    /// Steps in which something was lost.
    pub fn events(&self) -> usize {
        self.steps.iter().filter(|step| step.lost > 0.0).count()
    }

    /// How many more packets are lost for each additional packet sent, and the correlation of the two: the
    /// slope of the least-squares line through the steps. Chance gives [`Self::share`], a limit 1.
    pub fn elasticity(&self) -> Option<(f64, f64)> {
        let rates: Vec<(f64, f64)> = self
            .steps
            .iter()
            .map(|step| (step.sent / step.seconds, step.lost / step.seconds))
            .collect();
        let count = rates.len() as f64;
        let mean = |read: fn(&(f64, f64)) -> f64| rates.iter().map(read).sum::<f64>() / count;
        let (sent, lost) = (mean(|rate| rate.0), mean(|rate| rate.1));
        let sum = |read: &dyn Fn(f64, f64) -> f64| {
            rates.iter().map(|rate| read(rate.0 - sent, rate.1 - lost)).sum::<f64>()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        (xx > 0.0 && yy > 0.0).then(|| (xy / xx, xy / (xx * yy).sqrt()))
    }

    /// Variance of the losses over that of the same share lost by chance: 1 for chance, more if
    /// they come in clusters, less if they come at regular times (the index of dispersion; Cox,
    /// Lewis: The Statistical Analysis of Series of Events, 1966).
    pub fn clustering(&self) -> f64 {
        dispersion(&self.steps)
    }

    /// The same without the step that lost most, so that one accident does not decide; not a
    /// number if nothing else was lost.
    pub fn clustering_without_worst(&self) -> f64 {
        let mut steps = self.steps.clone();
        steps.sort_by(|a, b| a.lost.total_cmp(&b.lost));
        steps.pop();
        dispersion(&steps)
    }

    /// The steps that lost most: at least half the share of the worst. In the other steps a sender that
    /// is slow at times does not meet a limit.
    fn worst(&self) -> Vec<&LossStep> {
        let most = self.steps.iter().map(LossStep::share).fold(0.0, f64::max);
        self.steps.iter().filter(|step| step.share() >= most / 2.0).collect()
    }

    /// Packets a second that passed in the steps that lost most, the median.
    pub fn passed_at_worst(&self) -> f64 {
        let passed = self.worst().into_iter().map(LossStep::passed).collect();
        median(passed, "the packets that passed").unwrap_or(f64::NAN)
    }

    /// Packets a second that passed in the better steps: the ninth decile.
    pub fn passed_at_best(&self) -> f64 {
        let mut passed: Vec<f64> = self.steps.iter().map(LossStep::passed).collect();
        passed.sort_by(f64::total_cmp);
        passed.get(passed.len() * 9 / 10).copied().unwrap_or(f64::NAN)
    }

    /// Packets a second that passed, the mean.
    pub fn passed_on_average(&self) -> f64 {
        let seconds: f64 = self.steps.iter().map(|step| step.seconds).sum();
        self.steps.iter().map(|step| step.sent - step.lost).sum::<f64>() / seconds
    }

    /// Variance of the packets that passed while most was lost, over that of the same share lost by chance: far
    /// below 1 if a limit sets the pace, whatever was sent. Derived from the median absolute
    /// deviation, because a sender may pause within a step; not a number if losses were too rare.
    pub fn passed_variance(&self) -> f64 {
        median(self.off_pace(), "the packets that passed")
            .map_or(f64::NAN, |off| (STANDARD_DEVIATIONS_PER_MAD * off).powi(2))
    }

    /// How far each of the steps that lost most is off the pace, in the standard deviations that chance has; none if those are
    /// too few.
    fn off_pace(&self) -> Vec<f64> {
        let worst = self.worst();
        if worst.len() < MIN_STEPS {
            return Vec::new();
        }
        let pace = self.passed_at_worst();
        let off = |step: &&LossStep| {
            let by_chance = step.sent * step.share() * (1.0 - step.share());
            (step.passed() - pace).abs() * step.seconds / by_chance.sqrt()
        };
        worst.iter().map(off).collect()
    }

    /// How probable it is that as many steps, or more, are as near the pace by chance as a limit leaves half of them. One of
    /// them is the pace.
    fn steady_by_accident(&self) -> f64 {
        let off = self.off_pace();
        let near = MAX_VARIANCE_RATIO_BY_LIMIT.sqrt() / STANDARD_DEVIATIONS_PER_MAD;
        let share = libm::erf(near / std::f64::consts::SQRT_2);
        let within = off.iter().filter(|off| **off < near).count();
        at_least(within.saturating_sub(1), off.len().saturating_sub(1), share)
    }

    /// Whether the passed packets show a rate limit or chance; `None` if they show neither.
    pub fn by_limit(&self) -> Option<bool> {
        let elastic = self.elasticity().is_some_and(|(slope, r)| slope >= 0.5 && r >= 0.6);
        match self.passed_variance() {
            // With few losses the worst steps are alike because they were chosen for their losses.
            _ if self.lost() < MIN_LOST_PER_STEP * self.steps.len() as f64 => self.by_few(),
            variance if variance < MAX_VARIANCE_RATIO_BY_LIMIT => {
                (self.steady_by_accident() < MAX_ACCIDENT).then_some(true)
            }
            _ if elastic && self.clustering() >= MIN_DISPERSION_BEYOND_CHANCE => Some(true),
            variance
                if variance > MIN_VARIANCE_RATIO_BY_CHANCE
                    && self.clustering() < MIN_DISPERSION_BEYOND_CHANCE =>
            {
                Some(false)
            }
            _ => None,
        }
    }

    /// The same for few losses, judged by how evenly they came since the first one: a queue may have had to
    /// fill first.
    fn by_few(&self) -> Option<bool> {
        let began = self.steps.iter().position(|step| step.lost > 0.0).unwrap_or(0);
        let since = &self.steps[began..];
        match dispersion(since) {
            _ if since.len() < MIN_STEPS_FOR_EVENNESS => None,
            even if even < MAX_VARIANCE_RATIO_BY_LIMIT => Some(true),
            even if even > MIN_VARIANCE_RATIO_BY_CHANCE && even < MIN_DISPERSION_BEYOND_CHANCE => {
                Some(false)
            }
            _ => None,
        }
    }

    /// Standard deviation of the packets that passed in each second, as a share of the mean.
    pub fn passed_spread(&self) -> f64 {
        let count = self.steps.len() as f64;
        let mean = self.steps.iter().map(LossStep::passed).sum::<f64>() / count;
        let off = self.steps.iter().map(|step| (step.passed() - mean).powi(2)).sum::<f64>();
        (off / count).sqrt() / mean
    }
}

/// How probable it is that at least `least` of `all` happen, each with this chance (the binomial distribution).
fn at_least(least: usize, all: usize, chance: f64) -> f64 {
    let one = |count: usize| {
        let (count, all) = (count as f64, all as f64);
        let ways =
            libm::lgamma(all + 1.0) - libm::lgamma(count + 1.0) - libm::lgamma(all - count + 1.0);
        (ways + count * chance.ln() + (all - count) * (-chance).ln_1p()).exp()
    };
    (least..=all).map(one).sum()
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn by_limit(steps: &[(f64, f64)]) -> Option<bool> {
        let step = |(sent, lost): &(f64, f64)| LossStep { seconds: 0.1, sent: *sent, lost: *lost };
        Losses::of(steps.iter().map(step).collect()).unwrap().by_limit()
    }

    /// As many flows leave as few steps, of 800 packets each.
    #[test]
    fn few_steps_are_seldom_as_even_by_chance_as_a_limit_leaves_them() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        let mut run = |count: usize, passes: Option<f64>| {
            let mut step = |_| {
                let chance = (0..800).filter(|_| rng.random_bool(0.1)).count() as f64;
                let sent =
                    if passes.is_some() { 800.0 + rng.random_range(0.0..80.0) } else { 800.0 };
                (sent, passes.map_or(chance, |passes| sent - passes))
            };
            by_limit(&(0..count).map(&mut step).collect::<Vec<_>>()) == Some(true)
        };
        for count in [6, 9, 12, 30] {
            let mistaken = (0..400).filter(|_| run(count, None)).count();
            assert!(mistaken <= 12, "{count}: {mistaken}");
            assert!((0..20).all(|_| run(count, Some(720.0))), "{count}");
        }
    }

    #[test]
    fn the_tail_of_a_binomial_distribution() {
        assert!((at_least(0, 5, 0.3) - 1.0).abs() < 1e-12);
        assert!((at_least(5, 5, 0.3) - 0.3_f64.powi(5)).abs() < 1e-12);
        assert!((at_least(2, 3, 0.5) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn few_losses_by_chance_are_no_limit() {
        // 1.8 % of 12 Mbit/s, as measured: the worst steps have lost 3 to 5 each.
        let lost =
            [1, 5, 0, 1, 2, 2, 2, 3, 2, 1, 3, 1, 1, 3, 0, 1, 1, 2, 3, 1, 1, 1, 3, 5, 1, 0, 4, 0];
        let steps: Vec<_> = lost.iter().map(|lost| (102.0, f64::from(*lost))).collect();
        assert_eq!(by_limit(&steps), Some(false));
        let even: Vec<_> = (0..28).map(|n| (102.0, f64::from(1 + n % 2))).collect();
        assert_eq!(by_limit(&even), Some(true));
        // A queue of 100 kB at 3.7 Mbit/s that fills first, as measured.
        let filled: Vec<_> = (0..41).map(|n| (34.0, if n < 26 { 0.0 } else { 3.0 })).collect();
        assert_eq!(by_limit(&filled), Some(true));
    }
}
