//! How much is read from a peer in a second: a peer that sends more is read later.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use goodput_mover::{Saved, SharedRate, monotonic_ns};

/// Bytes of control connections a second. A measurement takes about 50 kB of them; the fastest
/// conversation that is itself a measurement (iperf 2's bounceback) takes about 2 MB.
const BYTES_PER_S: f64 = 8.0 * 1024.0 * 1024.0;

/// Bytes at once: what clients of one address may have sent while this host was busy.
const BURST_BYTES: f64 = 2.0 * BYTES_PER_S;

/// How much a client may still send: a bucket that fills with time.
pub struct Budget(Mutex<Bucket>);

struct Bucket {
    left: f64,
    at: Instant,
}

impl Budget {
    /// A full budget.
    pub fn new(now: Instant) -> Self {
        Self(Mutex::new(Bucket { left: BURST_BYTES, at: now }))
    }

    /// Counts received bytes.
    pub fn heard(&self, now: Instant, bytes: usize) {
        self.bucket(now, |bucket| bucket.left -= bytes as f64);
    }

    /// When the client is read again, if that is later than now.
    pub fn full_until(&self, now: Instant) -> Option<Instant> {
        let lacks = self.bucket(now, |bucket| -bucket.left);
        (lacks > 0.0).then(|| now + Duration::from_secs_f64(lacks / BYTES_PER_S))
    }

    fn bucket<T>(&self, now: Instant, with: impl FnOnce(&mut Bucket) -> T) -> T {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let filled = now.saturating_duration_since(bucket.at).as_secs_f64() * BYTES_PER_S;
        *bucket = Bucket { left: (bucket.left + filled).min(BURST_BYTES), at: now.max(bucket.at) };
        with(&mut bucket)
    }
}

/// The rates that limit a conversation in one direction, which flows may share.
#[derive(Default)]
pub struct ConversationPace {
    rates: Vec<Arc<SharedRate>>,
    /// When more may move, nanoseconds of the monotonic clock.
    next_ns: u64,
}

impl ConversationPace {
    /// The pace of these rates.
    pub fn at(rates: Vec<Arc<SharedRate>>) -> Self {
        Self { rates, next_ns: 0 }
    }

    /// Counts moved bytes.
    pub fn moved(&mut self, bytes: usize) {
        let next = self.rates.iter().map(|rate| {
            rate.take_turn(bytes, Saved::Stall);
            rate.take_turn(0, Saved::Stall)
        });
        self.next_ns = next.max().unwrap_or(0);
    }

    /// When more may move, if that is later than now.
    pub fn full_until(&self, now: Instant) -> Option<Instant> {
        let wait = self.next_ns.saturating_sub(monotonic_ns());
        (wait > 0).then(|| now + Duration::from_nanos(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::BitRate;

    #[test]
    fn who_says_too_much_is_heard_later() {
        let now = Instant::now();
        let budget = Budget::new(now);
        budget.heard(now, BURST_BYTES as usize);
        assert_eq!(budget.full_until(now), None);
        budget.heard(now, BYTES_PER_S as usize / 2);
        let again = budget.full_until(now).expect("it said more than it may");
        assert_eq!(again - now, Duration::from_millis(500));
        assert_eq!(budget.full_until(again), None);
        budget.heard(now + Duration::from_secs(3600), BURST_BYTES as usize + 1);
        assert!(
            budget.full_until(now + Duration::from_secs(3600)).is_some(),
            "no more than a burst"
        );
    }

    #[test]
    fn who_has_moved_much_waits_as_long_as_that_takes_at_the_rate() {
        let shared = SharedRate::new(BitRate(8e6)).map(Arc::new).expect("a rate");
        let mut pace = ConversationPace::at(vec![Arc::clone(&shared)]);
        let now = Instant::now();
        assert_eq!(pace.full_until(now), None);
        pace.moved(3_600_000_000);
        let until = pace.full_until(Instant::now()).expect("an hour at 1 MB/s");
        assert!(until > now + Duration::from_secs(3000));
        assert!(
            shared.take_turn(1, Saved::Stall) > monotonic_ns(),
            "flows of the same rate wait as well"
        );
    }
}
