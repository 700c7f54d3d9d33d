//! The arrivals at which the bucket is known to have been empty.
//!
//! A shaper's bucket is empty as long as anything waits. A policer's was empty when it dropped a datagram, so the next
//! one that passed took what had come in since.

use goodput_model::ShapingKind;

use crate::kind::least_wait_s;
use crate::rough::Rough;
use crate::trace::{Came, Trace};

/// Their places in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Empty(pub(crate) Vec<usize>);

pub(crate) fn arrivals(trace: &Trace, kind: ShapingKind, rough: &Rough) -> Empty {
    let least_s = least_wait_s(trace, rough);
    let is_empty = |came: &Came| match kind {
        ShapingKind::Shaper => came.wait_s >= least_s,
        ShapingKind::Policer => came.lost_before > 0,
        ShapingKind::None => false,
    };
    let places = trace.came.iter().enumerate().filter(|(_, came)| is_empty(came));
    Empty(places.map(|(place, _)| place).collect())
}

impl Empty {
    /// All arrivals from the first of these to the last; every arrival if there are none.
    pub(crate) fn span<'a>(&self, trace: &'a Trace) -> &'a [Came] {
        match self.0[..] {
            [first, .., last] => &trace.came[first..=last],
            _ => &trace.came,
        }
    }
}
