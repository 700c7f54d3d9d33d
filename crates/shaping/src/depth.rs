//! How deep the bucket is: what came after a pause, less what the rate gave meanwhile.

use goodput_model::{Estimate, Missing, ShapingKind};

use crate::empty::Empty;
use crate::levels::levels;
use crate::rate::Rate;
use crate::rough::Rough;
use crate::trace::Trace;

/// Smallest number of arrivals at an empty bucket from which the depth is estimated, the earliest first.
const MIN_LOOKED_AT: usize = 32;
/// Their share of all such arrivals. Over a longer time, the error of the rate weighs more.
const LOOKED_AT_SHARE: f64 = 0.1;
/// Quantile of the levels that is taken as the depth. A host that stops for a moment makes frames wait or lets the bucket
/// fill again, and arrivals are late but never early; all of this only lowers a level.
const LEVEL_QUANTILE: f64 = 0.9;

/// The depth, bytes. It is estimated from a part of the train, whose rate may differ from the mean.
pub(crate) fn depth(
    trace: &Trace,
    kind: ShapingKind,
    empty: &Empty,
    rough: &Rough,
    rate: &Rate,
) -> Result<Estimate, Missing> {
    let levels = levels(trace, kind, &Rough { rate: rate.mean.value, ..*rough });
    let looked_at = MIN_LOOKED_AT.max((empty.0.len() as f64 * LOOKED_AT_SHARE) as usize);
    let at = &empty.0[..looked_at.min(empty.0.len())];
    let mut seen: Vec<f64> = at.iter().map(|place| levels[*place]).collect();
    seen.sort_by(f64::total_cmp);
    let quantile =
        |share: f64| Some(*seen.get((seen.len().checked_sub(1)? as f64 * share) as usize)?);
    let (Some(value), Some(middle), Some(highest), Some(last)) =
        (quantile(LEVEL_QUANTILE), quantile(0.5), quantile(1.0), at.last())
    else {
        return Err(Missing::because("the bucket was never seen empty"));
    };
    let drift = rate.part_error * trace.came[*last].came_s;
    Ok(Estimate {
        value,
        low: middle.min(value - trace.frame) - drift,
        high: highest.max(value + trace.frame) + drift,
    })
}
