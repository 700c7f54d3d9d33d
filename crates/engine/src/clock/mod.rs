//! The time of day here, for the greeting, and how the far end's differs; and the monotonic clocks of
//! both ends, by which samples count.

mod compared;
mod exchanges;
mod pings;
#[cfg(test)]
mod simulated;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use goodput_model::Snapshot;
use goodput_wire::session::{ClockOffset, HostClock};

pub use compared::{Comparing, conclude, own};
pub use pings::{PINGS, Pings};

/// Offset that is worth a word, microseconds: records and logs of both hosts no longer line up.
const WORTH_A_WORD_US: f64 = 1e6;

/// What time it is. A clock before 1970 is taken for one at 1970.
pub fn host_clock() -> HostClock {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = Instant::now();
    HostClock {
        at,
        unix_us: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
        monotonic_ns: Some(compared::monotonic_ns_of(at)),
    }
}

/// Notes the offset among the near end's facts.
pub fn note(facts: &mut Snapshot, clock: Option<ClockOffset>) {
    match clock {
        Some(ClockOffset { ahead_us, uncertainty_us }) => {
            facts.put("clock.far_ahead_us", ahead_us);
            facts.put("clock.uncertainty_us", uncertainty_us);
        }
        None => facts.lacks("clock", "the far end did not tell the time"),
    }
}

/// A doubt about clocks that are far apart.
pub fn doubt(clock: Option<ClockOffset>) -> Option<String> {
    let ClockOffset { ahead_us, uncertainty_us } = clock?;
    let surely = ahead_us.abs() - uncertainty_us;
    let which = if ahead_us > 0.0 { "ahead of" } else { "behind" };
    (surely > WORTH_A_WORD_US).then(|| {
        format!("the far host's clock is {:.1} s {which} this one's", ahead_us.abs() / 1e6)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clocks_surely_apart_are_worth_a_word() {
        let of = |ahead_us, uncertainty_us| doubt(Some(ClockOffset { ahead_us, uncertainty_us }));
        assert_eq!(of(-3.2e6, 5e4).unwrap(), "the far host's clock is 3.2 s behind this one's");
        assert_eq!(of(1.2e6, 5e5), None);
        assert_eq!(doubt(None), None);
    }
}
