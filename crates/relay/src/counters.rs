//! Counters of one direction of the relay.

use std::sync::atomic::{AtomicU64, Ordering};

/// Largest error of a delay that counts as exact, nanoseconds.
pub const EXACT_BELOW_NS: u64 = 100_000;

/// Packets of one direction since the relay began; a super-packet counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Delivered.
    pub forwarded: u64,
    /// Dropped because the queue was full.
    pub queue_drops: u64,
    /// Lost at random or because of their size, as requested.
    pub lost: u64,
    /// Delivered with a congestion mark.
    pub marked: u64,
    /// Delivered more than [`EXACT_BELOW_NS`] late: how often the emulation was not exact, because the machine was too
    /// busy.
    pub late: u64,
    /// Refused by the receiving kernel, for example while its device is down.
    pub refused: u64,
}

/// The counters that the relay's thread writes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    forwarded: AtomicU64,
    queue_drops: AtomicU64,
    lost: AtomicU64,
    marked: AtomicU64,
    late: AtomicU64,
    refused: AtomicU64,
}

impl Tally {
    pub(super) fn forwarded(&self, late_by_ns: u64) {
        self.forwarded.fetch_add(1, Ordering::Relaxed);
        if late_by_ns > EXACT_BELOW_NS {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn queue_dropped(&self) {
        self.queue_drops.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn marked(&self) {
        self.marked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            forwarded: read(&self.forwarded),
            queue_drops: read(&self.queue_drops),
            lost: read(&self.lost),
            marked: read(&self.marked),
            late: read(&self.late),
            refused: read(&self.refused),
        }
    }
}
