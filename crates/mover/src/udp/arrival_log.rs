//! When each datagram of a flow arrived.

use goodput_model::{Arrival, MAX_ARRIVALS};

/// The first datagrams, as many as a report holds.
#[derive(Debug, Default)]
pub(crate) struct ArrivalLog(Vec<Arrival>);

impl ArrivalLog {
    /// Records one, unless there are enough.
    pub(crate) fn note(&mut self, number: u64, sent_ns: u64, came_ns: u64) {
        if self.0.len() < MAX_ARRIVALS {
            self.0.push(Arrival { number, sent_ns, came_ns });
        }
    }

    /// All records.
    pub(crate) fn into_inner(self) -> Vec<Arrival> {
        self.0
    }
}
