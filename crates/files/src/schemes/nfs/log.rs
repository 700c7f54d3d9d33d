//! What becomes known of the round trips of one connection, in bounded memory however many there are.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Round trips that are kept: those of more calls change a median little.
const MAX_KEPT_ROUND_TRIPS: usize = 10_000;

/// The calls of one connection. It is written while payload moves, and can be read from anywhere.
#[derive(Debug, Default)]
pub struct RpcLog(Mutex<Rpcs>);

/// Calls for payload.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rpcs {
    /// Bytes that one call asks for.
    pub call_bytes: u32,
    /// Calls in flight at most.
    pub slots: u16,
    /// Calls that were answered.
    pub answered: u64,
    /// Answers that brought less than was asked for.
    pub short: u64,
    /// Times from a call to the end of its answer, microseconds; the first ones, if there are many.
    pub round_trips_us: Vec<f64>,
    /// The longest of all.
    pub longest_us: f64,
}

impl RpcLog {
    fn inner(&self) -> MutexGuard<'_, Rpcs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew, with calls of that size.
    pub(super) fn begin(&self, call_bytes: u32, slots: u16) {
        *self.inner() = Rpcs { call_bytes, slots, ..Rpcs::default() };
    }

    pub(super) fn answered(&self, took: Duration, is_short: bool) {
        let mut inner = self.inner();
        let took_us = took.as_secs_f64() * 1e6;
        inner.answered += 1;
        inner.short += u64::from(is_short);
        inner.longest_us = inner.longest_us.max(took_us);
        if inner.round_trips_us.len() < MAX_KEPT_ROUND_TRIPS {
            inner.round_trips_us.push(took_us);
        }
    }

    /// All that is known.
    pub fn so_far(&self) -> Rpcs {
        self.inner().clone()
    }
}
