//! How steady goodput was over the window.

use goodput_model::{FlowSample, Known, Missing, Role, Sample};

use super::series::apart;
use super::{Side, median, positive, spread};

/// Number of slices of the window.
const WINDOW_SLICES: usize = 8;

/// The rate at which a flow stays most of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plateau {
    /// Median rate over equal slices of the window, bits per second.
    pub rate: f64,
    /// Spread around the rate, as a share of it: the median absolute deviation, scaled to read like a
    /// standard deviation. A few slices do not matter: BBR empties the path for 200 ms every 10 s,
    /// and CUBIC after each loss.
    pub spread: f64,
    /// Length of a slice, seconds.
    pub slice_s: f64,
}

impl Side<'_> {
    /// The level of the rate over the window, by this side's own payload count.
    pub fn plateau(&self) -> Result<Plateau, Missing> {
        let samples: Vec<&Sample> = self.samples()?.collect();
        let (first, last) = match (samples.first(), samples.last()) {
            (Some(first), Some(last)) if samples.len() >= WINDOW_SLICES => (first.at_s, last.at_s),
            _ => {
                return Err(Missing::because(format!(
                    "the {} end has fewer than {WINDOW_SLICES} samples of the window",
                    self.name
                )));
            }
        };
        let width = positive((last - first) / WINDOW_SLICES as f64, "the window")?;
        let marks = (0..=WINDOW_SLICES).map(|n| self.moved_by(&samples, first + width * n as f64));
        let marks: Vec<f64> = marks.collect();
        let rates: Vec<f64> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let middle = positive(median(rates.clone(), "payload")?, "the payload moved")?;
        let spread = spread(&rates, middle, "payload")?;
        Ok(Plateau { rate: middle * 8.0 / width, spread, slice_s: width })
    }

    /// Share of the window in which this side moved nothing, in whole samples.
    pub fn still_share(&self) -> Result<f64, Missing> {
        let samples = apart(self.samples()?);
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

    #[test]
    fn a_swinging_rate_is_no_plateau() {
        let evidence = Case::healthy().evidence();
        assert!(View::new(&evidence).receiver.plateau().unwrap().spread > 0.1);
    }
}
