//! What the coordinator says of the room that outcomes have at NATS.

use std::cell::Cell;

use goodput_bus::{Outcomes, Room};
use goodput_fleet::span;
use goodput_model::Bytes;

use crate::commands::fleet::places::OUTCOMES_BYTES;
use crate::screen;

/// Whether it was said what is wrong with the room, which still is.
#[derive(Default)]
pub(in crate::commands::fleet) struct OutcomesRoom {
    is_said: Cell<bool>,
}

impl OutcomesRoom {
    /// Looks, at `now_s` seconds since 1970 by the clock of the bus, and says it once if the oldest go, or if there is no bound.
    pub async fn look(&self, outcomes: &Outcomes, now_s: f64) {
        match outcomes.room().await {
            Ok(room) => {
                let why = in_words(outcomes.name(), room, now_s);
                if let Some(why) = self.unless_said(why) {
                    screen::say(format_args!("goodput: {why}"));
                }
            }
            Err(why) => tracing::debug!("{why}"),
        }
    }

    /// What is to be said, unless it was said. Once there is room again, it may be said again.
    fn unless_said(&self, why: Option<String>) -> Option<String> {
        let was_said = self.is_said.replace(why.is_some());
        why.filter(|_| !was_said)
    }
}

/// What there is to say of this room.
fn in_words(stream: &str, room: Room, now_s: f64) -> Option<String> {
    let Some(most) = room.most_bytes else {
        return Some(format!(
            "the outcomes at NATS have no bound (stream {stream}, as an older goodput made it, or because the server had no room to \
             reserve): they take up to a week of tests. For a bound: nats stream edit {stream} --max-bytes {OUTCOMES_BYTES}"
        ));
    };
    if !room.is_full() {
        return None;
    }
    let age = span((now_s - room.oldest_s).max(0.0).round());
    Some(format!(
        "the outcomes at NATS have filled their room ({}, stream {stream}), so the oldest go after {age}; the histories have their \
         records. For more room: nats stream edit {stream} --max-bytes {}",
        Bytes(most),
        most.saturating_mul(4)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_that_go_early_are_said_with_what_to_do() {
        let room = |bytes| Room { bytes, most_bytes: Some(1000), oldest_s: 1000.0 };
        assert_eq!(in_words("S", room(800), 9000.0), None);
        let said = in_words("S", room(990), 1000.0 + 7200.0).unwrap();
        assert!(said.contains("(1 kB, stream S)") && said.contains("after 2 h"), "{said}");
        assert!(said.ends_with("nats stream edit S --max-bytes 4000"), "{said}");
        let unbounded = Room { most_bytes: None, ..room(0) };
        let said = in_words("S", unbounded, 0.0).unwrap();
        assert!(said.ends_with("nats stream edit S --max-bytes 1073741824"), "{said}");
    }

    #[test]
    fn it_is_said_once_until_there_was_room_again() {
        let room = OutcomesRoom::default();
        let full = || Some("full".to_owned());
        let said =
            [full(), full(), None, full(), full()].map(|why| room.unless_said(why).is_some());
        assert_eq!(said, [true, false, false, true, false]);
    }
}
