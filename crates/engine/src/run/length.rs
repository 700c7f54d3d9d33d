//! The longest time that a measurement may take.

use std::time::Duration;

use goodput_model::{Length, Plan};

/// The longest time that payload moves; a plan of bytes ends on its own or when the peer gives up.
pub fn longest(plan: &Plan) -> Option<Duration> {
    let seconds = match plan.length {
        Length::Seconds(seconds) => seconds,
        Length::Auto { max_s, .. } => max_s,
        Length::Bytes(_) | Length::Source => return None,
    };
    Duration::try_from_secs_f64(seconds + plan.omit_s).ok()
}
