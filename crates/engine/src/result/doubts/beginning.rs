//! Tests so short that their beginning can't be distinguished from the rest.

use goodput_experiment::steady::MIN_INTERVALS_LEFT;
use goodput_model::{Length, Seconds, Transport};

use crate::result::measurement::Measurement;
use crate::run::cadence::SAMPLE_INTERVAL;

/// Least time that must have been counted, seconds. Windows are read with the detailed samples, each [`SAMPLE_INTERVAL`]:
/// with no more of their steps, the end of slow start isn't seen.
const LEAST_S: f64 = (MIN_INTERVALS_LEFT as f64 + 0.5) * SAMPLE_INTERVAL.as_millis() as f64 / 1e3;

/// Whether the goodput may include slow start because nothing could be left out. A transfer of a fixed number of bytes
/// is measured whole on purpose, and a run that was cut short reports that.
pub fn counted(measurement: &Measurement) -> Option<String> {
    let plan = &measurement.plan;
    let timed = matches!(plan.length, Length::Seconds(_) | Length::Auto { .. });
    if !timed || plan.transport != Transport::Tcp || plan.omit_s > 0.0 {
        return None;
    }
    let senders = measurement.senders();
    let steps = senders.iter().filter_map(|sender| measurement.steps(*sender)).min()?;
    let counted_s = senders.iter().filter_map(|sender| measurement.counted_for_s(*sender));
    let counted_s = counted_s.fold(f64::INFINITY, f64::min);
    (steps <= MIN_INTERVALS_LEFT || counted_s < LEAST_S).then(|| {
        format!(
            "the test was too short ({} between the first and the last count) to separate slow start from the rest: the \
             goodput may include it; a longer -t leaves it out",
            Seconds(counted_s)
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use goodput_model::{Bytes, Known, Plan, Sample};

    use super::*;
    use crate::result::silence::tests::measurement;

    /// Eight samples for each one, with its counts.
    fn more_often(samples: &mut Vec<Sample>) {
        let eighths = |sample: &Sample| {
            let (sample, at_s) = (sample.clone(), sample.at_s);
            (0..8).map(move |n| Sample { at_s: at_s + f64::from(n) * 0.0125, ..sample.clone() })
        };
        *samples = samples.iter().flat_map(eighths).collect();
    }

    #[test]
    fn a_test_of_a_few_samples_may_hold_slow_start() {
        let timed = Plan { length: Length::Seconds(0.5), ..Plan::standard() };
        let doubt_of = |tenths, plan: &Plan| counted(&measurement(tenths, tenths, plan.clone()));
        let doubt = doubt_of(2, &timed).expect("two steps are few");
        assert!(doubt.contains("too short (200 ms between"), "{doubt}");
        assert_eq!(doubt_of(6, &timed), None);
        let mut often = measurement(2, 2, timed.clone());
        more_often(&mut Arc::make_mut(&mut often.near).samples);
        if let Known::Value(far) = &mut often.far {
            more_often(&mut Arc::make_mut(far).samples);
        }
        assert!(counted(&often).is_some(), "many steps in a quarter of a second are no longer");
        assert_eq!(doubt_of(2, &Plan { omit_s: 0.1, ..timed.clone() }), None);
        let bytes = Length::Bytes(Bytes(2000));
        assert_eq!(doubt_of(2, &Plan { length: bytes, ..timed }), None);
    }
}
