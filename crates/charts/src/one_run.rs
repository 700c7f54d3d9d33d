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

/// The first run of the baseline, and whether it counts.
fn of_baseline(comparison: Option<&Comparison>) -> String {
    const FIRST: &str = "The first run of the baseline";
    let Some(comparison) = comparison else { return FIRST.into() };
    let name = comparison.arms.first().map(|base| format!(", {}", arm_name(comparison, base)));
    let first = comparison.trials.iter().find(|trial| trial.arm == 0);
    let discarded = first.and_then(|first| first.discarded.as_ref());
    let discarded = discarded.map(|why| format!(" (it does not count: {why})"));
    [FIRST.into(), name.unwrap_or_default(), discarded.unwrap_or_default()].concat()
}
