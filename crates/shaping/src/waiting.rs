//! The queue in which datagrams waited for the bucket.

use goodput_model::{Bytes, Known, Missing, ShapingQueue};

use crate::discipline::discipline;
use crate::empty::Empty;
use crate::kind::least_wait_s;
use crate::rough::Rough;
use crate::trace::Trace;

/// `rate` in bytes per second.
pub(crate) fn queue(
    trace: &Trace,
    empty: &Empty,
    rough: &Rough,
    rate: f64,
) -> Result<ShapingQueue, Missing> {
    let waits = empty.0.iter().map(|place| trace.came[*place].wait_s);
    let longest_wait_s = waits.fold(0.0, f64::max);
    if longest_wait_s <= 0.0 {
        return Err(Missing::because("nothing waited"));
    }
    Ok(ShapingQueue {
        longest_wait_s,
        bytes: Bytes((longest_wait_s * rate).round() as u64),
        discipline: discipline(trace, least_wait_s(trace, rough)).into(),
        between_flows: Known::missing("no second flow was sent"),
    })
}
