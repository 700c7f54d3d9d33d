//! The rate at which the bucket fills: the bytes let through between times at which it was empty, divided by these times.

use goodput_model::{BitRate, Estimate, Missing, ShapingKind};

use crate::busy;
use crate::empty::Empty;
use crate::held::{self, Held};
use crate::policed;
use crate::rough::Rough;
use crate::trace::Trace;

/// Number of parts of the train whose rates are compared; their spread gives the error.
pub(crate) const TRAIN_PARTS: usize = 10;
/// 97.5 % quantile of Student's t with one degree of freedom less than there are parts.
const T_QUANTILE: f64 = 2.262;
/// Smallest number of frames in all windows together.
const MIN_FRAMES_HELD: f64 = 8.0;

/// The rate, bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    /// Mean over all stretches, with its 95 % interval.
    pub(crate) mean: Estimate,
    /// Half-width of the 95 % prediction interval for the rate of one part of the train.
    pub(crate) part_error: f64,
}

/// Half-widths of the 95 % intervals of a rate, bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    of_mean: f64,
    of_part: f64,
}

/// What was let through between arrivals at an empty bucket, without the windows in which a host stopped.
pub(crate) fn rate(
    trace: &Trace,
    kind: ShapingKind,
    empty: &Empty,
    rough: &Rough,
) -> Result<Rate, Missing> {
    if kind == ShapingKind::None {
        return Err(Missing::because("all came as fast as they were sent"));
    }
    let (windows, begun) = match kind {
        // A policer's host that stops loses nothing, because nothing waits for it.
        ShapingKind::Policer => {
            (held::windows(&policed::steps(trace, empty, rough)), Held::default())
        }
        _ => of_shaper(trace, empty, rough),
    };
    let all: Held = windows.iter().copied().sum();
    if all.bytes < MIN_FRAMES_HELD * trace.frame || all.seconds <= 0.0 {
        return Err(Missing::because("too little came while the rate was seen to hold"));
    }
    let offered = trace.offered_bytes_per_s();
    if kind == ShapingKind::Policer && offered < all.rate() {
        let offered = BitRate(offered * 8.0);
        return Err(Missing::because(format!(
            "the sender stopped for so long that it reached {offered} on average, less than what passes: the bucket was \
             hardly ever empty"
        )));
    }
    if begun.seconds > all.seconds {
        let offered = BitRate(trace.offered_bytes_per_s() * 8.0);
        return Err(Missing::because(format!(
            "the datagrams, sent at {offered} on average, never queued: late timers or a busy host held them up one by one"
        )));
    }
    // The first and the last arrival may each be off by a part of a frame.
    let (spread, least) = (spread(&windows, all.seconds), trace.frame / all.seconds);
    let (value, error) = (all.rate(), spread.of_mean.max(least));
    let low = (value - error).min(all.with(begun).rate());
    let mean = Estimate { value, low: low.max(0.0), high: value + error };
    Ok(Rate { mean, part_error: spread.of_part.max(least) })
}

/// The time in which a shaper's bucket was never full, in windows, and the beginnings of these times. Whether the bucket was
/// empty at the beginnings is not known: timers may have been late.
fn of_shaper(trace: &Trace, empty: &Empty, rough: &Rough) -> (Vec<Held>, Held) {
    let times = busy::times(trace, empty);
    let steps: Vec<Held> = times.iter().flat_map(|busy| busy.steps(trace)).collect();
    let begun = times.iter().map(|busy| busy.begun(trace, rough.rate)).sum();
    (held::usual(held::windows(&steps), trace.frame), begun)
}

/// The spread of the rates of parts of equal duration.
fn spread(windows: &[Held], seconds: f64) -> Spread {
    let (mut rates, mut part) = (Vec::new(), Held::default());
    for window in windows {
        part = part.with(*window);
        if part.seconds >= seconds / TRAIN_PARTS as f64 * (1.0 - f64::EPSILON * 1e3) {
            rates.push(part.bytes / part.seconds);
            part = Held::default();
        }
    }
    if rates.len() < 2 {
        return Spread { of_mean: 0.0, of_part: 0.0 };
    }
    let (_, variance) = mean_and_variance(&rates);
    let count = rates.len() as f64;
    Spread {
        of_mean: T_QUANTILE * (variance / count).sqrt(),
        // A prediction interval covers one more part, around a mean that is not known exactly either.
        of_part: T_QUANTILE * (variance * (1.0 + 1.0 / count)).sqrt(),
    }
}

/// The mean of ten parts, with its interval.
pub(crate) fn interval(rates: &[f64; TRAIN_PARTS]) -> Estimate {
    let (value, variance) = mean_and_variance(rates);
    let error = T_QUANTILE * (variance / TRAIN_PARTS as f64).sqrt();
    Estimate { value, low: value - error, high: value + error }
}

fn mean_and_variance(rates: &[f64]) -> (f64, f64) {
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    (mean, rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (count - 1.0))
}
