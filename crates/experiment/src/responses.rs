//! The responses that judge arms: how each is read from a run, and which direction is good.

use goodput_model::{Known, Response, ResponseResult, Trial, median};

use crate::judge::Preference;
use crate::pairs::Runs;
use crate::sequential::Standing;

/// Which direction is good.
pub(crate) fn preference(response: Response) -> Preference {
    if response.more_is_better() { Preference::Up } else { Preference::Down }
}

/// The readings for ratios.
pub(crate) fn for_ratio(response: Response) -> impl Fn(&Trial) -> Option<f64> {
    move |trial| trial.in_ratio(response)
}

/// One response of one arm, as stored.
pub(crate) fn result(
    runs: &Runs,
    arm: usize,
    response: Response,
    standing: &Standing,
) -> ResponseResult {
    let median = match median(runs.compared(arm).filter_map(|trial| trial.reading(response))) {
        Some(median) => Known::Value(median),
        None => Known::missing("no counted run could read it"),
    };
    ResponseResult { response, median, against: standing.effect.clone() }
}
