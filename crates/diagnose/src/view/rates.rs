//! How steady goodput was over the window.

use goodput_model::{Missing, Role, Sample};

use super::{Side, mean, positive};

/// Slices the window is cut into, the slowest and the fastest of which are left out: BBR empties the
/// path for 200 ms every 10 s (RTprop probe).
const SLICES: usize = 8;

impl Side<'_> {
    /// Relative spread (standard deviation over mean) of the rate over equal slices of the window,
    /// by this side's own payload count.
    pub fn spread(&self) -> Result<f64, Missing> {
        let samples: Vec<&Sample> = self.samples()?.collect();
        let (first, last) = match (samples.first(), samples.last()) {
            (Some(first), Some(last)) if samples.len() >= SLICES => (first.at_s, last.at_s),
            _ => {
                return Err(Missing::because(format!(
                    "the {} end has fewer than {SLICES} samples of the window",
                    self.name
                )));
            }
        };
        let width = positive((last - first) / SLICES as f64, "the window")?;
        let marks = (0..=SLICES).map(|n| self.moved_by(&samples, first + width * n as f64));
        let marks: Vec<f64> = marks.collect();
        let mut rates: Vec<f64> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        rates.sort_by(f64::total_cmp);
        let rates = &rates[1..SLICES - 1];
        let middle = positive(mean(rates, "payload")?, "the payload moved")?;
        let squares: Vec<f64> = rates.iter().map(|rate| (rate / middle - 1.0).powi(2)).collect();
        Ok(mean(&squares, "payload")?.sqrt())
    }

    /// Payload moved by the time `at`, between samples by straight line.
    fn moved_by(&self, samples: &[&Sample], at: f64) -> f64 {
        let bytes = |sample: &Sample| match self.role {
            Role::Sender => sample.sent_bytes as f64,
            Role::Receiver => sample.received_bytes as f64,
        };
        let later = samples.partition_point(|sample| sample.at_s < at).clamp(1, samples.len() - 1);
        let (before, after) = (samples[later - 1], samples[later]);
        let span = after.at_s - before.at_s;
        let part = if span > 0.0 { (at - before.at_s) / span } else { 1.0 };
        bytes(before) + (bytes(after) - bytes(before)) * part
    }
}
