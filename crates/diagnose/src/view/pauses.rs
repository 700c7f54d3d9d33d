//! Whether the whole process of an end stood still, judged by missing samples.

use goodput_model::Missing;

use super::{Side, positive};

/// Seconds between two samples; more is a pause. Missed samples follow at once.
const PERIOD_S: f64 = 0.1;
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
        let late = |pair: &[f64]| Some(pair[1] - pair[0] - PERIOD_S).filter(|late| *late > LATE_S);
        let paused: f64 = times.windows(2).filter_map(late).sum();
        Ok(paused / positive(last - first, "the time between the samples")?)
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
