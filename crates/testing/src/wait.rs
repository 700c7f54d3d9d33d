//! Waits for a condition, not for a time.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long anything may take: longer than on the slowest usable machine. Only a failing test waits this long.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(300);

/// Shortest time between two checks. A check that takes longer is followed by a pause as long as itself: waiting leaves
/// the machine to what is waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Waits until `holds` does.
///
/// # Panics
///
/// If it does not within [`WAIT_TIMEOUT`]; `what` describes the missing condition.
#[track_caller]
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        let began = Instant::now();
        if holds() {
            return;
        }
        let now = Instant::now();
        assert!(now < deadline, "waited {WAIT_TIMEOUT:?} in vain: {what}");
        sleep((now - began).max(POLL_INTERVAL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_as_soon_as_the_condition_holds() {
        let mut looks = 0;
        wait_for("three looks", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }
}
