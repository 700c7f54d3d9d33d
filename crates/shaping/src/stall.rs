//! A time in which the path stood still, if it is too short to be a hole of the train (see `part.rs`): nothing came, although the
//! sender went on, and what had been sent came later.

use crate::trace::{Came, Trace};

/// Shortest such time, seconds. Chosen: hosts that others use stop for some tens of milliseconds.
const LEAST_S: f64 = 0.1;
/// By how much it is longer than all other pauses. What lets datagrams through in bursts has many that are as long.
const TIMES_OTHERS: f64 = 10.0;
/// Largest share of it that a sender which stops, or losses right there, may explain. Chosen: what explains most of it is its reason.
const MAX_EXPLAINED_SHARE: f64 = 0.5;

/// How long the path stood still, seconds; `None` if it did not.
pub(crate) fn longest(trace: &Trace) -> Option<f64> {
    let mut pauses: Vec<(f64, &[Came])> =
        trace.came.windows(2).map(|two| (two[1].came_s - two[0].came_s, two)).collect();
    pauses.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let (seconds, around) = *pauses.first()?;
    let others = pauses.get(1).map_or(0.0, |(next, _)| *next);
    let each_s = trace.frame / trace.offered_bytes_per_s();
    let lost_s = around[1].lost_before as f64 * each_s;
    let paused_s = around[1].sent_s - around[0].sent_s - lost_s - each_s;
    let is_unexplained = lost_s.max(paused_s) < MAX_EXPLAINED_SHARE * seconds;
    (seconds >= LEAST_S.max(TIMES_OTHERS * others) && is_unexplained).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5000 datagrams, of which one is sent each 0.3 ms and one comes each ms, changed by `change`.
    fn trace(change: impl Fn(usize, Came) -> Came) -> Trace {
        let came = (0..5000).map(|number: usize| {
            let (sent_s, came_s) = (number as f64 * 0.3e-3, number as f64 * 1e-3);
            change(number, Came { sent_s, came_s, wait_s: 0.0, lost_before: 0 })
        });
        Trace { came: came.collect(), frame: 1000.0 }
    }

    fn later(number: usize, from: usize, seconds: f64, came: Came) -> Came {
        let late_s = if number >= from { seconds } else { 0.0 };
        Came { came_s: came.came_s + late_s, ..came }
    }

    #[test]
    fn one_long_pause_of_the_path_is_a_stall() {
        let stalled =
            |from, seconds| longest(&trace(|number, came| later(number, from, seconds, came)));
        assert!((stalled(400, 0.5).unwrap() - 0.501).abs() < 1e-6);
        assert!((stalled(4900, 0.5).unwrap() - 0.501).abs() < 1e-6);
        assert_eq!(stalled(400, 0.03), None, "a busy host");
        assert_eq!(stalled(5000, 0.5), None);
    }

    #[test]
    fn bursts_a_sender_that_stops_and_losses_are_no_stall() {
        let bursts = trace(|number, came| later(number, 0, 0.2 * (number / 500) as f64, came));
        assert_eq!(longest(&bursts), None);
        let paused = trace(|number, came| {
            let late = later(number, 400, 0.5, came);
            let stopped_s = if number >= 400 { 0.5 } else { 0.0 };
            Came { sent_s: late.sent_s + stopped_s, ..late }
        });
        assert_eq!(longest(&paused), None);
        let lost = trace(|number, came| {
            let lost_before = if number == 400 { 1600 } else { 0 };
            Came { lost_before, ..later(number, 400, 0.5, came) }
        });
        assert_eq!(longest(&lost), None);
    }
}
