//! What arms are judged by: how each response is read from a run, and which way is good.

use goodput_model::{Known, Response, ResponseResult, Trial, median};

use crate::judge::Preference;
use crate::pairs::{Runs, cpu, goodput};
use crate::sequential::Standing;

/// The least number that a ratio is made of, in the units of the response. If nothing was seen, as
/// no loss, the ratio needs a number: one that is below what a run can tell from nothing keeps the sign and
/// an enormous but finite size. Two runs without are no difference.
fn floor(response: Response) -> f64 {
    match response {
        // One bit per second.
        Response::Throughput => 1.0,
        // A cost or a round trip of nothing is a clock too coarse to see it, see `reading`.
        Response::Cpu | Response::Latency => f64::MIN_POSITIVE,
        // One in a thousand seconds, one in 10^9 bytes, one in 1000 GB.
        Response::Interrupts => 1e-3,
        Response::Loss => 1e-7,
        Response::Drops => 1e-3,
        // No CPU at all is a clock too coarse to see it; such a run has neither.
        Response::HostCpu | Response::PerCpu => f64::MIN_POSITIVE,
    }
}

/// Which way is good.
pub(crate) fn preference(response: Response) -> Preference {
    if response.more_is_better() { Preference::Up } else { Preference::Down }
}

/// What a run that counts reads, in the unit of the response.
fn reading(trial: &Trial, response: Response) -> Option<f64> {
    let reading = match response {
        Response::Throughput => Some(goodput(trial)),
        Response::Cpu => cpu(trial),
        Response::Latency => loaded_us(trial).filter(|us| *us > 0.0),
        _ => trial.responses.get(&response).copied(),
    };
    reading.filter(|reading| reading.is_finite() && *reading >= 0.0)
}

/// The first way to time round trips that has a time under load. Whether a way does depends on
/// the far end and on the plan, not on the run.
fn loaded_us(trial: &Trial) -> Option<f64> {
    let latency = trial.latency.as_ref()?;
    let ways = [&latency.tcp_connect, &latency.udp_echo, &latency.tcp_rtt];
    ways.into_iter().find_map(|way| Some(way.loaded.value()?.p50_us))
}

/// What ratios are made of.
pub(crate) fn for_ratio(response: Response) -> impl Fn(&Trial) -> Option<f64> {
    move |trial| Some(reading(trial, response)?.max(floor(response)))
}

/// One response of one arm as it is kept.
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
