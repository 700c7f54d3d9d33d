//! When a measurement's awaited data connections have taken too long.

use std::time::Duration;

use tokio::time::Instant;

/// How long a flow may take to arrive if only its address identifies it: another session of the
/// same client waits for it.
const RESERVED_FLOW_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the next flow may take, even if its protocol would allow more: places are kept for all flows meanwhile. A
/// connection whose first three packets are lost takes 7 s (`TCP_TIMEOUT_INIT`, include/net/tcp.h).
const NEXT_FLOW_TIMEOUT: Duration = Duration::from_secs(15);
/// How much each arrived flow extends the time for all: clients connect one flow after the other, and a handshake takes
/// a round trip, up to a second on long paths. So a client that connects its flows as slowly as possible keeps a place
/// for [`NEXT_FLOW_TIMEOUT`] and a second for each flow.
const ALLOWANCE_PER_FLOW: Duration = Duration::from_secs(1);

/// How long the next flow may take.
fn patience(reserved: bool) -> Duration {
    if reserved { RESERVED_FLOW_TIMEOUT } else { NEXT_FLOW_TIMEOUT }
}

/// When flows that are awaited `since` have taken too long, if `came` are there and the last came `now`.
pub fn until(since: Instant, came: usize, reserved: bool, now: Instant) -> Instant {
    let came = u32::try_from(came).unwrap_or(u32::MAX);
    (now + patience(reserved)).min(since + NEXT_FLOW_TIMEOUT + ALLOWANCE_PER_FLOW * came)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When `flows` are given up if one comes after each `pause`.
    fn given_up(flows: u32, pause: Duration) -> (Duration, u32) {
        let since = Instant::now();
        let (mut now, mut end) = (since, until(since, 0, false, since));
        for came in 1..=flows {
            now += pause;
            if now > end {
                return (end - since, came - 1);
            }
            end = until(since, came as usize, false, now);
        }
        (now - since, flows)
    }

    #[test]
    fn many_flows_on_a_long_path_have_the_time_that_they_take_and_a_trickle_has_not() {
        let took = given_up(128, Duration::from_millis(600));
        assert_eq!(took, (Duration::from_millis(76_800), 128), "over a satellite");
        assert_eq!(given_up(128, Duration::from_secs(14)), (Duration::from_secs(16), 1));
        let (kept, came) = given_up(1000, Duration::from_secs(2));
        assert!(kept < Duration::from_secs(32) && came < 16, "{kept:?} {came}");
        assert_eq!(given_up(1, Duration::from_secs(16)), (NEXT_FLOW_TIMEOUT, 0));
        let since = Instant::now();
        assert_eq!(
            until(since, 100, false, since) - since,
            NEXT_FLOW_TIMEOUT,
            "after the last one"
        );
    }
}
