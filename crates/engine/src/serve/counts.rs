//! What the server did, as counts for its operator. They say nothing of single clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use goodput_model::Sample;

/// Counts since the server began.
#[derive(Debug, Default)]
pub struct Counts {
    clients: AtomicU64,
    conversations: AtomicU64,
    measurements: AtomicU64,
    refused: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Conversations that go on.
    pub clients: u64,
    /// Conversations that began.
    pub conversations: u64,
    /// Measurements that ended with a result.
    pub measurements: u64,
    /// Connections and measurements that the server turned away.
    pub refused: u64,
    /// Payload bytes that arrived, also of measurements that were broken off.
    pub received_bytes: u64,
    /// Payload bytes that were sent, also of measurements that were broken off.
    pub sent_bytes: u64,
}

/// A conversation that goes on, until it is dropped.
pub(super) struct Conversing(Arc<Counts>);

/// The payload of a measurement that is counted already.
#[derive(Debug, Default)]
pub(super) struct Moved {
    received_bytes: u64,
    sent_bytes: u64,
}

impl Counts {
    /// The present counts.
    pub fn read(&self) -> Counted {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted {
            clients: now(&self.clients),
            conversations: now(&self.conversations),
            measurements: now(&self.measurements),
            refused: now(&self.refused),
            received_bytes: now(&self.received_bytes),
            sent_bytes: now(&self.sent_bytes),
        }
    }

    /// A conversation begins.
    pub(super) fn converse(self: &Arc<Self>) -> Conversing {
        self.clients.fetch_add(1, Ordering::Relaxed);
        self.conversations.fetch_add(1, Ordering::Relaxed);
        Conversing(Arc::clone(self))
    }

    /// A client was turned away.
    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A measurement has a result.
    pub(super) fn measure(&self) {
        self.measurements.fetch_add(1, Ordering::Relaxed);
    }

    /// A measurement has moved what the sample counts, of which `before` is counted already.
    pub(super) fn count(&self, sample: &Sample, before: &mut Moved) {
        let received = sample.received_bytes.saturating_sub(before.received_bytes);
        let sent = sample.sent_bytes.saturating_sub(before.sent_bytes);
        self.received_bytes.fetch_add(received, Ordering::Relaxed);
        self.sent_bytes.fetch_add(sent, Ordering::Relaxed);
        before.received_bytes += received;
        before.sent_bytes += sent;
    }
}

impl Drop for Conversing {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_counts_once_and_a_client_until_it_leaves() {
        let (counts, mut moved) = (Arc::new(Counts::default()), Moved::default());
        let sample = |received_bytes, sent_bytes| Sample {
            at_s: 0.0,
            sent_bytes,
            received_bytes,
            flows: Vec::new(),
        };
        let here = counts.converse();
        counts.count(&sample(100, 0), &mut moved);
        counts.count(&sample(150, 7), &mut moved);
        let now = counts.read();
        assert_eq!((now.received_bytes, now.sent_bytes, now.clients), (150, 7, 1));
        drop(here);
        assert_eq!((counts.read().clients, counts.read().conversations), (0, 1));
    }
}
