//! The queue in which datagrams waited for the bucket.

use goodput_model::{Bytes, Missing, QueueDiscipline, ShapingQueue};

use crate::empty::Empty;
use crate::kind::waits_at_drops;
use crate::trace::Trace;

/// Longest wait at the first drop that shows a queue which was not full yet, as a share of the wait at most drops.
const MAX_EARLY_SHARE: f64 = 0.75;
/// Quantile of the waits at drops that counts as the wait at most drops.
const MOST_WAITS_QUANTILE: f64 = 0.9;

/// `rate` in bytes per second.
pub(crate) fn queue(trace: &Trace, empty: &Empty, rate: f64) -> Result<ShapingQueue, Missing> {
    let waits = empty.0.iter().map(|place| trace.came[*place].wait_s);
    let longest_wait_s = waits.fold(0.0, f64::max);
    if longest_wait_s <= 0.0 {
        return Err(Missing::because("nothing waited"));
    }
    let bytes = Bytes((longest_wait_s * rate).round() as u64);
    Ok(ShapingQueue { longest_wait_s, bytes, discipline: discipline(trace) })
}

fn discipline(trace: &Trace) -> QueueDiscipline {
    let mut at_drops: Vec<f64> = waits_at_drops(trace).collect();
    let Some(first) = at_drops.first().copied() else { return QueueDiscipline::Unfilled };
    at_drops.sort_by(f64::total_cmp);
    let most = at_drops[((at_drops.len() - 1) as f64 * MOST_WAITS_QUANTILE) as usize];
    match first < MAX_EARLY_SHARE * most {
        true => QueueDiscipline::ActiveManagement,
        false => QueueDiscipline::DropTail,
    }
}
