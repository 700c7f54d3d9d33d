//! The only way to change the machine.

mod watched;

use std::collections::BTreeSet;
use std::path::Path;

use goodput_model::{EndName, SettingRef};

use crate::became::Became;
use crate::beside;
use crate::error::SettingError;
use crate::guard::GuardProgram;
use crate::held::Patience;
use crate::journal::{Asker, Contents, Durable, Entry, JournalContents, Line, claim};
use crate::log::{self, ChangeKind};
use crate::lookup::{find, machine};
use crate::machine::device;
use crate::place::Place;
use crate::restore::{Forget, RestoreReport, bring_back, settle_contents};
use crate::saved::{self, SaveError, SavedFile};
use crate::setting::{Assignment, Machine};
use crate::side_effects::{self, Cells};
use crate::turn::{self, AtWork};
use crate::undo::settle_before;
use watched::AllWatched;

/// Changes of this machine that are put back together: by [`Changes::restore`], by dropping, or by
/// the guard if this process is killed.
///
/// All of them belong to the network namespace of the thread that began them.
#[derive(Debug)]
pub struct Changes {
    place: Place,
    contents: Contents,
    watched: AllWatched,
    became: Became,
    settled: Vec<RestoreReport>,
    /// `None` once everything is put back or kept.
    open: Option<AtWork>,
}

impl Changes {
    /// Opens a journal in `state_dir` and starts the guard, if no other run changes this network namespace; waits
    /// a moment for another run, and up to 30 s for the guard of a dead one. First puts back what dead runs left changed,
    /// according to the journals there; changes nothing else yet.
    ///
    /// # Errors
    /// When the journal can't be written, the guard does not start, another run or the guard of a dead one is at work here,
    /// or the journal of a dead run can't be read.
    pub fn begin(state_dir: &Path, guard: GuardProgram) -> Result<Self, SettingError> {
        Self::begin_for(Asker::User, state_dir, guard)
    }

    /// The same, on behalf of `asker`. Only a user's run waits for others.
    pub(crate) fn begin_for(
        asker: Asker,
        state_dir: &Path,
        guard: GuardProgram,
    ) -> Result<Self, SettingError> {
        let place = Place::here()?;
        let settled = settle_before(state_dir, Patience::NONE)?;
        if let Some(objection) = settled.iter().find_map(RestoreReport::objection) {
            return Err(objection);
        }
        let open = turn::take(state_dir, &place, asker, &guard)?;
        // Who owns the changes and where they belong also counts for putting back.
        let contents = open.journal.text().says.clone();
        let (watched, became) = Default::default();
        Ok(Self { place, contents, watched, became, settled, open: Some(open) })
    }

    /// Makes `value` the effective value of a setting of this host and returns what was read back: the kernel may have
    /// made another number of it. If a setting is changed several times, its original is the value before the first
    /// change. A value that is in effect already is written once more only if that starts something
    /// anew, like a bucket that is full again, and these changes have touched the setting before.
    ///
    /// # Errors
    /// When the value is invalid, a privilege is missing, the journal can't be written, the guard
    /// is dead, someone else changed the setting since, or the value is not in effect. The setting then has its original
    /// or its previous value, and is still put back.
    pub fn apply(&mut self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        // Whoever asked, the change is on this host.
        let setting = SettingRef { end: EndName::Near, ..setting.clone() };
        find(&setting.name)?;
        let machine = machine(&setting)?;
        self.check(machine, &setting)?;
        let wanted = machine.normalise(&setting, value)?;
        let known = self.contents.entries.iter().position(|e| e.setting == setting);
        let Some(open) = &self.open else { return Err(SettingError::Closed(setting)) };
        // Held until the effects of the change are noted, so that nobody else's change passes for ours or
        // for the original.
        let claim = claim(open.journal.path(), &self.place, machine, &setting)?;
        let now = machine.read(&setting)?;
        match known {
            Some(known) => still_ours(machine, &self.contents.entries[known], &now)?,
            None => machine.comes_back(&setting)?,
        }
        self.watched.add(&setting, &now, machine.capture(&setting)?);
        if now == wanted || self.became.last(&setting, &wanted) == Some(&now) {
            if let Some(known) = known.filter(|_| machine.starts_anew()) {
                write_once_more(machine, &self.contents.entries[known], &wanted)?;
            }
            return Ok(now);
        }
        if self.original(&setting) != Some(wanted.as_str()) {
            machine.check_new(&setting, value, &[])?;
        }
        let view = View { machine, setting: &setting, theirs: &claim.theirs };
        let noted = view.look(now)?;
        let index = self.note(&setting, known, &noted, &wanted)?;
        #[cfg(test)]
        crate::testing::noted();
        let around = self.look_again(index, &view, &noted)?;
        let effective = self.write(&view, index, &wanted, &around)?;
        if let Some(open) = &self.open {
            log::enter(open.journal.path(), &setting, [&noted.value, &effective], ChangeKind::Set);
        }
        Ok(effective)
    }

