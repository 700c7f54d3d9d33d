//! How long the runs of the comparisons are, unless the user sets it.

use goodput_model::{Length, Record};

/// Usual length of a run, seconds: past slow start on most paths, and short enough for the dozens of runs that several
/// proofs take.
const USUAL_S: f64 = 1.0;

/// How many times as long as slow start a run must be so that all of slow start is left out of its rates: what is left
/// out is at most half of a run (`result/window.rs`).
const RUN_LENGTH_IN_STARTUPS: f64 = 2.0;

/// Round trips in which windows double from the first ones, of ten segments (RFC 6928), to more than ten thousand, which
/// is 15 MB in flight. A change that lets a window grow needs them, though the path did not before the change.
const ROUND_TRIPS_OF_GROWTH: f64 = 10.0;

/// Length of a run, seconds, after the first measurement: its slow start, or that of a changed path, fits into a run
/// twice, if a run of that length is no longer than `longest_s`. In runs that are mostly slow start, only changes of slow
/// start would help.
pub fn run_s(start: &Record, longest_s: f64) -> f64 {
    let windows = start.result.directions.iter().filter_map(|direction| direction.window_s);
    let left_out_s = windows.map(|window_s| moved_s(start) - window_s).fold(0.0, f64::max);
    past(left_out_s.max(ROUND_TRIPS_OF_GROWTH * round_trip_s(start)), longest_s)
}

/// The shortest round trip that a measurement saw, seconds; 0 if none is known.
fn round_trip_s(start: &Record) -> f64 {
    let each = start.result.directions.iter().filter_map(|direction| direction.min_rtt_us.value());
    each.map(|us| us / 1e6).reduce(f64::min).unwrap_or(0.0)
}

fn past(startup_s: f64, longest_s: f64) -> f64 {
    (RUN_LENGTH_IN_STARTUPS * startup_s).min(longest_s).max(USUAL_S)
}

/// For how long a measurement moved payload, seconds.
pub fn moved_s(record: &Record) -> f64 {
    record.intervals.last().map_or(0.0, |interval| interval.to_s)
}

/// For how long a run moves payload at most, seconds; a guess for an amount of bytes.
pub fn payload_s(length: Length) -> f64 {
    match length {
        Length::Seconds(seconds) => seconds,
        Length::Auto { max_s, .. } => max_s,
        Length::Bytes(_) | Length::Source => USUAL_S,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_of_slow_start_has_the_name_that_runs_are_judged_by() {
        use goodput_experiment::starting::STARTUP;
        assert!(goodput_diagnose::rules::ALL.iter().any(|rule| rule.id == STARTUP));
    }

    #[test]
    fn a_run_goes_past_slow_start_if_there_is_time() {
        assert_eq!(past(0.2, 2.0), 1.0);
        assert_eq!(past(0.9, 2.0), 1.8);
        assert_eq!(past(5.0, 2.0), 2.0);
        assert_eq!(past(5.0, 0.1), 1.0, "the usual length at least");
    }
}
