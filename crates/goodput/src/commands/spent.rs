//! What tests cost, in the history: so the budget holds over restarts, whether a test had a result, failed, or was ended
//! with the watch or the agent itself.

use goodput_model::Bytes;
use goodput_store::{Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::commands::measured;
use crate::screen;

/// A day of the budget.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A running test, which is in the history with what it may cost.
pub struct Note {
    target: String,
    started: String,
    /// Its number; none if the history could not be written.
    number: Option<i64>,
}

impl Note {
    /// Notes that a test of `target` begins, which may cost `most`. If the watch is killed, this is what it has spent.
    pub fn begin(store: &Store, target: &str, most: Bytes) -> Self {
        let started = measured::now();
        let number = store.spend(target, &started, most.0).ok();
        Self { target: target.into(), started, number }
    }

    /// The same, for whoever counts by the history alone.
    ///
    /// # Errors
    /// The history can't be written.
    pub fn kept(store: &Store, target: &str, most: Bytes) -> Result<Self, StoreError> {
        let started = measured::now();
        let number = Some(store.spend(target, &started, most.0)?);
        Ok(Self { target: target.into(), started, number })
    }

    /// Notes what the test did cost. A full disk must not end the watch: it may have room again for the next test.
    pub fn settle(self, store: &Store, bytes: Bytes) {
        let noted = match self.number {
            Some(number) => store.settle(number, bytes.0),
            None => store.spend(&self.target, &self.started, bytes.0).map(drop),
        };
        if let Err(why) = noted {
            let Self { target, .. } = self;
            screen::say(format_args!(
                "goodput: {target}: after a restart, the budget won't count the {bytes} of this test: {why}"
            ));
        }
    }
}

/// How long ago the tests of `target` in the last 24 hours were, in seconds, and what each cost. One from the future, by a
/// clock that was set back, counts as new.
///
/// # Errors
/// The history can't be read.
pub fn of_last_day(store: &Store, target: &str) -> Result<Vec<(f64, Bytes)>, StoreError> {
    let now = Timestamp::now();
    let from = now.saturating_sub(DAY).map(|from| from.to_string()).unwrap_or_default();
    let spent = store.spent(target, &from)?.into_iter().map(|(started, bytes)| {
        let age = started.parse::<Timestamp>().map(|at| now.duration_since(at).as_secs_f64());
        (age.unwrap_or_default().max(0.0), Bytes(bytes))
    });
    Ok(spent.collect())
}
