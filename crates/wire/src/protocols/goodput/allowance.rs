//! How much a peer may say on a control connection: reports at once, samples steadily, no flood.

use std::time::Instant;

use super::channel::MEASURING_MAX;
use crate::error::WireError;

/// Bytes a second that a peer may send for long: ten times what the samples of any measurement
/// come to, of which the sampler takes about a hundred flows a second.
pub(super) const BYTES_PER_S: usize = 2 * 1024 * 1024;

/// Bytes at once: the longest report, and what has collected on a path that stalled.
const BURST: usize = 2 * MEASURING_MAX;

/// What is left of it: a bucket that fills with time.
pub(super) struct Allowance {
    left: f64,
    at: Instant,
}

impl Allowance {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: BURST as f64, at: now }
    }

    /// Takes `bytes` out, which have come now.
    pub(super) fn take(&mut self, now: Instant, bytes: usize) -> Result<(), WireError> {
        let filled = now.saturating_duration_since(self.at).as_secs_f64() * BYTES_PER_S as f64;
        self.left = (self.left + filled).min(BURST as f64) - bytes as f64;
        self.at = now;
        if self.left < 0.0 {
            let mib = BYTES_PER_S / (1024 * 1024);
            return Err(WireError::Protocol(format!("more than {mib} MiB a second of messages")));
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
        assert_eq!(allowance.take(origin(), BURST), Ok(()));
        assert!(allowance.take(origin(), 1).is_err());
    }

    #[test]
    fn it_fills_with_time_and_never_over_its_brim() {
        let mut allowance = Allowance::new(origin());
        let later = |s| origin() + Duration::from_secs(s);
        for second in 1..1000 {
            assert_eq!(allowance.take(later(second), BYTES_PER_S), Ok(()));
        }
        assert!(allowance.take(later(9999), BURST + 1).is_err());
    }
}
