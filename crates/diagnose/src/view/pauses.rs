//! Whether the whole process of an end stood still, judged by missing samples.

use goodput_model::Missing;

use super::{Side, positive};

/// How late a sample may be on a busy host without a stop, seconds.
const LATE_S: f64 = 0.02;
/// Fewer samples prove nothing.
const MIN_SAMPLES: usize = 8;

impl Side<'_> {
    /// Total lateness of the window's samples, as a share of the window. A thread that is stopped
    /// while it waits for its socket counts as waiting; the missing samples show the stop.
    pub fn paused_share(&self) -> Result<f64, Missing> {
        let times: Vec<f64> = self.samples()?.map(|sample| sample.at_s).collect();
        let (first, last) = match (times.first(), times.last()) {
            (Some(first), Some(last)) if times.len() >= MIN_SAMPLES => (first, last),
            _ => return Err(Missing::because(format!("fewer than {MIN_SAMPLES} samples"))),
        };
        let all_s = positive(last - first, "the time between the samples")?;
        // Missed samples follow at once, so their mean is the time that was planned.
        let period_s = all_s / (times.len() - 1) as f64;
        let late = |pair: &[f64]| Some(pair[1] - pair[0] - period_s).filter(|late| *late > LATE_S);
        let paused: f64 = times.windows(2).filter_map(late).sum();
        Ok(paused / all_s)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::view::View;

    #[test]
    fn samples_in_time_show_no_pause() {
        let evidence = Case::healthy().evidence();
        assert_eq!(View::new(&evidence).receiver.paused_share().unwrap(), 0.0);
    }

    #[test]
    fn samples_that_come_in_pairs_show_pauses() {
        let evidence = Case::healthy().stopped().evidence();
        let share = View::new(&evidence).receiver.paused_share().unwrap();
        assert!((0.4..0.6).contains(&share), "{share}");
    }
}
