//! How much a peer may send on a control connection: reports in one burst, samples steadily, no flood.

use std::time::Instant;

use crate::error::WireError;

/// Bytes a second that a peer may send steadily while a measurement is in progress: ten times the samples of any
/// measurement. The sampler samples about a hundred flows a second.
pub(super) const BYTES_PER_S: usize = 2 * 1024 * 1024;

/// Bytes a second while no measurement is in progress: questions about settings, and pings.
pub(super) const QUIET_BYTES_PER_S: usize = 64 * 1024;

/// Burst while no measurement is in progress, bytes.
const QUIET_BURST_BYTES: usize = 4 * QUIET_BYTES_PER_S;

/// Samples that pile up on a stalled path until a silent peer is given up.
const MAX_STALLED_BYTES: usize = 4 * 1024 * 1024;

/// A token bucket: what the peer may still send.
pub(super) struct Allowance {
    left: f64,
    at: Instant,
    per_s: usize,
    burst: usize,
}

impl Allowance {
    /// The allowance of an unauthenticated client.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            left: QUIET_BURST_BYTES as f64,
            at: now,
            per_s: QUIET_BYTES_PER_S,
            burst: QUIET_BURST_BYTES,
        }
    }

    /// No measurement is in progress.
    pub(super) fn quiet(&mut self) {
        (self.per_s, self.burst) = (QUIET_BYTES_PER_S, QUIET_BURST_BYTES);
        self.left = self.left.min(QUIET_BURST_BYTES as f64);
    }

    /// A measurement is in progress, whose longest message has `longest` bytes. The message may be a zlib stream, and
    /// then counts twice.
    pub(super) fn measuring(&mut self, longest: usize) {
        (self.per_s, self.burst) = (BYTES_PER_S, 2 * longest + MAX_STALLED_BYTES);
        self.left = self.burst as f64;
    }

    /// The peer may send so many bytes more at once, until the measurement ends.
    pub(super) fn add_burst(&mut self, bytes: usize) {
        self.burst += bytes;
        self.left += bytes as f64;
    }

    /// Takes out `bytes`, which arrived just now.
    pub(super) fn take(&mut self, now: Instant, bytes: usize) -> Result<(), WireError> {
        let filled = now.saturating_duration_since(self.at).as_secs_f64() * self.per_s as f64;
        self.left = (self.left + filled).min(self.burst as f64) - bytes as f64;
        self.at = now;
        if self.left < 0.0 {
            let kib = self.per_s / 1024;
            return Err(WireError::Protocol(format!("more than {kib} KiB a second of messages")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::origin;
    use std::time::Duration;

    #[test]
    fn a_report_fits_at_once_and_a_flood_does_not() {
        let mut allowance = Allowance::new(origin());
        allowance.measuring(1 << 20);
        assert_eq!(allowance.take(origin(), 2 << 20), Ok(()));
        assert_eq!(allowance.take(origin(), MAX_STALLED_BYTES), Ok(()));
        assert!(allowance.take(origin(), 1).is_err());
    }

    #[test]
    fn a_client_without_credential_has_little_before_a_measurement_and_after_it() {
        let mut allowance = Allowance::new(origin());
        assert_eq!(allowance.take(origin(), QUIET_BURST_BYTES), Ok(()));
        assert!(allowance.take(origin(), 1).is_err());
        allowance.measuring(1 << 20);
        allowance.quiet();
        assert!(allowance.take(origin(), QUIET_BURST_BYTES + 1).is_err());
    }

    #[test]
    fn a_capture_adds_to_the_burst_of_one_measurement() {
        let mut allowance = Allowance::new(origin());
        allowance.measuring(1 << 20);
        allowance.add_burst(1 << 20);
        assert_eq!(allowance.take(origin(), (3 << 20) + MAX_STALLED_BYTES), Ok(()));
        assert!(allowance.take(origin(), 1).is_err());
        allowance.quiet();
        assert!(allowance.take(origin(), QUIET_BURST_BYTES + 1).is_err());
    }

    #[test]
    fn it_fills_with_time_and_never_over_its_brim() {
        let mut allowance = Allowance::new(origin());
        let later = |s| origin() + Duration::from_secs(s);
        for second in 1..1000 {
            assert_eq!(allowance.take(later(second), QUIET_BYTES_PER_S), Ok(()));
        }
        assert!(allowance.take(later(9999), QUIET_BURST_BYTES + 1).is_err());
    }
}
