//! Bursts that stalls keep apart, and how much alike they are.

use goodput_model::Missing;

use super::{Side, median, positive, spread};

/// Fewer bursts do not show what they have in common.
const MIN_BURSTS: usize = 6;
/// Payload of an interval over the mean of all, below which nothing moved but what was on its way.
const MAX_PAUSE_BYTES_RATIO: f64 = 0.02;

/// What one side moved from one stall to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// How many there were, the first not counted, because it began with the transfer.
    pub count: usize,
    /// Payload of one, bytes: the median.
    pub bytes: f64,
    /// From one to the next, seconds, on average.
    pub period_s: f64,
    /// How much they differ, as a share of that: the median absolute deviation, scaled to read like a
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
