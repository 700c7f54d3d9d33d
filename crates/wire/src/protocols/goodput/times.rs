//! The deadlines of the protocol. A table in `docs/protocol.md` explains each.

use std::time::{Duration, Instant};

use crate::patience;

/// From the connection to the end of the greeting.
pub const GREETING_TIMEOUT: Duration = patience::GREETING_TIMEOUT;

/// How long to wait for more bytes of a foreign greeting, so that it can be named.
pub const FOREIGN_TAIL_TIME: Duration = Duration::from_millis(500);

/// From a plan to its acceptance or refusal.
pub const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

/// From the acceptance to all data connections. A server that reports also looks at its host within this time.
pub const FLOWS_TIMEOUT: Duration = Duration::from_secs(10);

/// From all data connections to the first payload: the time for both ends' first observations.
pub const BEGIN_TIMEOUT: Duration = Duration::from_secs(15);

/// Longest time from the latest end of the payload to a side's own report: receivers empty their queues and flush to
/// disk, which takes minutes for gigabytes.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(1800);

/// Longest time from a side's own report to the peer's: a report crosses a path of 100 kbit/s in seconds, unless
/// payload is ahead of it.
pub const REPORTS_TIMEOUT: Duration = Duration::from_secs(300);

/// How much longer the client waits than the server, to receive the server's reason.
pub const GRACE_TIME: Duration = Duration::from_secs(3);

/// From one measurement or setting to the next.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// From a question about a setting to its answer.
pub const SETTING_TIMEOUT: Duration = Duration::from_secs(60);

/// A side that has sent nothing for this long sends a ping.
pub const PING_INTERVAL: Duration = Duration::from_secs(5);

/// A peer that has sent nothing for this long is gone.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);

/// Longest duration a plan may have, seconds: 30 days.
pub const MAX_PLAN_S: f64 = 30.0 * 86_400.0;

/// The instant `seconds` after `from`; a peer's number is capped at the longest duration of a plan.
pub(crate) fn after_s(from: Instant, seconds: f64) -> Instant {
    let seconds = if seconds.is_nan() { 0.0 } else { seconds.clamp(0.0, MAX_PLAN_S) };
    from + Duration::from_secs_f64(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::origin;

    #[test]
    fn no_number_overflows_an_instant() {
        let now = origin();
        for seconds in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, f64::MAX] {
            assert!(after_s(now, seconds) >= now);
        }
        assert_eq!(after_s(now, 1.5), now + Duration::from_millis(1500));
    }
}
