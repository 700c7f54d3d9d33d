//! Journals that are held by a live run, or by the guard of a dead one.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use goodput_model::SettingRef;

use crate::error::{self, SettingError};
use crate::holder::Holder;
use crate::journal::{Contents, Entry, JournalFile, open_one};
use crate::leftover;
use crate::lookup::machine;
use crate::place::Place;
use crate::restore::{self, Outcome, RestoreReport, Restored};
use crate::settle::{self, UndoRequest};
use crate::written::{FileOutcome, TakenBack};

/// Longest time that a guard may take: a device that resets needs seconds to come back.
pub(crate) const GUARD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Time after which the waiting person is notified.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

/// How long a caller waits for others that hold journals, for all journals together.
#[derive(Debug, Clone)]
pub struct Patience {
    longest: Duration,
    /// When the first wait began.
    began: Option<Instant>,
    /// Is called for a journal that is waited for longer than a moment.
    notify: fn(&Awaited),
    notified: Option<PathBuf>,
}

/// A journal that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// Where it is.
    pub journal: PathBuf,
    /// The settings that are being put back.
    pub settings: Vec<SettingRef>,
    /// The files that are being put back.
    pub files: Vec<String>,
    /// Longest wait.
    pub longest: Duration,
}

impl std::fmt::Display for Awaited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = self.settings.iter().map(ToString::to_string);
        let all: Vec<_> = settings.chain(self.files.iter().cloned()).collect();
        let does = match all.is_empty() {
            true => "has nothing left to put back".into(),
            false => format!("puts {} back", all.join(", ")),
        };
        write!(
            f,
            "waiting for the guard of an earlier run, which {does} (at most {} s; journal {})",
            self.longest.as_secs(),
            self.journal.display()
        )
    }
}

impl Patience {
    /// Waits for nobody, for callers that others wait for.
    pub const NONE: Self =
        Self { longest: Duration::ZERO, began: None, notify: |_| {}, notified: None };

    /// Waits as long as a guard may take (30 s), for a person who asked for the changes. If a wait takes more than a
    /// second, `notify` is called once per journal with what is awaited.
    pub fn for_a_guard(notify: fn(&Awaited)) -> Self {
        Self { longest: GUARD_TIMEOUT, notify, ..Self::NONE }
    }

    /// Waits a moment for the holder of a journal, unless all patience is spent.
    fn wait(&mut self, path: &Path, contents: &Contents) -> bool {
        let waited = self.began.get_or_insert_with(Instant::now).elapsed();
        if waited >= self.longest {
            return false;
        }
        if waited >= NOTICE_DELAY && self.notified.as_deref() != Some(path) {
            let settings = contents.entries.iter().map(|entry| entry.setting.clone()).collect();
            let files = contents.written.iter().flat_map(|written| &written.files);
            let files = files.map(|file| file.path.display().to_string()).collect();
            let (journal, longest) = (path.into(), self.longest);
            (self.notify)(&Awaited { journal, settings, files, longest });
            self.notified = Some(path.into());
        }
        #[cfg(test)]
        crate::testing::waiting();
        sleep(POLL_INTERVAL);
        true
    }
}

/// Waits until the guard of a dead run has released a journal, settles what the guard left, and returns the
/// outcome. `None`: the journal was empty.
///
/// # Errors
/// If somebody holds the lock of the journal's directory for too long.
pub(crate) fn settle(
    path: &Path,
    request: UndoRequest,
    patience: &mut Patience,
) -> Result<Option<RestoreReport>, SettingError> {
    let mut first: Option<Contents> = None;
    let mut holder = Holder::Unknown { run: 0 };
    loop {
        match JournalFile::peek(path) {
            Ok(None) => return Ok(first.map(|contents| by_guard(path, &contents))),
            Ok(Some((text, false))) => {
                first.get_or_insert(text.says);
                match open_one(path) {
                    Ok(Some(journal)) => return Ok(Some(settle::settle(journal, request))),
                    Ok(None) => {}
                    Err(cause) => return unopened(path, &cause).map(Some),
                }
            }
            Ok(Some((text, true))) => {
                let contents = text.says;
                holder = contents.holder();
                match holder {
                    Holder::Run { pid } => return Ok(Some(in_use(path, &contents, pid))),
                    Holder::RunElsewhere { .. } => {
                        return Ok(Some(held_by(path, &contents, holder)));
                    }
                    Holder::PuttingBack { .. } | Holder::Unknown { .. } => {}
                }
                // Later its guard has removed some of it.
                first.get_or_insert(contents);
            }
            Err(cause) => return unopened(path, &cause).map(Some),
        }
        let Some(held) = first.as_ref() else { return Ok(None) };
        if !patience.wait(path, held) {
            return Ok(Some(held_by(path, held, holder)));
        }
    }
}

/// The report on a journal that can't be opened. If that is for a lock which somebody holds, nothing is wrong with the
/// journal.
pub(crate) fn unopened(path: &Path, cause: &io::Error) -> Result<RestoreReport, SettingError> {
    let lock = error::of_lock(cause);
    lock.map_or_else(|| Ok(RestoreReport::unopened(path.into(), cause)), Err)
}

/// What someone else is working on.
fn held_by(path: &Path, contents: &Contents, holder: Holder) -> RestoreReport {
    let files = contents.files(|_| FileOutcome::Held(holder));
    report(path, contents, files, |_| Outcome::Held(holder))
}

/// What a live run has changed, here and in other network namespaces.
fn in_use(path: &Path, contents: &Contents, pid: u32) -> RestoreReport {
    let here = Place::here().ok();
    let elsewhere = here.map(|here| leftover::elsewhere(contents, &here)).unwrap_or_default();
    let files = contents.files(|_| FileOutcome::InUse { pid });
    report(path, contents, files, |entry| match elsewhere.contains(&entry.setting) {
        true => Outcome::InUseElsewhere { pid },
        false => Outcome::InUse { pid },
    })
}

/// What a guard has done with a journal that it has closed.
fn by_guard(path: &Path, contents: &Contents) -> RestoreReport {
    let here = Place::here().ok();
    let place = contents.owner.as_ref().map(|owner| &owner.place);
    let is_here = here.zip(place).is_some_and(|(here, place)| here.same_namespace(place));
    let files = contents.files(|file| match file.is_back() {
        true => FileOutcome::ByGuard,
        false => FileOutcome::ChangedByOther,
    });
    report(path, contents, files, |entry| {
        let back = Outcome::ByGuard { to: entry.original.clone() };
        // In other places there is nothing to compare with.
        match machine(&entry.setting) {
            Ok(machine) if is_here => match machine.read(&entry.setting) {
                Ok(now) if machine.same(&entry.original, &now) => back,
                Ok(now) => Outcome::ChangedByOther { now, ours: restore::last(entry) },
                Err(SettingError::Gone { what, .. }) => Outcome::gone(&what),
                Err(error) => {
                    Outcome::ChangedByOther { now: error.to_string(), ours: restore::last(entry) }
                }
            },
            _ => back,
        }
    })
}

/// One outcome per change, the last change first, and those of `files`.
fn report(
    path: &Path,
    contents: &Contents,
    files: Vec<TakenBack>,
    outcome: impl Fn(&Entry) -> Outcome,
) -> RestoreReport {
    let entries = contents.entries.iter().rev();
    let entries = entries
        .map(|entry| Restored { setting: entry.setting.clone(), outcome: outcome(entry) })
        .collect();
    RestoreReport { entries, files, ..RestoreReport::empty(path.into()) }
}
