//! Journals that somebody holds: a run that lives, or the guard of one that died.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::journal::{Contents, Entry, JournalFile, open_one};
use crate::life;
use crate::lookup::machine;
use crate::place::Place;
use crate::restore::{self, Forget, Outcome, RestoreReport, Restored};
use crate::undo::unopened;

/// How long a guard may take: a device that resets takes seconds to come back.
const GUARD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How long a caller waits for others that hold journals, for all journals together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    longest: Duration,
    /// When it ends; it begins with the first wait.
    until: Option<Instant>,
}

impl Patience {
    /// Waits for nobody, for callers that others wait for.
    pub const NONE: Self = Self { longest: Duration::ZERO, until: None };
    /// Waits as long as a guard may take (30 s), for a person who asked for it.
    pub const FOR_A_GUARD: Self = Self { longest: GUARD_TIMEOUT, until: None };

    /// Waits a moment, unless all patience is spent.
    fn wait(&mut self) -> bool {
        let now = Instant::now();
        if now >= *self.until.get_or_insert(now + self.longest) {
            return false;
        }
        #[cfg(test)]
        crate::testing::waiting();
        sleep(POLL_INTERVAL);
        true
    }
}

/// Waits until the guard of a dead run has let go of a journal, and says what became of it; what the
/// guard leaves is settled here. `None`: there was nothing in it.
pub(crate) fn settle(
    path: &Path,
    forget: Forget,
    patience: &mut Patience,
) -> Option<RestoreReport> {
    let mut first: Option<Contents> = None;
    loop {
        match JournalFile::peek(path) {
            Ok(None) => return first.map(|contents| by_guard(path, &contents)),
            Ok(Some((contents, false))) => {
                first.get_or_insert(contents);
                match open_one(path) {
                    Ok(Some(journal)) => return Some(restore::settle(journal, forget)),
                    Ok(None) => {}
                    Err(cause) => return Some(unopened(path.into(), &cause)),
                }
            }
            Ok(Some((contents, true))) => {
                if let Some(pid) = live_owner(&contents) {
                    return Some(report(path, &contents, |_| Outcome::InUse { pid }));
                }
                // Later its guard has taken some of it off.
                first.get_or_insert(contents);
            }
            Err(cause) => return Some(unopened(path.into(), &cause)),
        }
        if !patience.wait() {
            return Some(report(path, &first?, |_| Outcome::Held));
        }
    }
}

/// The process of the run that wrote a journal, if it can be seen to live.
fn live_owner(contents: &Contents) -> Option<u32> {
    let pid = contents.owner.as_ref().map(|owner| owner.pid);
    pid.filter(|pid| life::runs(*pid))
}

/// What a guard has made of a journal that it has closed.
fn by_guard(path: &Path, contents: &Contents) -> RestoreReport {
    let here = Place::here().ok();
    let place = contents.owner.as_ref().map(|owner| &owner.place);
    let is_here = here.zip(place).is_some_and(|(here, place)| here.same_namespace(place));
    report(path, contents, |entry| {
        let back = Outcome::ByGuard { to: entry.original.clone() };
        // Elsewhere there is nothing to compare with.
        match machine(&entry.setting) {
            Ok(machine) if is_here => match machine.read(&entry.setting) {
                Ok(now) if machine.same(&entry.original, &now) => back,
                Ok(now) => Outcome::ChangedByOther { now, ours: restore::last(entry) },
                Err(error) => {
                    Outcome::ChangedByOther { now: error.to_string(), ours: restore::last(entry) }
                }
            },
            _ => back,
        }
    })
}

/// One outcome for each change, the last change first.
fn report(path: &Path, contents: &Contents, outcome: impl Fn(&Entry) -> Outcome) -> RestoreReport {
    let entries = contents.entries.iter().rev();
    let entries = entries
        .map(|entry| Restored { setting: entry.setting.clone(), outcome: outcome(entry) })
        .collect();
    RestoreReport { journal: path.into(), entries, problem: None }
}
