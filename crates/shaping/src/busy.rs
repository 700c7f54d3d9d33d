//! The times in which a shaper was busy: something waited in it.
//!
//! A datagram that waits in a queue does so from when it would have come unhindered until it comes, and all the time the
//! others before it come at the shaper's rate. One that waits for a late timer, or for a busy host, comes together with
//! those behind it, and nothing comes before. So the beginnings of the busy times, in which nothing came yet, are short
//! if there is a queue.

use crate::empty::Empty;
use crate::held::{self, Held};
use crate::trace::Trace;

/// A time in which something waited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Busy {
    /// Its beginning.
    since_s: f64,
    /// Places of the first and the last arrival in it.
    first: usize,
    last: usize,
}

/// All of them, the earliest first.
pub(crate) fn times(trace: &Trace, empty: &Empty) -> Vec<Busy> {
    let mut times: Vec<Busy> = Vec::new();
    for &place in &empty.0 {
        let came = &trace.came[place];
        let since_s = came.came_s - came.wait_s;
        match times.last_mut() {
            Some(busy) if since_s <= trace.came[busy.last].came_s => busy.last = place,
            _ => {
                let first = trace.came.partition_point(|other| other.came_s < since_s);
                times.push(Busy { since_s, first, last: place });
            }
        }
    }
    times
}

impl Busy {
    /// From each of its arrivals to the next.
    pub(crate) fn steps(self, trace: &Trace) -> Vec<Held> {
        held::steps(trace, &(self.first..=self.last).collect::<Vec<_>>())
    }

    /// From its beginning to its first arrivals, of which only a part may have passed in that time: at this `rate` (bytes
    /// per second) at most.
    pub(crate) fn begun(self, trace: &Trace, rate: f64) -> Held {
        let at_s = trace.came[self.first].came_s;
        let together = trace.came[self.first..].partition_point(|other| other.came_s <= at_s);
        let seconds = at_s - self.since_s;
        Held { seconds, bytes: (rate * seconds).min(together as f64 * trace.frame) }
    }
}
