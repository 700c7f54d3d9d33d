//! Bursts separated by stalls, and how similar they are.

use goodput_model::Missing;

use super::{Side, median, positive, spread};

/// Fewer bursts do not show what they have in common.
const MIN_BURSTS: usize = 6;
/// Payload of an interval over the mean of all intervals, below which only data already on its way moved.
const MAX_PAUSE_BYTES_RATIO: f64 = 0.02;

/// Payload that one side moved from one stall to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// Number of bursts, without the first, which began with the transfer.
    pub count: usize,
    /// Payload of a burst, bytes: the median.
    pub bytes: f64,
    /// Mean time from one burst to the next, seconds.
    pub period_s: f64,
    /// How much they differ, as a share of the median: the median absolute deviation, scaled to read like a
    /// standard deviation.
    pub spread: f64,
}

impl Side<'_> {
    /// The bursts of the whole run; missing if it has too few.
    pub fn bursts(&self) -> Result<Bursts, Missing> {
        let all = self.intervals()?;
        let moved: f64 = all.iter().map(|interval| interval.bytes).sum();
        let still = MAX_PAUSE_BYTES_RATIO * moved / all.len() as f64;
        let (mut bursts, mut seconds) = (Vec::new(), 0.0);
        for pair in all.windows(2) {
            if pair[0].bytes <= still && pair[1].bytes > still {
                bursts.push(0.0);
            }
            if let Some(last) = bursts.last_mut() {
                *last += pair[1].bytes;
                seconds += pair[1].seconds;
            }
        }
        if bursts.len() < MIN_BURSTS {
            let why =
                format!("{} bursts with stalls between them, needs {MIN_BURSTS}", bursts.len());
            return Err(Missing::because(why));
        }
        let count = bursts.len();
        let bytes = positive(median(bursts.clone(), "bursts")?, "the payload of a burst")?;
        let spread = spread(&bursts, bytes, "bursts")?;
        Ok(Bursts { count, bytes, period_s: seconds / count as f64, spread })
    }
}
