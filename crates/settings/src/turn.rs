//! One run at a time changes a network namespace: a second one would measure the first one's changes.
//!
//! A run's journal shows that the run is at work: it is locked as long as the run lives, even if the run is killed. A run
//! that changes this host by SSH has a process here.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::by_ssh;
use crate::error::SettingError;
use crate::journal::{self, Asker, JournalFile};
use crate::place::Place;

/// How long a run waits for another one: setting a value takes less.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The right to change this network namespace, for a run that changes and puts back several times. [`crate::Changes`]
/// of the same process may begin meanwhile. Dropping it releases the right.
#[derive(Debug)]
pub struct Turn(JournalFile);

impl Turn {
    /// Takes the right for the network namespace of this thread, with a journal in `state_dir` that stays empty.
    ///
    /// # Errors
    /// If the journal can't be written, or another run is at work here.
    pub fn take(state_dir: &Path) -> Result<Self, SettingError> {
        take(state_dir, &Place::here()?, Asker::User).map(Self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // An empty journal does no harm.
        let _ = self.0.close();
    }
}

/// The journal, or an error and no journal if a run changes this host by SSH.
fn alone(journal: JournalFile, place: &Place) -> Result<JournalFile, SettingError> {
    let Some(pid) = by_ssh::at_work(place) else { return Ok(journal) };
    // An empty journal does no harm.
    let _ = journal.close();
    Err(SettingError::Busy { pid })
}

/// A journal in `state_dir`, as soon as no other run is at work in `place`.
pub(crate) fn take(
    state_dir: &Path,
    place: &Place,
    asker: Asker,
) -> Result<JournalFile, SettingError> {
    let patience = if asker == Asker::User { TURN_TIMEOUT } else { Duration::ZERO };
    let began = Instant::now();
    loop {
        let begun = journal::begin(state_dir, place, asker);
        match begun.and_then(|journal| alone(journal, place)) {
            Err(SettingError::Busy { .. }) if began.elapsed() < patience => sleep(POLL_INTERVAL),
            other => return other,
        }
    }
}
