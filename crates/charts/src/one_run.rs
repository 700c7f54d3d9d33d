//! The one run of a command with several runs that the number, the verdict and the charts over time show.

use goodput_model::answer::arm_name;
use goodput_model::{Comparison, Kind, Record};

/// Which run it is, as a sentence begins with it; `None` if the record has only one.
pub fn which(record: &Record) -> Option<String> {
    Some(match record.kind {
        Kind::Test | Kind::Attach => return None,
        Kind::Compare => of_baseline(record.comparison.as_ref()),
        Kind::FindRate => "The last run".into(),
        Kind::Shaping => "TCP through the shaper".into(),
        Kind::Tune => "Before any change".into(),
    })
}

/// The first run that gave a result, and whether it counts: one of the baseline, unless each of those failed.
fn of_baseline(comparison: Option<&Comparison>) -> String {
    const FIRST: &str = "The first run of the baseline";
    let Some(comparison) = comparison else { return FIRST.into() };
    let mut of_baseline = comparison.trials.iter().filter(|trial| trial.arm == 0);
    let Some(first) = of_baseline.find(|trial| trial.goodput_bits_per_s.value().is_some()) else {
        return "The first run of another arm".into();
    };
    let name = comparison.arms.first().map(|base| format!(", {}", arm_name(comparison, base)));
    let discarded = first.discarded.as_ref();
    let discarded = discarded.map(|why| format!(" (it does not count: {why})"));
    [FIRST.into(), name.unwrap_or_default(), discarded.unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests {
    use goodput_model::Known;

    use super::*;

    #[test]
    fn the_run_that_is_shown_is_the_first_that_did_not_fail() {
        let mut record = Record::from_json(include_str!("../tests/records/compare.json")).unwrap();
        let trials = &mut record.comparison.as_mut().unwrap().trials;
        let mut failed = trials.iter().find(|trial| trial.arm == 0).unwrap().clone();
        failed.goodput_bits_per_s = Known::missing("refused");
        failed.discarded = Some("it failed".into());
        trials.insert(0, failed);
        let named = which(&record).unwrap();
        assert!(named.starts_with("The first run of the baseline, mover="), "{named}");
        assert!(!named.contains("it failed"), "{named}");
        for trial in &mut record.comparison.as_mut().unwrap().trials {
            if trial.arm == 0 {
                trial.goodput_bits_per_s = Known::missing("refused");
            }
        }
        assert_eq!(which(&record).unwrap(), "The first run of another arm");
    }
}
