//! One run at a time changes a network namespace: a second one would measure the first one's changes.
//!
//! Nor does a run begin while the guard of a dead one puts back: the guard would take its changes for what came along with
//! the dead run's.
//!
//! Two things show that a run is at work. Its journal is locked as long as the run lives, even if the run is killed: other
//! runs of this user see that. Its guard is a process that a run by SSH sees, and a run that changes this host by SSH has
//! a process here as well.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::by_ssh;
use crate::error::SettingError;
use crate::guard::{Guard, GuardProgram};
use crate::held::GUARD_TIMEOUT;
use crate::journal::{self, Asker, Durable, JournalFile, Line, TakenOver};
use crate::place::Place;
use crate::process::ProcessMark;

/// How long a run waits for another one: setting a value takes less.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A run at work. The fields are dropped in this order: the guard must find the journal's lock free.
#[derive(Debug)]
pub(crate) struct AtWork {
    pub(crate) journal: JournalFile,
    pub(crate) guard: Guard,
}

impl AtWork {
    /// Notes that from now on the guard puts back what is left: others see that this run is over, even if its process lives.
    /// The guard notes the same, so nothing is lost if this fails.
    pub(crate) fn hand_over(&mut self) {
        if let Some(pid) = self.guard.pid() {
            let guard = TakenOver { pid, process: ProcessMark::of(pid) };
            let _ = self.journal.append(&Line::TakenOver(guard), Durable::No);
        }
    }
}

/// The right to change this network namespace, for a run that changes and puts back several times. [`crate::Changes`]
/// of the same process may begin meanwhile. Dropping it releases the right.
#[derive(Debug)]
pub struct Turn(AtWork);

impl Turn {
    /// Takes the right for the network namespace of this thread, with a journal in `state_dir` that stays empty.
    ///
    /// # Errors
    /// If the journal can't be written, the guard does not start, or another run or the guard of a dead one is at work
    /// here.
    pub fn take(state_dir: &Path, guard: &GuardProgram) -> Result<Self, SettingError> {
        take(state_dir, &Place::here()?, Asker::User, guard).map(Self)
    }

    /// Process id of its guard.
    #[cfg(test)]
    pub(crate) fn guard_pid(&self) -> Option<u32> {
        self.0.guard.pid()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // An empty journal does no harm.
        let _ = self.0.journal.close();
    }
}

/// Begins a run in `place`, as soon as no other run and no guard is at work there. Only a user waits for that: others may
/// wait for the server that changes something for its client.
pub(crate) fn take(
    state_dir: &Path,
    place: &Place,
    asker: Asker,
    guard: &GuardProgram,
) -> Result<AtWork, SettingError> {
    let began = Instant::now();
    let mut guard_gone = began;
    loop {
        let begun = begin(state_dir, place, asker, guard);
        let waits = match &begun {
            Err(SettingError::GuardAtWork { .. } | SettingError::PutsBackBySsh { .. }) => {
                guard_gone = Instant::now();
                began.elapsed() < GUARD_TIMEOUT
            }
            Err(SettingError::Busy { .. } | SettingError::BusyElsewhere { .. }) => {
                guard_gone.elapsed() < TURN_TIMEOUT
            }
            _ => false,
        };
        if !waits || asker != Asker::User {
            return begun;
        }
        #[cfg(test)]
        crate::testing::waiting();
        sleep(POLL_INTERVAL);
    }
}

fn begin(
    state_dir: &Path,
    place: &Place,
    asker: Asker,
    guard: &GuardProgram,
) -> Result<AtWork, SettingError> {
    by_ssh::refuse(place)?;
    let journal = journal::begin(state_dir, place, asker)?;
    let guarded = Guard::spawn(guard, journal.path()).and_then(|guard| {
        // A run by SSH starts its process, and then looks for guards. So one of two that begin at once sees the other.
        by_ssh::refuse(place).map(|()| guard)
    });
    match guarded {
        Ok(guard) => Ok(AtWork { journal, guard }),
        Err(error) => {
            // Report the first failure; an empty journal does no harm.
            let _ = journal.close();
            Err(error)
        }
    }
}
