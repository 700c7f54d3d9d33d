//! Tests so short that their beginning can't be distinguished from the rest.

use goodput_experiment::steady::MIN_INTERVALS_LEFT;
use goodput_model::{Length, Transport};

use crate::result::measurement::Measurement;

/// Whether the goodput may include slow start because nothing could be left out. A transfer of a fixed number of bytes
/// is measured whole on purpose, and a run that was cut short reports that.
pub fn counted(measurement: &Measurement) -> Option<String> {
    let plan = &measurement.plan;
    let timed = matches!(plan.length, Length::Seconds(_) | Length::Auto { .. });
    if !timed || plan.transport != Transport::Tcp || plan.omit_s > 0.0 {
        return None;
    }
    let steps = measurement.senders().into_iter().filter_map(|sender| measurement.steps(sender));
    let fewest = steps.min().filter(|steps| *steps <= MIN_INTERVALS_LEFT)?;
    Some(format!(
        "the test was too short ({fewest} steps between samples) to separate slow start from the rest: the goodput \
         may include it; a longer -t leaves it out"
    ))
}

#[cfg(test)]
mod tests {
    use goodput_model::{Bytes, Plan};

    use super::*;
    use crate::result::silence::tests::measurement;

    #[test]
    fn a_test_of_a_few_samples_may_hold_slow_start() {
        let timed = Plan { length: Length::Seconds(0.5), ..Plan::standard() };
        let doubt_of = |tenths, plan: &Plan| counted(&measurement(tenths, tenths, plan.clone()));
        let doubt = doubt_of(2, &timed).expect("two steps are few");
        assert!(doubt.contains("too short (2 steps"), "{doubt}");
        assert_eq!(doubt_of(6, &timed), None);
        assert_eq!(doubt_of(2, &Plan { omit_s: 0.1, ..timed.clone() }), None);
        let bytes = Length::Bytes(Bytes(2000));
        assert_eq!(doubt_of(2, &Plan { length: bytes, ..timed }), None);
    }
}
