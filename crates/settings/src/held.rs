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
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until the guard of a dead run has let go of a journal, and says what became of it; what the
/// guard leaves is settled here. `None`: there was nothing in it.
pub(crate) fn settle(path: &Path, forget: Forget) -> Option<RestoreReport> {
    let until = Instant::now() + PATIENCE;
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
                let pid = contents.owner.as_ref().map(|owner| owner.pid);
                if let Some(pid) = pid.filter(|pid| life::runs(*pid)) {
                    return Some(report(path, &contents, |_| Outcome::InUse { pid }));
                }
                // Later its guard has taken some of it off.
                first.get_or_insert(contents);
            }
            Err(cause) => return Some(unopened(path.into(), &cause)),
        }
        if Instant::now() > until {
            let why = "its guard, or a run that can't be seen from here, is still at work on it; \
                       run `goodput settings undo` again";
            return Some(report(path, &first?, |_| Outcome::Failed(why.into())));
        }
        #[cfg(test)]
        crate::testing::waiting();
        sleep(LOOK);
    }
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
