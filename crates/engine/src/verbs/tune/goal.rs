//! The most that the path could carry: tuning ends when it is reached.

use goodput_model::{BitRate, Place, Purpose, Record};

use super::proof::changed_goodput;

/// The ceiling of the first measurement, for tuning that is about throughput. If what limits it sits at one of the hosts,
/// the goodput predicted without it counts if it is higher: what a host sets is no property of the path.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    ceiling: BitRate,
    /// Smallest gain that counts, percent.
    least_percent: f64,
}

impl Goal {
    /// `None` if no ceiling is known, or if more goodput is not what tuning is for.
    pub fn of(start: &Record, purpose: Purpose, least_percent: f64) -> Option<Self> {
        let ceiling = start.result.ceiling_bits_per_s.value();
        let ceiling = ceiling.copied().filter(|_| purpose == Purpose::Throughput)?;
        let ceiling =
            BitRate(without_limit_at_host(start).map_or(ceiling.0, |free| free.0.max(ceiling.0)));
        Some(Self { ceiling, least_percent })
    }

    /// Reports in words if less than the smallest gain lies between the goodput and the ceiling. A goodput well above it
    /// shows that the ceiling is another: the fault was in what it was computed from.
    pub fn reached(self, goodput: BitRate) -> Option<String> {
        let Self { ceiling, least_percent } = self;
        let ratio = 1.0 + least_percent / 100.0;
        (ceiling.0 / ratio..=ceiling.0 * ratio).contains(&goodput.0).then(|| {
            format!("{goodput} is within {least_percent} % of {ceiling}, the most that this path could carry")
        })
    }
}

/// Whether what tuning has proven reaches the most that the path could carry.
pub fn reaches_ceiling(record: &Record) -> bool {
    let Some(tuning) = record.tuning.as_ref().filter(|tuning| !tuning.proven.is_empty()) else {
        return false;
    };
    let goal = Goal::of(record, tuning.purpose, tuning.min_gain_percent);
    let goodput = record.comparison.as_ref().and_then(changed_goodput);
    goal.zip(goodput).is_some_and(|(goal, goodput)| goal.reached(goodput).is_some())
}

/// The goodput predicted without what limits, if that sits at one of the hosts.
fn without_limit_at_host(Record { verdict, findings, .. }: &Record) -> Option<BitRate> {
    let limit = findings.iter().find(|finding| finding.rule == verdict.limit)?;
    limit.predicted_bits_per_s.value().copied().filter(|_| limit.end != Place::Path)
}

#[cfg(test)]
mod tests {
    use goodput_model::{ArmResult, Change, Comparison, Known, SettingRef, Tuning};

    use super::super::tuner_tests::{finding, measured};
    use super::*;

    #[test]
    fn it_is_reached_from_either_side_and_not_from_afar() {
        let goal = Goal { ceiling: BitRate(100e6), least_percent: 3.0 };
        let reached = |goodput| goal.reached(BitRate(goodput)).is_some();
        assert!(reached(98e6) && reached(102e6));
        assert!(!reached(82e6) && !reached(150e6));
    }

    #[test]
    fn what_is_proven_reaches_the_ceiling_by_the_goodput_with_it() {
        let reaches = |goodput, is_proven: bool| {
            let mut start = measured(100.0);
            start.result.ceiling_bits_per_s = Known::Value(BitRate(100e6));
            let mut arms = ["1", "2"].map(|value| ArmResult::new(vec![value.into()]));
            arms[1].goodput_bits_per_s = Known::Value(BitRate(goodput));
            let setting: SettingRef = "chunk".parse().unwrap();
            start.comparison = Some(Comparison::new(vec![setting.clone()], arms.into()));
            let (to, why) = ("2".into(), String::new());
            let change = Change { setting, from: None, to, why };
            start.tuning = Some(Tuning {
                purpose: Purpose::Throughput,
                min_gain_percent: 3.0,
                steps: Vec::new(),
                proven: is_proven.then_some(change).into_iter().collect(),
                kept_in: Vec::new(),
                to_keep: Vec::new(),
                run_length: None,
                plan_only: Some(false),
                stopped: String::new(),
            });
            reaches_ceiling(&start)
        };
        assert!(reaches(98e6, true));
        assert!(!reaches(62e6, true) && !reaches(98e6, false));
    }

    #[test]
    fn what_a_host_limits_is_not_the_most_that_the_path_could_carry() {
        let ceiling = |end, predicted| {
            let mut start = measured(100.0);
            start.verdict.limit = "x".into();
            let predicted_bits_per_s = Known::Value(BitRate(predicted));
            start.findings =
                vec![goodput_model::Finding { end, predicted_bits_per_s, ..finding(Vec::new()) }];
            Goal::of(&start, Purpose::Throughput, 3.0).unwrap().ceiling.0
        };
        assert_eq!(ceiling(Place::Near, 860e6), 860e6);
        assert_eq!(ceiling(Place::Far, 50e6), 100e6);
        assert_eq!(ceiling(Place::Path, 860e6), 100e6);
    }
}
