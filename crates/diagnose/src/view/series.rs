//! How the rate changes over the whole run, slow start included: steps and stalls.

use goodput_model::{Missing, Role, Sample};

use super::{STANDARD_DEVIATIONS_PER_MAD, Side, median, spread};

/// Fewer intervals show no change.
const MIN_INTERVALS: usize = 10;
/// A shorter interval is joined with the next, seconds: a short run has samples each 25 ms, and within less than a tenth
/// of a second, payload comes in the bursts of a round trip. The last, incomplete interval has no next.
const SHORTEST_S: f64 = 0.06;

/// Payload that one side moved between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Length, seconds.
    pub seconds: f64,
    /// Payload, bytes.
    pub bytes: f64,
}

impl Interval {
    fn rate(&self) -> f64 {
        self.bytes * 8.0 / self.seconds
    }
}

/// A change of the rate from one level to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Time of the change, seconds from the start.
    pub at_s: f64,
    /// Mean rate until then, bits per second.
    pub before: f64,
    /// Median rate since, bits per second.
    pub after: f64,
    /// Spread of the rate since, as a share of it: the median absolute deviation, scaled to read like a standard
    /// deviation.
    pub spread: f64,
    /// Time since the change, seconds.
    pub since_s: f64,
}

impl Side<'_> {
    /// Payload that this side moved between each two samples of the whole run.
    pub fn intervals(&self) -> Result<Vec<Interval>, Missing> {
        let samples = &self.end()?.samples;
        let bytes = |sample: &Sample| match self.role {
            Role::Sender => sample.sent_bytes,
            Role::Receiver => sample.received_bytes,
        };
        let between = |pair: &[&Sample]| {
            let seconds = pair[1].at_s - pair[0].at_s;
            let moved = bytes(pair[1]).checked_sub(bytes(pair[0]))?;
            Some(Interval { seconds, bytes: moved as f64 })
        };
        let all: Vec<_> = apart(samples.iter()).windows(2).filter_map(between).collect();
        if all.len() < MIN_INTERVALS {
            let why = format!("{} intervals, needs {MIN_INTERVALS}", all.len());
            return Err(Missing::because(why));
        }
        Ok(all)
    }

    /// The one change of level that explains most of the rate's variation: the split that reduces the
    /// sum of squares most, if the reduction exceeds noise (at most one change; Sen, Srivastava
    /// 1975; penalty of Yao 1988, `2 σ² ln n`).
    pub fn step(&self) -> Result<Option<Step>, Missing> {
        let intervals = self.intervals()?;
        let rates: Vec<f64> = intervals.iter().map(Interval::rate).collect();
        let gain = |at: usize| {
            let (left, right) = (mean(&rates[..at]), mean(&rates[at..]));
            let (n, m) = (at as f64, (rates.len() - at) as f64);
            n * m / (n + m) * (left - right).powi(2)
        };
        let best = (1..rates.len()).max_by(|a, b| gain(*a).total_cmp(&gain(*b)));
        let Some(at) = best else { return Ok(None) };
        let jumps: Vec<f64> = rates.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        let noise = STANDARD_DEVIATIONS_PER_MAD * median(jumps, "the rate")? / 2f64.sqrt();
        if gain(at) <= 2.0 * noise.powi(2) * (rates.len() as f64).ln() {
            return Ok(None);
        }
        let sum =
            |part: &[Interval], read: fn(&Interval) -> f64| part.iter().map(read).sum::<f64>();
        let (first, rest) = intervals.split_at(at);
        let at_s = sum(first, |interval| interval.seconds);
        let after = median(rates[at..].to_vec(), "the rate")?;
        Ok(Some(Step {
            at_s,
            before: sum(first, |interval| interval.bytes) * 8.0 / at_s,
            after,
            spread: spread(&rates[at..], after, "the rate")?,
            since_s: sum(rest, |interval| interval.seconds),
        }))
    }
}

/// The first sample, and each that is at least the shortest interval after the one before.
pub(super) fn apart<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<&'a Sample> {
    let mut apart: Vec<&Sample> = Vec::new();
    for sample in samples {
        if apart.last().is_none_or(|last| sample.at_s - last.at_s >= SHORTEST_S) {
            apart.push(sample);
        }
    }
    apart
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use crate::view::View;
    use goodput_model::Known;
    use std::sync::Arc;

    /// Adds `extra` bytes to the received bytes of each of the first `until` samples, spread evenly.
    fn stepped(until: u64, extra: u64) -> Option<Step> {
        let mut evidence = Case::path_rate().evidence();
        if let Known::Value(end) = &mut evidence.far {
            for (n, sample) in Arc::make_mut(end).samples.iter_mut().enumerate() {
                sample.received_bytes += extra * (n as u64).min(until) / until;
            }
        }
        View::new(&evidence).receiver.step().unwrap()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let step = stepped(5, 60_000_000).unwrap();
        assert!((step.at_s - 0.5).abs() < 1e-6, "{step:?}");
        assert!((step.after / 95.64e6 - 1.0).abs() < 1e-3 && step.spread < 0.01, "{step:?}");
        assert!(step.before > 1e9, "{step:?}");
    }

    #[test]
    fn a_short_run_is_seen_in_tenths_too() {
        let mut evidence = Case::path_rate().evidence();
        let Known::Value(end) = &mut evidence.far else { panic!("the case has it") };
        for sample in &mut Arc::make_mut(end).samples {
            sample.at_s /= 4.0;
        }
        let intervals = View::new(&evidence).receiver.intervals().unwrap();
        let shortest = intervals.iter().map(|interval| interval.seconds).reduce(f64::min);
        assert!(shortest.is_some_and(|seconds| seconds >= SHORTEST_S), "{intervals:?}");
    }

    #[test]
    fn a_swinging_rate_has_no_large_step() {
        let evidence = Case::healthy().evidence();
        let step = View::new(&evidence).receiver.step().unwrap();
        assert!(step.is_none_or(|step| step.before < 1.4 * step.after), "{step:?}");
    }
}
