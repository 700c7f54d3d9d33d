//! When to read what of running flows.

use std::time::Duration;

use goodput_model::{Length, Plan};

use crate::run::length::longest;

/// Time between two samples.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// A run up to this long has samples of the counts alone between its detailed ones, with this time between any two: the
/// rate at which so short a run stood shows in twenty samples, not in five. A longer run has none of them
/// ([`ThinnedSamples`](crate::result::thinned_samples::ThinnedSamples)).
pub const SHORT_RUNS: [(Duration, Duration); 2] = [
    (Duration::from_secs(1), Duration::from_millis(25)),
    (Duration::from_secs(2), Duration::from_millis(50)),
];

/// The same if the plan does not observe: just enough to show intervals and notice the end.
const UNOBSERVED_INTERVAL: Duration = Duration::from_millis(500);

/// Time between detailed readings for each flow: with 10 ms a flow, 10 flows are read in detail every 100 ms and 100
/// flows every second.
const DETAIL_INTERVAL_PER_FLOW: Duration = Duration::from_millis(10);

/// When to read what.
#[derive(Debug, Clone, Copy)]
pub struct Cadence {
    period: Period,
    /// Time between two detailed samples; `None`: no sample has details.
    pub detail: Option<Duration>,
    /// Received bytes at which a sample is due at once. If the plan has a number of bytes, a sending peer may not count
    /// them, but wait for this end to report their arrival (iperf3 up to 3.9 with `-R -n`).
    pub enough: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Period {
    /// The same all the time.
    Even(Duration),
    /// That of a short run, which becomes a longer one.
    Growing,
}

impl Cadence {
    /// The cadence that the plan's length and number of flows allow.
    pub fn of(plan: &Plan) -> Self {
        if !plan.observe {
            return Self::counting(UNOBSERVED_INTERVAL, enough(plan.length));
        }
        let may_be_short = match plan.length {
            Length::Bytes(_) => true,
            Length::Seconds(_) | Length::Auto { .. } => {
                longest(plan).is_some_and(|longest| interval(longest) < SAMPLE_INTERVAL)
            }
            Length::Source => false,
        };
        let period = if may_be_short { Period::Growing } else { Period::Even(SAMPLE_INTERVAL) };
        let flows = plan.flow_plans().len() as u32;
        let detail = Some(SAMPLE_INTERVAL.max(DETAIL_INTERVAL_PER_FLOW * flows));
        Self { period, detail, enough: enough(plan.length) }
    }

    /// Samples of the counts alone.
    pub fn counting(period: Duration, enough: Option<u64>) -> Self {
        Self { period: Period::Even(period), detail: None, enough }
    }

    /// Time from a sample `at` this time of the run to the next.
    pub fn period(&self, at: Duration) -> Duration {
        match self.period {
            Period::Even(period) => period,
            // A run that goes on at this time is longer.
            Period::Growing => interval(at + Duration::from_nanos(1)),
        }
    }
}

/// Time between two samples of a run of this length.
fn interval(length: Duration) -> Duration {
    let short = SHORT_RUNS.into_iter().find(|(until, _)| length <= *until);
    short.map_or(SAMPLE_INTERVAL, |(_, interval)| interval)
}

fn enough(length: Length) -> Option<u64> {
    match length {
        Length::Bytes(all) => Some(all.0),
        Length::Seconds(_) | Length::Auto { .. } | Length::Source => None,
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::Bytes;

    use super::*;

    fn times(plan: &Plan, until_ms: u64) -> Vec<u128> {
        let cadence = Cadence::of(plan);
        let (mut at, mut times) = (Duration::ZERO, Vec::new());
        while at < Duration::from_millis(until_ms) {
            at += cadence.period(at);
            times.push(at.as_millis());
        }
        times
    }

    #[test]
    fn a_short_run_has_twenty_samples_and_a_long_one_ten_a_second() {
        for (length_s, expected) in [(0.5, 20), (1.0, 40), (2.0, 60), (2.1, 21), (10.0, 100)] {
            let plan = Plan { length: Length::Seconds(length_s), ..Plan::standard() };
            let times = times(&plan, (length_s * 1e3) as u64);
            assert_eq!(times.len(), expected, "{length_s}: {times:?}");
        }
        let warm = Plan { length: Length::Seconds(1.0), omit_s: 2.0, ..Plan::standard() };
        assert_eq!(times(&warm, 3000).len(), 30);
        assert_eq!(times(&Plan { observe: false, ..Plan::standard() }, 1000), [500, 1000]);
    }

    #[test]
    fn a_run_of_bytes_is_sampled_less_often_as_it_lasts() {
        let plan = Plan { length: Length::Bytes(Bytes(1_000_000)), ..Plan::standard() };
        let times = times(&plan, 3000);
        let count = |from, to| times.iter().filter(|at| (from..to).contains(*at)).count();
        assert_eq!([count(1, 1001), count(1001, 2001), count(2001, 3001)], [40, 20, 10]);
    }

    #[test]
    fn details_cost_the_same_in_a_short_run() {
        for length in [Length::Seconds(1.0), Length::Seconds(10.0)] {
            let plan = |flows| Plan { length, flows, ..Plan::standard() };
            let [few, many] = [1, 64].map(|flows| Cadence::of(&plan(flows)).detail);
            assert_eq!((few, many), (Some(SAMPLE_INTERVAL), Some(Duration::from_millis(640))));
        }
    }
}
