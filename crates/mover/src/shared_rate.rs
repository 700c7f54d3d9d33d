//! A rate that several flows share, of one measurement or of many: a token bucket with turns.

use std::sync::{Mutex, MutexGuard, PoisonError};

use goodput_model::BitRate;

use crate::clock::now_ns;

/// What flows may move faster after a time in which they moved less, nanoseconds of the rate. A path that was
/// held up delivers what it has kept at once: after a loss on a short path that is up to 200 ms
/// (`TCP_RTO_MIN`, include/net/tcp.h) and the round trip.
const SAVED_NS: f64 = 300e6;

/// Holds all flows that have it to one rate together. They move their pieces in turn, so none takes all.
#[derive(Debug)]
pub struct SharedRate {
    rate: BitRate,
    began_ns: u64,
    /// When the next piece may move, nanoseconds after `began_ns`. Negative: time was saved.
    next_ns: Mutex<f64>,
}

impl SharedRate {
    /// Nothing is saved yet, so that no measurement begins faster than the rate. `None` if `rate` is not a
    /// positive number.
    pub fn new(rate: BitRate) -> Option<Self> {
        let began_ns = now_ns();
        let is_rate = rate.0 > 0.0 && rate.0.is_finite();
        is_rate.then(|| Self { rate, began_ns, next_ns: Mutex::new(0.0) })
    }

    /// The rate of all flows together.
    pub fn rate(&self) -> BitRate {
        self.rate
    }

    /// Takes a turn for about `bytes`; returns when they may move, by [`crate::monotonic_ns`].
    pub fn take_turn(&self, bytes: usize) -> u64 {
        self.take_turn_at(bytes, now_ns())
    }

    fn take_turn_at(&self, bytes: usize, now_ns: u64) -> u64 {
        let saved_from = now_ns.saturating_sub(self.began_ns) as f64 - SAVED_NS;
        let mut next = self.next();
        let turn = if saved_from > 0.0 { next.max(saved_from) } else { *next };
        *next = turn + self.ns_of(bytes as f64);
        // A cast from float to integer saturates.
        self.began_ns.saturating_add(turn as u64)
    }

    /// In a turn that was taken for `expected` bytes `moved` have moved.
    pub fn moved(&self, expected: usize, moved: usize) {
        *self.next() += self.ns_of(moved as f64 - expected as f64);
    }

    fn ns_of(&self, bytes: f64) -> f64 {
        bytes * 8e9 / self.rate.0
    }

    fn next(&self) -> MutexGuard<'_, f64> {
        // A panic in between leaves a number all the same.
        self.next_ns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// 1 byte a microsecond.
    fn shared() -> SharedRate {
        SharedRate::new(BitRate(8e6)).unwrap()
    }

    #[test]
    fn flows_move_in_turn_and_none_begins_faster_than_the_rate() {
        let shared = shared();
        let turns = [0; 4].map(|_| shared.take_turn_at(1000, shared.began_ns) - shared.began_ns);
        assert_eq!(turns, [0, 1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn what_did_not_move_is_left_to_the_others() {
        let shared = shared();
        shared.take_turn_at(1000, shared.began_ns);
        shared.moved(1000, 200);
        assert_eq!(shared.take_turn_at(1000, shared.began_ns) - shared.began_ns, 200_000);
        shared.moved(1000, 3000);
        assert_eq!(shared.take_turn_at(1, shared.began_ns) - shared.began_ns, 3_200_000);
    }

    #[test]
    fn a_pause_is_made_up_for_but_not_without_bound() {
        let (shared, mut moved) = (shared(), 0);
        let now = shared.began_ns + 10 * SECOND;
        while shared.take_turn_at(1000, now) <= now {
            moved += 1000;
        }
        assert_eq!(moved, 300_000 + 1000, "300 ms of 1 MB/s, and the piece of now");
    }

    #[test]
    fn no_rate_is_no_bucket() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(SharedRate::new(BitRate(rate)).is_none());
        }
    }

    proptest! {
        #[test]
        fn no_time_has_more_than_the_rate_and_what_was_saved(
            pieces in proptest::collection::vec((1usize..20_000, 0u64..SECOND), 1..200),
        ) {
            let shared = shared();
            let (mut now, mut sent) = (shared.began_ns, Vec::new());
            for (bytes, pause) in pieces {
                now = (now + pause).max(shared.take_turn_at(bytes, now + pause));
                sent.push((now, bytes));
            }
            for (first, (from, _)) in sent.iter().enumerate() {
                let mut bytes = 0.0;
                for (at, moved) in &sent[first..] {
                    // The last piece begins within the time.
                    let most = (at - from) as f64 / 1e3 + SAVED_NS / 1e3 + 1.0;
                    prop_assert!(bytes <= most, "{bytes} of {most}");
                    bytes += *moved as f64;
                }
            }
        }
    }
}
