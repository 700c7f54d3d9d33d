//! The responses that judge arms: how each is read from a run, and which direction is good.

use goodput_model::{Known, Latency, Response, ResponseResult, Trial, median};

use crate::judge::Preference;
use crate::pairs::{Runs, cpu, goodput};
use crate::sequential::Standing;

/// The smallest number used in a ratio, in the units of the response. A reading of zero, such as no loss, needs a
/// replacement: a number below a run's resolution keeps the sign, and makes the ratio enormous but finite. Two zero
/// readings are no difference.
fn floor(response: Response) -> f64 {
    match response {
        // One bit per second.
        Response::Throughput => 1.0,
        // A cost or a round trip of zero means that the clock is too coarse, see `reading`.
        Response::Cpu | Response::Latency => f64::MIN_POSITIVE,
        // One per 1000 seconds, one per 10^9 bytes, one per 1000 GB.
        Response::Interrupts => 1e-3,
        Response::Loss => 1e-7,
        Response::Drops => 1e-3,
        // No CPU at all means that the clock is too coarse; such a run has neither.
        Response::HostCpu | Response::PerCpu => f64::MIN_POSITIVE,
    }
}

/// Which direction is good.
pub(crate) fn preference(response: Response) -> Preference {
    if response.more_is_better() { Preference::Up } else { Preference::Down }
}

/// The reading of a run that counts, in the unit of the response.
fn reading(trial: &Trial, response: Response) -> Option<f64> {
    let reading = match response {
        Response::Throughput => Some(goodput(trial)),
        Response::Cpu => cpu(trial),
        Response::Latency => {
            trial.latency.as_ref().and_then(Latency::loaded_us).filter(|us| *us > 0.0)
        }
        _ => trial.responses.get(&response).copied(),
    };
    reading.filter(|reading| reading.is_finite() && *reading >= 0.0)
}

/// The readings for ratios.
pub(crate) fn for_ratio(response: Response) -> impl Fn(&Trial) -> Option<f64> {
    move |trial| Some(reading(trial, response)?.max(floor(response)))
}

/// One response of one arm, as stored.
pub(crate) fn result(
    runs: &Runs,
    arm: usize,
    response: Response,
    standing: &Standing,
) -> ResponseResult {
    let median = match median(runs.compared(arm).filter_map(|trial| reading(trial, response))) {
        Some(median) => Known::Value(median),
        None => Known::missing("no counted run could read it"),
    };
    ResponseResult { response, median, against: standing.effect.clone() }
}
