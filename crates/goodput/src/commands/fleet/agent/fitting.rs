//! An outcome that fits into one message of the bus.

use std::borrow::Cow;

use goodput_fleet::{End, Outcome};
use goodput_store::read_record;
use serde_json::{Result, to_value, to_vec};

use crate::commands::fleet::saving::thin::thin;

/// The outcome in at most `room` bytes of JSON: a record loses detail step by step. One that is too long without any becomes
/// a reason, in the words of the agent at `site`.
pub(super) fn fitting<'a>(
    outcome: &'a Outcome,
    room: usize,
    site: &str,
) -> Result<Cow<'a, Outcome>> {
    let bytes = to_vec(outcome)?.len();
    if bytes <= room {
        return Ok(Cow::Borrowed(outcome));
    }
    let short = thinned(outcome, room)?.unwrap_or_else(|| {
        let why = format!(
            "the record has {bytes} bytes, and without its detail still more than NATS takes (max_payload); it is in the \
             history of {site}"
        );
        Outcome { end: End::Reason(why), ..outcome.clone() }
    });
    Ok(Cow::Owned(short))
}

/// With as much detail as there is room for; none if there is not enough.
fn thinned(outcome: &Outcome, room: usize) -> Result<Option<Outcome>> {
    let End::Record(json) = &outcome.end else { return Ok(None) };
    let Ok(mut record) = read_record(&json.to_string()) else { return Ok(None) };
    while thin(&mut record) {
        let short = Outcome { end: End::Record(to_value(&record)?), ..outcome.clone() };
        if to_vec(&short)?.len() <= room {
            return Ok(Some(short));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fleet::saving::thin::tests::detailed;

    fn length(outcome: &Outcome) -> usize {
        to_vec(outcome).unwrap().len()
    }

    #[test]
    fn a_record_keeps_as_much_detail_as_a_message_has_room_for() {
        let record = detailed();
        let whole = Outcome::new("t", "a", End::Record(to_value(&record).unwrap()));
        assert_eq!(*fitting(&whole, length(&whole), "a").unwrap(), whole);
        let mut rooms = 0;
        let mut room = length(&whole) - 1;
        while let End::Record(json) = fitting(&whole, room, "a").unwrap().into_owned().end {
            let short = read_record(&json.to_string()).unwrap();
            assert!(short.thinned.is_some(), "it says that it was thinned");
            assert_eq!(short.result, record.result);
            let taken = length(&Outcome::new("t", "a", End::Record(json)));
            assert!(taken <= room, "{taken} of {room}");
            (room, rooms) = (taken - 1, rooms + 1);
        }
        assert!(rooms > 3, "{rooms}");
        let End::Reason(why) = fitting(&whole, room, "a").unwrap().into_owned().end else {
            panic!("there is no room for a record")
        };
        assert!(why.contains("max_payload") && why.ends_with("the history of a"), "{why}");
    }
}
