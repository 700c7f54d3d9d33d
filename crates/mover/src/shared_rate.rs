//! A rate that several flows share, of one measurement or of many: a token bucket with turns.

use std::sync::{Mutex, MutexGuard, PoisonError};

use goodput_model::BitRate;

use crate::clock::now_ns;

/// What flows may move faster after a time in which they moved less, nanoseconds of the rate. It must cover
/// one piece and how late a reader may be on a busy host, a few time slices of others; the rest only lets
/// short measurements exceed the rate. A stream that was held up longer waits in its buffers, and loses nothing.
const SAVED_NS: f64 = 50e6;

/// What may wait in the sockets of all flows of datagrams together, seconds of the rate: a receiver still
/// counts it after the time in which it came. With [`SAVED_NS`] it is the burst above the rate: 100 ms of it.
const QUEUED_S: f64 = 0.05;

/// The least that one socket of datagrams may hold, bytes: two of the longest, or as many as the kernel joins
/// to 64 KiB (`UDP_GRO`).
const MIN_QUEUE_BYTES: f64 = 131_072.0;

/// Holds all flows that have it to one rate together. They move their pieces in turn, so none takes all.
#[derive(Debug)]
pub struct SharedRate {
    rate: BitRate,
    began_ns: u64,
    /// When the next piece may move, nanoseconds after `began_ns`. `None`: nothing has moved yet.
    next_ns: Mutex<Option<f64>>,
}

impl SharedRate {
    /// Nothing is saved before the first piece, however long that takes to come, so that no measurement begins
    /// faster than the rate. `None` if `rate` is not a positive number.
    pub fn new(rate: BitRate) -> Option<Self> {
        let began_ns = now_ns();
        let is_rate = rate.0 > 0.0 && rate.0.is_finite();
        is_rate.then(|| Self { rate, began_ns, next_ns: Mutex::default() })
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
        let now = now_ns.saturating_sub(self.began_ns) as f64;
        let mut next = self.next();
        let turn = next.map_or(now, |next| next.max(now - SAVED_NS));
        *next = Some(turn + self.ns_of(bytes as f64));
        // A cast from float to integer saturates.
        self.began_ns.saturating_add(turn as u64)
    }

    /// In a turn that was taken for `expected` bytes `moved` have moved.
    pub fn moved(&self, expected: usize, moved: usize) {
        let more_ns = self.ns_of(moved as f64 - expected as f64);
        if let Some(next) = self.next().as_mut() {
            *next += more_ns;
        }
    }

    /// Takes a turn for `bytes` that have come already, if it is so near that they could wait for it in a
    /// socket. Those of which this is not true shall not count.
    pub fn admit(&self, bytes: usize) -> bool {
        self.admit_at(bytes, now_ns())
    }

    fn admit_at(&self, bytes: usize, now_ns: u64) -> bool {
        let waits_ns = self.take_turn_at(bytes, now_ns).saturating_sub(now_ns);
        let is_near = waits_ns as f64 <= QUEUED_S * 1e9;
        if !is_near {
            self.moved(bytes, 0);
        }
        is_near
    }

    fn ns_of(&self, bytes: f64) -> f64 {
        bytes * 8e9 / self.rate.0
    }

    fn next(&self) -> MutexGuard<'_, Option<f64>> {
        // A panic in between leaves a number all the same.
        self.next_ns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the socket of each of so many flows of datagrams may hold, bytes, where they share a rate. What comes
/// beyond it is lost, as at any policer.
pub fn queue_bytes(rate: BitRate, flows: u16) -> usize {
    // A cast from float to integer saturates.
    (rate.bytes_in(QUEUED_S) / f64::from(flows.max(1))).max(MIN_QUEUE_BYTES) as usize
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
    fn nothing_is_saved_before_the_first_piece() {
        let shared = shared();
        let now = shared.began_ns + 10 * SECOND;
        let turns = [0; 2].map(|_| shared.take_turn_at(1000, now) - now);
        assert_eq!(turns, [0, 1_000_000]);
    }

    #[test]
    fn of_what_came_before_only_as_much_counts_as_could_wait_in_a_socket() {
        let shared = shared();
        let now = shared.began_ns + SECOND;
        let admitted = (0..1000).filter(|_| shared.admit_at(1000, now)).count();
        assert_eq!(admitted, 51, "50 ms of 1 MB/s, and the piece of now");
        assert_eq!(shared.take_turn_at(1000, now) - now, 51_000_000, "the others took no turn");
    }

    /// One second of datagrams at twice the rate, read as [`crate::udp`] reads them, from a socket that holds what
    /// [`queue_bytes`] allows.
    #[test]
    fn a_receiver_counts_no_more_than_the_rate_and_the_burst() {
        let rate = BitRate(50e6);
        let shared = SharedRate::new(rate).unwrap();
        let (from, size, holds) = (shared.began_ns, 1470, queue_bytes(rate, 1));
        let gap_ns = (size as f64 * 8e9 / (2.0 * rate.0)) as u64;
        let (mut queued, mut counted, mut turn) = (0, 0, shared.take_turn_at(size, from));
        for at in (0..SECOND).step_by(gap_ns as usize).map(|after| from + after) {
            while turn <= at && queued >= size {
                (queued, counted) = (queued - size, counted + size);
                turn = shared.take_turn_at(size, at);
            }
            queued = (queued + size).min(holds);
        }
        let allowed = rate.bytes_in(1.0);
        assert!((counted + queued) as f64 <= allowed * 1.1, "{counted} + {queued}");
        assert!(counted as f64 >= allowed * 0.95, "{counted}");
    }

    #[test]
    fn flows_share_what_may_wait_down_to_what_a_socket_needs() {
        assert_eq!(queue_bytes(BitRate(1e9), 1), 6_250_000);
        assert_eq!(queue_bytes(BitRate(1e9), 5), 1_250_000);
        assert_eq!(queue_bytes(BitRate(1e6), 1), 131_072);
        assert_eq!(queue_bytes(BitRate(1e9), 0), 6_250_000);
    }

    #[test]
    fn a_pause_is_made_up_for_but_not_without_bound() {
        let (shared, mut moved) = (shared(), 0);
        shared.take_turn_at(0, shared.began_ns);
        let now = shared.began_ns + 10 * SECOND;
        while shared.take_turn_at(1000, now) <= now {
            moved += 1000;
        }
        assert_eq!(moved, 50_000 + 1000, "50 ms of 1 MB/s, and the piece of now");
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
