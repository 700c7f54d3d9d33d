//! Statistics on the round trips of one connection, in bounded memory for any number of calls.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most round trips that are kept: each n-th, evenly over all calls.
const MAX_KEPT_ROUND_TRIPS: usize = 10_000;

/// The calls of one connection. It is written while payload moves, and can be read on any thread.
#[derive(Debug, Default)]
pub struct RpcLog(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    rpcs: Rpcs,
    /// log2 of n, if each n-th call is kept.
    thinned: u32,
}

/// Calls for payload.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rpcs {
    /// Bytes that one call asks for or carries.
    pub call_bytes: u32,
    /// Most calls in flight.
    pub slots: u16,
    /// Calls that were answered.
    pub answered: u64,
    /// Answers that carried, or accepted, less than requested.
    pub short: u64,
    /// Calls that were repeated because their connection broke or no answer arrived.
    pub retransmitted: u64,
    /// Calls that the server asked to repeat later (`NFS3ERR_JUKEBOX`).
    pub put_off: u64,
    /// Connections that replaced a broken or abandoned one.
    pub reconnects: u64,
    /// Payload that the server accepted, bytes.
    pub stored_bytes: u64,
    /// Times from a call to the end of its answer, microseconds; if there are many, those of each n-th call.
    pub round_trips_us: Vec<f64>,
    /// The sum of all.
    pub sum_us: f64,
    /// The longest of all.
    pub longest_us: f64,
    /// The shortest of all; `None`: there are none.
    pub shortest_us: Option<f64>,
    /// Time between the end of one answer with payload and the beginning of the next; `None`: unknown.
    pub idle: Option<Duration>,
}

impl RpcLog {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts over, with calls of this size.
    pub(crate) fn begin(&self, call_bytes: u32, slots: u16) {
        let rpcs = Rpcs { call_bytes, slots, ..Rpcs::default() };
        *self.inner() = Inner { rpcs, thinned: 0 };
    }

    /// A call with payload was answered: this much of it was accepted.
    pub(crate) fn stored(&self, bytes: u32) {
        self.inner().rpcs.stored_bytes += u64::from(bytes);
    }

    /// Payload that the server accepted, bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.inner().rpcs.stored_bytes
    }

    /// Calls are repeated on a new connection.
    pub(crate) fn reconnected(&self, calls: usize) {
        let rpcs = &mut self.inner().rpcs;
        rpcs.reconnects += 1;
        rpcs.retransmitted += calls as u64;
    }

    /// The server asked to repeat this number of calls later.
    pub(crate) fn put_off(&self, calls: u64) {
        self.inner().rpcs.put_off += calls;
    }

    /// A call was answered after this time; `is_short`: with less than it asked for.
    pub(crate) fn answered(&self, took: Duration, is_short: bool) {
        let Inner { rpcs, thinned } = &mut *self.inner();
        let took_us = took.as_secs_f64() * 1e6;
        if rpcs.answered % (1 << *thinned) == 0 {
            if rpcs.round_trips_us.len() == MAX_KEPT_ROUND_TRIPS {
                let mut at = 0;
                rpcs.round_trips_us.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                *thinned += 1;
            }
            rpcs.round_trips_us.push(took_us);
        }
        rpcs.answered += 1;
        rpcs.short += u64::from(is_short);
        rpcs.sum_us += took_us;
        rpcs.longest_us = rpcs.longest_us.max(took_us);
        rpcs.shortest_us = Some(rpcs.shortest_us.map_or(took_us, |least| least.min(took_us)));
    }

    /// An answer with payload began this long after the previous one had ended.
    pub(crate) fn idled(&self, time: Duration) {
        *self.inner().rpcs.idle.get_or_insert_default() += time;
    }

    /// The statistics so far.
    pub fn so_far(&self) -> Rpcs {
        self.inner().rpcs.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_calls_some_of_all_times_are_kept() {
        let log = RpcLog::default();
        log.begin(1, 1);
        let calls = 5 * MAX_KEPT_ROUND_TRIPS as u64;
        (0..calls).for_each(|call| log.answered(Duration::from_micros(call), false));
        let rpcs = log.so_far();
        assert_eq!(rpcs.answered, calls);
        assert!(
            (MAX_KEPT_ROUND_TRIPS / 2..=MAX_KEPT_ROUND_TRIPS).contains(&rpcs.round_trips_us.len())
        );
        let steps: Vec<_> =
            rpcs.round_trips_us.windows(2).map(|two| (two[1] - two[0]).round()).collect();
        assert!(steps.iter().all(|step| *step == 8.0), "each eighth call");
    }
}