    /// Writes files that keep these values after a reboot, and returns them. Values that are saved already stay. `program` is
    /// goodput, for the unit that sets at boot what no other file can keep. Like the values themselves, the files are put
    /// back unless they are kept: the journal has them before they are written.
    ///
    /// # Errors
    /// If a value can't be kept by a file of ours, or a file or the journal can't be written. No file has changed then.
    pub fn save(
        &mut self,
        assignments: &[Assignment],
        program: &Path,
    ) -> Result<Vec<SavedFile>, SaveError> {
        assignments.iter().try_for_each(|(setting, _)| saved::check_savable(setting))?;
        self.save_below(Path::new("/"), assignments, program)
    }

    /// The same below another root.
    pub(crate) fn save_below(
        &mut self,
        root: &Path,
        assignments: &[Assignment],
        program: &Path,
    ) -> Result<Vec<SavedFile>, SaveError> {
        if let (None, Some((setting, _))) = (&self.open, assignments.first()) {
            return Err(SettingError::Closed(setting.clone()).into());
        }
        saved::save_below(root, assignments, program, |written| {
            self.append(Line::Writes(written.clone()), Durable::Yes)
        })
    }

    /// Puts everything back, the last change first, and closes the journal. What can't be put back
    /// stays in the journal for the guard and for [`crate::undo()`].
    pub fn restore(&mut self) -> RestoreReport {
        match self.open.take() {
            Some(mut open) => {
                let report = settle_contents(&mut open.journal, &self.contents, Forget::Nothing);
                if !report.is_clean() {
                    open.hand_over();
                }
                report
            }
            None => RestoreReport::empty(Default::default()),
        }
    }

    /// Leaves everything as it is now and closes the journal.
    ///
    /// # Errors
    /// When the journal can't be removed; everything is then put back.
    pub fn keep(mut self) -> Result<(), SettingError> {
        if let Some(open) = &self.open {
            open.journal.close()?;
        }
        self.open = None;
        Ok(())
    }

    /// The changes of dead runs that were put back before these changes began.
    pub fn settled(&self) -> &[RestoreReport] {
        &self.settled
    }

    /// The value of a setting before these changes touched it; `None` for a setting that was never applied.
    pub(crate) fn original(&self, setting: &SettingRef) -> Option<&str> {
        let entry = self.contents.entries.iter().find(|entry| entry.setting == *setting);
        let watched = || self.watched.first(setting);
        entry.map(|entry| entry.original.as_str()).or_else(watched)
    }

    /// Process id of the guard, for messages. `None` once everything is put back or kept.
    pub fn guard_pid(&self) -> Option<u32> {
        self.open.as_ref().and_then(|open| open.guard.pid())
    }

    /// Checks that a change would be put back whatever happens.
    fn check(&mut self, machine: &dyn Machine, setting: &SettingRef) -> Result<(), SettingError> {
        let Some(open) = &mut self.open else {
            return Err(SettingError::Closed(setting.clone()));
        };
        open.guard.check()?;
        if machine.namespaced(setting) && Place::here()? != self.place {
            return Err(SettingError::OtherNamespace(setting.clone()));
        }
        Ok(())
    }

    /// Notes on disk what is about to change; returns the entry's index.
    fn note(
        &mut self,
        setting: &SettingRef,
        known: Option<usize>,
        noted: &Seen,
        to: &str,
    ) -> Result<usize, SettingError> {
        let (original, exact, around) = match known.map(|index| &self.contents.entries[index]) {
            Some(entry) => {
                let around = side_effects::changed(&entry.before, &noted.around);
                (entry.original.clone(), entry.exact.clone(), around)
            }
            None => {
                let around = side_effects::changed(&Cells::new(), &noted.around);
                match self.watched.before(setting, &noted.value) {
                    Some(before) => (before.value.clone(), before.exact.clone(), around),
                    None => (noted.value.clone(), noted.exact.clone(), around),
                }
            }
        };
        let link = match known {
            Some(index) => self.contents.entries[index].link,
            None => device::link_of(setting),
        };
        let rounded = self.became.last(setting, to).cloned();
        let (setting, to) = (setting.clone(), to.into());
        let line = Line::Intent { setting, original, exact, to, rounded, around, link };
        self.append(line, Durable::Yes)?;
        Ok(known.unwrap_or(self.contents.entries.len() - 1))
    }

    /// Checks again just before the change: writing the intent to disk takes long enough for
    /// others to change something, and such a change is theirs.
    fn look_again(
        &mut self,
        index: usize,
        view: &View<'_>,
        noted: &Seen,
    ) -> Result<Cells, SettingError> {
        let found = view.look(view.machine.read(view.setting)?)?;
        let setting = view.setting.clone();
        if !view.machine.same(&found.exact, &noted.exact) {
            let first = self.contents.entries[index].ours.len() == 1;
            let (of, value) = (setting.clone(), noted.value.clone());
            let undone = match first {
                true => Line::Settled { setting: of },
                false => {
                    let (around, beside) = Default::default();
                    Line::Effective { setting: of, value, around, beside }
                }
            };
            self.append(undone, Durable::No)?;
            let (now, ours) = (found.value, noted.value.clone());
            return Err(SettingError::ChangedByOther { setting, now, ours });
        }
        let around = side_effects::changed(&noted.around, &found.around);
        if !around.is_empty() {
            // A reboot undoes all of this anyway, so it may lose this line.
            self.append(Line::Found { setting, around }, Durable::No)?;
        }
        Ok(found.around)
    }

