//! How far the outcomes of a turn are printed, on the bus: whoever takes over prints only what is new since.

use std::cell::{Cell, RefCell};

use goodput_bus::{BusError, Keys};
use goodput_fleet::places::PRINTED;
use serde::{Deserialize, Serialize};

/// What is printed.
pub(in crate::commands::fleet) struct Printed<'a> {
    turns: &'a Keys,
    /// The turn that this coordinator is in.
    turn: RefCell<String>,
    /// Outcomes that were stored up to this time were printed by an earlier coordinator.
    before_s: Cell<f64>,
    /// The newest outcome that is printed.
    until_s: Cell<f64>,
}

/// What the key has.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Mark {
    /// The id of the turn.
    turn: String,
    /// Its outcomes that were stored up to this time are printed, seconds since 1970, by the clock of the bus.
    until_s: f64,
}

impl<'a> Printed<'a> {
    /// Nothing yet, of a turn that is in this bucket.
    pub fn new(turns: &'a Keys) -> Self {
        let (before_s, until_s) = (Cell::new(f64::MIN), Cell::new(f64::MIN));
        Self { turns, turn: RefCell::default(), before_s, until_s }
    }

    /// This turn begins, or goes on.
    ///
    /// # Errors
    /// The bus does not say what is printed of it.
    pub async fn begin(&self, turn: &str) -> Result<(), BusError> {
        let found = self.turns.entry(PRINTED).await?;
        let until_s = found.and_then(|entry| until(&entry.value, turn)).unwrap_or(f64::MIN);
        self.turn.replace(turn.to_owned());
        self.before_s.set(until_s);
        self.until_s.set(until_s);
        Ok(())
    }

    /// Whether an earlier coordinator has printed an outcome that was stored then.
    pub fn was_before(&self, stored_s: f64) -> bool {
        stored_s <= self.before_s.get()
    }

    /// Notes that an outcome is printed that was stored then. If the bus does not take it, a successor prints it again.
    pub async fn note(&self, stored_s: f64) {
        if stored_s <= self.until_s.get() {
            return;
        }
        self.until_s.set(stored_s);
        let mark = Mark { turn: self.turn.borrow().clone(), until_s: stored_s };
        if let Err(why) = self.turns.put(PRINTED, &mark).await {
            tracing::debug!("{why}");
        }
    }
}

/// Up to when the outcomes of this turn are printed, as the key says.
fn until(value: &[u8], turn: &str) -> Option<f64> {
    let mark: Mark = serde_json::from_slice(value).ok()?;
    (mark.turn == turn && mark.until_s.is_finite()).then_some(mark.until_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_that_of_the_same_turn_and_garbage_says_nothing() {
        let mark = Mark { turn: "t".into(), until_s: 1000.5 };
        let json = serde_json::to_vec(&mark).unwrap();
        assert_eq!(until(&json, "t"), Some(1000.5));
        assert_eq!(until(&json, "u"), None);
        for garbage in [&b"poison"[..], b"", b"7", b"{}", b"{\"turn\":\"t\",\"until_s\":null}"] {
            assert_eq!(until(garbage, "t"), None);
        }
    }
}
