//! The clocks of this end: the time of day for the greeting, and the monotonic clock for its samples.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use goodput_model::OwnClock;
use goodput_mover::monotonic_ns;
use goodput_wire::session::HostClock;

/// The time of day. A clock before 1970 counts as 1970.
pub fn host_clock() -> HostClock {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = Instant::now();
    HostClock {
        at,
        unix_us: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
        monotonic_ns: Some(monotonic_ns_of(at)),
    }
}

/// The clock of this end, whose samples count from `began`.
pub fn own(began: Instant) -> OwnClock {
    OwnClock { began_ns: monotonic_ns_of(began), kernel: kernel() }
}

/// The value of `CLOCK_MONOTONIC` at an instant, which uses the same clock but hides its value.
pub fn monotonic_ns_of(at: Instant) -> u64 {
    // The tightest of three reads: either may be interrupted.
    let reads = (0..3).map(|_| (Instant::now(), monotonic_ns(), Instant::now()));
    let tightest = reads.min_by_key(|(before, _, after)| *after - *before);
    tightest.map_or(0, |(before, ns, _)| {
        let elapsed = u64::try_from(before.saturating_duration_since(at).as_nanos());
        ns.saturating_sub(elapsed.unwrap_or(u64::MAX))
    })
}

/// Identifies the clock of this kernel and time namespace. A kernel without time namespaces (before Linux 5.6) has a
/// single clock.
fn kernel() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::metadata("/proc/self/ns/time").map_or(0, |namespace| namespace.ino());
    Some(format!("{} {namespace}", boot.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_what_the_clock_read_then() {
        let (before, at) = (monotonic_ns(), Instant::now());
        let read = monotonic_ns_of(at);
        assert!((before..=monotonic_ns()).contains(&read));
    }
}