    /// Writes and reads back; puts the original back if anything goes wrong.
    fn write(
        &mut self,
        view: &View<'_>,
        index: usize,
        wanted: &str,
        around: &Cells,
    ) -> Result<String, SettingError> {
        let entry = self.contents.entries[index].clone();
        self.write_and_verify(view, &entry, wanted, around).map_err(|error| {
            match (error, bring_back(view.machine, &self.contents, &entry, |_| {})) {
                (SettingError::NotEffective { setting, asked, effective, .. }, Err(error)) => {
                    let not_back = Some(Box::new(error));
                    SettingError::NotEffective { setting, asked, effective, not_back }
                }
                // If writing failed, putting back fails for the same reason.
                (error, _) => error,
            }
        })
    }

    fn write_and_verify(
        &mut self,
        view: &View<'_>,
        entry: &Entry,
        wanted: &str,
        around: &Cells,
    ) -> Result<String, SettingError> {
        let (machine, setting) = (view.machine, view.setting);
        let beside = beside::values(self.watched.settings(), machine, setting);
        // An arm with the original value is the original state, down to what `read` rounds.
        let written = match wanted == entry.original {
            // The intent is noted already.
            true => everything_back(machine, &self.contents, entry),
            false => machine.write(setting, wanted),
        };
        #[cfg(test)]
        crate::testing::step();
        let effective = machine.read(setting)?;
        let around = side_effects::changed(around, &view.around()?);
        // A reboot undoes all of these settings anyway, so it may lose this line.
        let (of, value) = (setting.clone(), effective.clone());
        let beside = beside::altered(&beside);
        self.watched.drag(&beside);
        self.append(Line::Effective { setting: of, value, around, beside }, Durable::No)?;
        written?;
        if wanted == entry.original && !machine.same(&effective, wanted) {
            // The original was in effect before: another number is no rounding of it.
            let (setting, asked) = (setting.clone(), wanted.into());
            return Err(SettingError::NotEffective { setting, asked, effective, not_back: None });
        }
        self.became.read_back(setting, wanted, effective)
    }

    fn append(&mut self, line: Line, durable: Durable) -> Result<(), SettingError> {
        if let Some(open) = &mut self.open {
            open.journal.append(&line, durable)?;
        }
        self.contents.add(line);
        Ok(())
    }
}

/// Writes a value that is in effect and that the journal has already: neither the value nor what is put back changes.
fn write_once_more(machine: &dyn Machine, entry: &Entry, wanted: &str) -> Result<(), SettingError> {
    // The exact original, down to what `read` rounds.
    let value = if wanted == entry.original { entry.exact.as_str() } else { wanted };
    machine.write(&entry.setting, value)
}

/// What is visible of a setting and around it, except changes by other runs.
struct View<'a> {
    machine: &'a dyn Machine,
    setting: &'a SettingRef,
    theirs: &'a BTreeSet<String>,
}

/// What was seen at one moment.
struct Seen {
    value: String,
    /// The same with everything needed to restore it exactly.
    exact: String,
    around: Cells,
}

impl View<'_> {
    fn look(&self, value: String) -> Result<Seen, SettingError> {
        let around = self.around()?;
        Ok(Seen { value, exact: self.machine.capture(self.setting)?, around })
    }

    fn around(&self) -> Result<Cells, SettingError> {
        let mut cells = side_effects::capture(self.setting, &self.machine.footprint(self.setting))?;
        cells.retain(|name, _| !self.theirs.contains(name));
        Ok(cells)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        // What could not be put back is still in the journal, and the guard reports it.
        self.restore();
    }
}

/// Restores the value and its surroundings as they were before the first change, except what other settings of the
/// run hold. The intent is noted.
fn everything_back(
    machine: &dyn Machine,
    contents: &Contents,
    entry: &Entry,
) -> Result<(), SettingError> {
    // Nothing was cut short.
    let entry = Entry { doubt: None, ..entry.clone() };
    let left = bring_back(machine, contents, &entry, |_| {})?.left;
    if left.is_empty() {
        return Ok(());
    }
    Err(SettingError::SideEffects { setting: entry.setting, left: left.join("; ") })
}

/// Refuses to touch a setting that someone else has changed since we did.
fn still_ours(machine: &dyn Machine, entry: &Entry, now: &str) -> Result<(), SettingError> {
    if entry.known_values().any(|value| machine.same(value, now)) {
        return Ok(());
    }
    Err(SettingError::ChangedByOther {
        setting: entry.setting.clone(),
        now: now.into(),
        ours: entry.ours.last().cloned().unwrap_or_default(),
    })
}

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
