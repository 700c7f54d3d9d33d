//! How steady goodput was over the window.

use goodput_model::{FlowSample, Known, Missing, Role, Sample};

use super::{Side, median, positive, spread};

/// Most slices of the window. In a short one, each interval between two samples is a slice.
const MOST_SLICES: usize = 8;
/// Fewest slices: half of them may be far off, and two others have to agree.
const FEWEST_SLICES: usize = 4;
/// By what factor the median absolute deviation of 4 to 8 values is too small, on average, for values of a normal
/// distribution (C. Croux and P. J. Rousseeuw, "Time-efficient algorithms for two highly robust estimators of scale",
/// Computational Statistics 1, 1992).
const TOO_SMALL: [f64; MOST_SLICES - FEWEST_SLICES + 1] = [1.363, 1.206, 1.200, 1.140, 1.129];

/// The rate at which a flow stays most of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plateau {
    /// Median rate over equal slices of the window, bits per second.
    pub rate: f64,
    /// Spread around the rate, as a share of it: the median absolute deviation, scaled to read like a
    /// standard deviation, and as if there were eight slices. A few slices do not matter: BBR empties the path for 200 ms
    /// every 10 s, and CUBIC after each loss.
    pub spread: f64,
}

impl Side<'_> {
    /// The level of the rate over the window, by this side's own payload count.
    pub fn plateau(&self) -> Result<Plateau, Missing> {
        let samples: Vec<&Sample> = self.samples()?.collect();
        let slices = samples.len().saturating_sub(1).min(MOST_SLICES);
        let (first, last) = match (samples.first(), samples.last()) {
            (Some(first), Some(last)) if slices >= FEWEST_SLICES => (first.at_s, last.at_s),
            _ => {
                return Err(Missing::because(format!(
                    "the {} end has {} samples of the window, and {} are needed",
                    self.name,
                    samples.len(),
                    FEWEST_SLICES + 1
                )));
            }
        };
        let width = positive((last - first) / slices as f64, "the window")?;
        let marks = (0..=slices).map(|n| self.moved_by(&samples, first + width * n as f64));
        let marks: Vec<f64> = marks.collect();
        let rates: Vec<f64> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let middle = positive(median(rates.clone(), "payload")?, "the payload moved")?;
        let as_of_most = TOO_SMALL[slices - FEWEST_SLICES] / TOO_SMALL[MOST_SLICES - FEWEST_SLICES];
        let spread = spread(&rates, middle, "payload")? * as_of_most;
        Ok(Plateau { rate: middle * 8.0 / width, spread })
    }

    /// Share of the window in which this side moved nothing, in whole samples.
    pub fn still_share(&self) -> Result<f64, Missing> {
        let samples: Vec<&Sample> = self.samples()?.collect();
        let moved = |sample: &Sample| match self.role {
            Role::Sender => sample.sent_bytes,
            Role::Receiver => sample.received_bytes,
        };
        let (mut still, mut all) = (0.0, 0.0);
        for pair in samples.windows(2) {
            let span = pair[1].at_s - pair[0].at_s;
            all += span;
            still += if moved(pair[0]) == moved(pair[1]) { span } else { 0.0 };
        }
        Ok(still / positive(all, "the time between the samples")?)
    }

    /// Payload moved by the time `at`, interpolated linearly between samples.
    fn moved_by(&self, samples: &[&Sample], at: f64) -> f64 {
        let bytes = |sample: &Sample| match self.role {
            Role::Sender => acknowledged(sample).unwrap_or(sample.sent_bytes) as f64,
            Role::Receiver => sample.received_bytes as f64,
        };
        let later = samples.partition_point(|sample| sample.at_s < at).clamp(1, samples.len() - 1);
        let (before, after) = (samples[later - 1], samples[later]);
        let span = after.at_s - before.at_s;
        let part = if span > 0.0 { (at - before.at_s) / span } else { 1.0 };
        bytes(before) + (bytes(after) - bytes(before)) * part
    }
}

/// Bytes that the peer acknowledged on another program's flows, which are steadier than that program's writes.
/// Our own writers write as the connection accepts data.
fn acknowledged(sample: &Sample) -> Option<u64> {
    let watched = |flow: &FlowSample| match flow.blocked_us {
        Known::Value(_) => None,
        Known::Missing(_) => flow.tcp.value()?.acked_bytes,
    };
    let each: Option<Vec<u64>> = sample.flows.iter().map(watched).collect();
    // A peer may report any numbers.
    let sum = |flows: Vec<u64>| flows.into_iter().fold(0, u64::saturating_add);
    each.filter(|flows| !flows.is_empty()).map(sum)
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::view::View;

    #[test]
    fn a_pause_does_not_hide_the_plateau() {
        let mut evidence = Case::path_rate().evidence();
        if let goodput_model::Known::Value(end) = &mut evidence.far {
            let pause = 900_000;
            let samples = &mut std::sync::Arc::make_mut(end).samples;
            samples.iter_mut().skip(20).for_each(|s| s.received_bytes -= pause);
        }
        let plateau = View::new(&evidence).receiver.plateau().unwrap();
        assert!(plateau.spread < 0.01, "{plateau:?}");
        assert!((plateau.rate / 95.64e6 - 1.0).abs() < 0.001, "{plateau:?}");
    }

    /// The evidence of a case with this many samples of the receiver, all of which count.
    fn cut(case: Case, samples: usize) -> goodput_model::Evidence {
        let mut evidence = case.evidence();
        evidence.measured.from_s = 0.0;
        if let goodput_model::Known::Value(end) = &mut evidence.far {
            std::sync::Arc::make_mut(end).samples.truncate(samples);
        }
        evidence
    }

    #[test]
    fn a_second_shows_a_plateau_and_less_does_not() {
        for (samples, known) in [(9, true), (8, true), (5, true), (4, false), (0, false)] {
            let evidence = cut(Case::path_rate(), samples);
            let plateau = View::new(&evidence).receiver.plateau();
            assert_eq!(plateau.is_ok_and(|p| p.spread < 0.01), known, "{samples}");
            let swings = cut(Case::healthy(), samples);
            let swings = View::new(&swings).receiver.plateau();
            assert_eq!(swings.is_ok_and(|p| p.spread > 0.1), known, "{samples}");
        }
    }

    #[test]
    fn a_swinging_rate_is_no_plateau() {
        let evidence = Case::healthy().evidence();
        assert!(View::new(&evidence).receiver.plateau().unwrap().spread > 0.1);
    }
}
