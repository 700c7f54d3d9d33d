//! Changes of a host reached by SSH. Before anything is changed, the original is in the journal on this host and with
//! the dead-man on the other one.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use goodput_model::SettingRef;
use goodput_settings::{
    Assignment, Became, ChangeKind, Outcome, RestoreReport, SettingError, log_change_at,
};

use crate::address::Address;
use crate::command::Command;
use crate::counters::Counters;
use crate::entry::{Cell, Entry, originals};
use crate::error::RemoteError;
use crate::host::{Host, its_own};
use crate::journal::{Contents, Journal, Line, Owner};
use crate::look::Look;
use crate::one_host;
use crate::polling::PollingRates;
use crate::put_back::put_back;
use crate::saved::{self, SavedThere};
use crate::script::script;
use crate::shell::Shell;
use crate::ssh::{Access, DeadMan, Session};
use crate::undo::{
    RemoteReport, await_dead_man, check_hold, finish, refuse_others, restored, undo_at,
};

/// How long a change that could cut the connection may go unconfirmed, seconds, on a host that answers quickly.
const CONFIRM_S: u32 = 10;
/// The same on a host that answers slowly, in times of what opening it took: a confirmation logs in once more and runs
/// about as many commands.
const CONFIRM_OPENINGS: u32 = 5;

/// Bytes that cross the connection in both directions to confirm a change: several full segments of any MTU.
const CHECK_BYTES: usize = 48 << 10;

/// How often the surroundings of a setting are noted again if others change them meanwhile.
const MAX_NOTE_ATTEMPTS: u32 = 3;

/// The values of every entry: its own, then its surroundings. `None`: it can't be read.
type Values = Vec<Vec<Option<String>>>;

/// Changes of one host that are put back together: by [`RemoteChanges::restore`], by dropping, or by the host itself
/// when the session ends.
pub struct RemoteChanges {
    host: Host,
    settled: Vec<RemoteReport>,
    entries: Vec<Entry>,
    /// Values that the connection has survived.
    confirmed: HashSet<(SettingRef, String)>,
    /// Values that the host's kernel would take after others, as far as that is known.
    checked: HashSet<(SettingRef, String, Vec<Assignment>)>,
    became: Became,
    /// `None` once everything is put back or kept.
    open: Option<Open>,
}

struct Open {
    journal: Journal,
    dead_man: DeadMan,
}

impl RemoteChanges {
    /// Logs in, puts back what dead runs left changed there by the journals in `state_dir`, and starts the dead-man.
    ///
    /// # Errors
    /// When there is no login, another goodput is changing the host, what a dead run left can't be put back, or the
    /// journal can't be written.
    pub fn begin(
        state_dir: &Path,
        address: &Address,
        access: &Access,
    ) -> Result<Self, RemoteError> {
        Self::begin_held(state_dir, address, access, None, [])
    }

    /// The same at a host that this run holds by a process there, and that must be none of the `others`.
    pub(crate) fn begin_held<'a>(
        state_dir: &Path,
        address: &Address,
        access: &Access,
        held_by: Option<u32>,
        others: impl IntoIterator<Item = &'a mut Self>,
    ) -> Result<Self, RemoteError> {
        let mut host = Host::open(address, access)?;
        for other in others {
            one_host::refuse(&mut other.host, &mut host)?;
        }
        host.held_by = held_by;
        Self::after_dead_runs(host, state_dir)
    }

    /// The process there that puts back; `None` if everything is put back or kept.
    pub(crate) fn dead_man(&self) -> Option<u32> {
        self.open.as_ref().map(|open| open.dead_man.pid)
    }

    /// Puts back what dead runs left changed, and begins only if nothing is left.
    fn after_dead_runs(mut host: Host, state_dir: &Path) -> Result<Self, RemoteError> {
        let settled = undo_at(state_dir, &mut host);
        match settled.iter().find_map(RemoteReport::objection) {
            Some(objection) => Err(objection),
            None => Self::at(host, state_dir, settled),
        }
    }

    fn at(
        mut host: Host,
        state_dir: &Path,
        settled: Vec<RemoteReport>,
    ) -> Result<Self, RemoteError> {
        let dead_man = DeadMan::start(&mut host.session)?;
        // Checked once ours is there: of two that begin at the same time, at least one sees the other.
        refuse_others(&mut host, dead_man.pid)?;
        check_hold(&mut host)?;
        let journal = Journal::create(state_dir, |format, pid| Owner {
            format,
            pid,
            host: host.address.to_string(),
            access: host.access.clone(),
            identity: host.identity.clone(),
            machine: host.machine.clone(),
            dead_man: dead_man.pid,
        })?;
        let (entries, confirmed, checked, became) = Default::default();
        let open = Some(Open { journal, dead_man });
        Ok(Self { host, settled, entries, confirmed, checked, became, open })
    }

    /// The changes of dead runs that were put back before these changes began.
    pub fn settled(&self) -> &[RemoteReport] {
        &self.settled
    }

    /// The host's system, as it calls itself.
    pub fn system(&self) -> &'static str {
        self.host.system.name()
    }

    /// The host's counts since its start, including those of `device` if it is named.
    ///
    /// # Errors
    /// When the connection is lost, and every change with it.
    pub fn counters(&mut self, device: Option<&str>) -> Result<Counters, RemoteError> {
        self.host.system.counters(&mut self.host.session, device)
    }

    /// How the host polls `device`; `None` if it takes interrupts.
    ///
    /// # Errors
    /// When the connection is lost, or what the host prints is not understood.
    pub fn polling(&mut self, device: &str) -> Result<Option<PollingRates>, RemoteError> {
        self.host.system.polling(&mut self.host.session, device)
    }

    /// Refuses values that [`RemoteChanges::apply`] would refuse one after the other, as far as that is known without a
    /// change. What can't be read now is not judged: another change may bring it.
    ///
    /// # Errors
    /// When a value is invalid, or the connection is lost.
    pub fn check(&mut self, arm: &[Assignment]) -> Result<(), RemoteError> {
        let arm = all_its_own(arm)?;
        for (place, (setting, value)) in arm.iter().enumerate() {
            match self.usable(setting, value, &arm[..place]) {
                Err(bad @ RemoteError::Setting(SettingError::BadValue { .. })) => return Err(bad),
                Err(lost @ RemoteError::Lost { .. }) => return Err(lost),
                _ => {}
            }
        }
        Ok(())
    }

    fn usable(
        &mut self,
        setting: &SettingRef,
        value: &str,
        earlier: &[Assignment],
    ) -> Result<(), RemoteError> {
        let system = self.host.system;
        let mut look = Look::new(&mut self.host.session);
        let wanted = system.normalise(&mut look, setting, value)?;
        let now = system.read(&mut look, setting)?;
        if now == wanted { Ok(()) } else { self.check_new(setting, value, earlier) }
    }

    /// Asks the system about each value once: a trial may take a while there.
    fn check_new(
        &mut self,
        setting: &SettingRef,
        value: &str,
        earlier: &[Assignment],
    ) -> Result<(), RemoteError> {
        let new = (setting.clone(), value.to_owned(), earlier.to_vec());
        if !self.checked.contains(&new) {
            self.host.system.check_new(&mut self.host.session, setting, value, earlier)?;
            self.checked.insert(new);
        }
        Ok(())
    }

    /// Makes `value` the effective value of a setting of the host and returns what was read back: the kernel may have
    /// made another number of it. If a setting is changed several times, its original is the value before the first
    /// change.
    ///
    /// # Errors
    /// When the value is invalid, a privilege is missing, the journal can't be written, someone else changed the
    /// setting since, the change cuts the connection, or the value is not in effect. The setting then has its original
    /// value, or the host puts it back.
    pub fn apply(&mut self, setting: &SettingRef, value: &str) -> Result<String, RemoteError> {
        let setting = its_own(setting)?;
        let system = self.host.system;
        let mut look = Look::new(&mut self.host.session);
        let wanted = system.normalise(&mut look, &setting, value)?;
        let now = system.read(&mut look, &setting)?;
        let known = self.entries.iter().position(|entry| entry.main.setting == setting);
        match known {
            Some(known) => still_ours(&self.entries[known].main, &now)?,
            None => system.comes_back(&mut look, &setting)?,
        }
        if now == wanted || self.became.last(&setting, &wanted) == Some(&now) {
            return Ok(now);
        }
        if known.is_none_or(|known| self.entries[known].main.original != wanted) {
            self.check_new(&setting, value, &[])?;
        }
        let index = match known {
            Some(index) => index,
            None => self.find_around(&setting)?,
        };
        let before = self.note(index, &wanted)?;
        let changed = self.change(index, &now, &wanted, &before);
        let effective = changed.inspect_err(|_| self.take_back(index, &before))?;
        if let Some(open) = &self.open {
            let host = self.host.address.to_string();
            let values = [&*now, &effective];
            log_change_at(&host, open.journal.path(), &setting, values, ChangeKind::Set);
        }
        Ok(effective)
    }

    /// Puts everything back, the last change first. What can't be put back stays in the journal.
    pub fn restore(&mut self) -> RemoteReport {
        let host = self.host.address.to_string();
        let Some(mut open) = self.open.take() else {
            return RemoteReport { host, report: RestoreReport::empty(Default::default()) };
        };
        let dead_man = open.dead_man.pid;
        // A lost session has made the dead-man put back; check again what it did.
        let reached = match self.entries.is_empty() || self.host.session.answers() {
            true => Ok(()),
            false => self.host.again().and_then(|session| {
                self.host.session = session;
                await_dead_man(&mut self.host, dead_man)
            }),
        };
        let outcomes = match &reached {
            Ok(()) => put_back(self.host.system, &mut self.host.session, &self.entries),
            Err(error) => vec![Outcome::Failed(error.to_string()); self.entries.len()],
        };
        let restored = restored(&self.entries, outcomes);
        let contents = Contents { entries: self.entries.clone(), ..Contents::default() };
        let report = finish(&host, &mut open.journal, &contents, restored);
        // It does nothing more if everything is back, and tries the rest otherwise.
        self.host.session.end();
        report
    }

    /// Refuses settings that no file of the host is about, before they are changed.
    ///
    /// # Errors
    /// With the reason, and what to do.
    pub fn check_savable(
        &mut self,
        assignments: &[(SettingRef, String)],
    ) -> Result<(), RemoteError> {
        saved::check(self.host.system, &mut self.host.session, &all_its_own(assignments)?)
    }

    /// Refuses what [`Self::save`] would refuse before it writes.
    ///
    /// # Errors
    /// With the reason, and what to do.
    pub fn check_would_save(
        &mut self,
        assignments: &[(SettingRef, String)],
    ) -> Result<(), RemoteError> {
        let all = all_its_own(assignments)?;
        saved::check_would_save(self.host.system, &mut self.host.session, &all)
    }

    /// Writes lines that keep these values after a reboot into files of the host, and returns the files.
    ///
    /// # Errors
    /// When a value can't be kept by a file of ours, or a file can't be written. The files are then as before.
    pub fn save(
        &mut self,
        assignments: &[(SettingRef, String)],
    ) -> Result<Vec<SavedThere>, RemoteError> {
        saved::save(self.host.system, &mut self.host.session, &all_its_own(assignments)?)
    }

    /// Leaves everything as it is now.
    ///
    /// # Errors
    /// When the journal can't be removed, or the host is no longer connected; everything is then put back.
    pub fn keep(mut self) -> Result<(), RemoteError> {
        let Some(open) = &self.open else { return Ok(()) };
        // Until the dead-man has confirmed its end, it may put everything back. What then fails puts it back here.
        open.dead_man.release(&mut self.host.session)?;
        open.journal.close()?;
        self.open = None;
        self.host.session.end();
        Ok(())
    }

    /// Notes the present values of a setting and of everything coupled with it as the originals.
    fn find_around(&mut self, setting: &SettingRef) -> Result<usize, RemoteError> {
        let system = self.host.system;
        let mut look = Look::new(&mut self.host.session);
        let main = Cell::found(system, &mut look, setting.clone())?;
        let mut around = Vec::new();
        for other in system.coupled(&mut look, setting)? {
            match Cell::found(system, &mut look, other) {
                Ok(cell) => around.push(cell),
                Err(error @ RemoteError::Lost { .. }) => return Err(error),
                // A value that the driver does not have can't change.
                Err(_) => {}
            }
        }
        self.entries.push(Entry { main, around, doubt: false });
        Ok(self.entries.len() - 1)
    }

    /// Announces to both hosts what is about to change; returns all values right after that.
    fn note(&mut self, index: usize, to: &str) -> Result<Values, RemoteError> {
        let mut seen = self.look()?;
        for _ in 0..MAX_NOTE_ATTEMPTS {
            self.expect_change(index, to, &seen[index])?;
            let Some(open) = &mut self.open else { return Err(RemoteError::Closed) };
            let entry = &mut self.entries[index];
            let (main, around) = (entry.main.clone(), entry.around.clone());
            open.journal.note(&Line::Intent { main, around, to: to.into() })?;
            entry.doubt = true;
            self.arm(index)?;
            // This took long enough for others to change something, and such a change is theirs.
            let now = self.look()?;
            if now[index] == seen[index] {
                return Ok(now);
            }
            seen = now;
        }
        // A value that never rests is nobody's to put back.
        Ok(seen)
    }

    /// Notes in an entry the values that a change to `to` can leave, and what others have changed around it.
    fn expect_change(
        &mut self,
        index: usize,
        to: &str,
        seen: &[Option<String>],
    ) -> Result<(), RemoteError> {
        let Self { host, entries, became, .. } = self;
        let mut look = Look::new(&mut host.session);
        let entry = &mut entries[index];
        let is_first = entry.main.made.is_none();
        let last = became.last(&entry.main.setting, to).map(String::as_str);
        entry.main.expect(host.system, &mut look, to, last)?;
        for (cell, now) in entry.around.iter_mut().zip(&seen[1..]) {
            cell.theirs = now.as_deref().is_none_or(|now| cell.is_foreign(now));
            if cell.theirs && is_first {
                // Before the first change, this value is the original.
                match Cell::found(host.system, &mut look, cell.setting.clone()) {
                    Ok(found) => *cell = found,
                    Err(error @ RemoteError::Lost { .. }) => return Err(error),
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Gives the dead-man the current script of an entry.
    fn arm(&mut self, index: usize) -> Result<(), RemoteError> {
        let Some(open) = &self.open else { return Err(RemoteError::Closed) };
        let mut look = Look::new(&mut self.host.session);
        let script = script(self.host.system, &mut look, &self.entries, index)?;
        open.dead_man.arm(&mut self.host.session, index + 1, &script)
    }

    /// Makes the noted change, and checks its effects.
    fn change(
        &mut self,
        index: usize,
        now: &str,
        wanted: &str,
        before: &Values,
    ) -> Result<String, RemoteError> {
        let setting = self.entries[index].main.setting.clone();
        let system = self.host.system;
        if let Some(found) = before[index][0].as_deref().filter(|found| *found != now) {
            self.entries[index].doubt = false;
            let (now, ours) = (found.to_owned(), now.to_owned());
            return Err(SettingError::ChangedByOther { setting, now, ours }.into());
        }
        let commands = system.write(&mut Look::new(&mut self.host.session), &setting, wanted)?;
        let may_cut = system.may_cut(&setting)
            && !self.confirmed.contains(&(setting.clone(), wanted.to_owned()));
        if may_cut {
            self.expect(index)?;
        }
        for command in &commands {
            let session = &mut self.host.session;
            if let Err(refusal) = session.output(command) {
                let explained = system.explained(session, &setting, wanted, refusal);
                return Err(explained.of_a_change(&setting, wanted));
            }
        }
        if may_cut {
            self.confirm(index)?;
            self.confirmed.insert((setting.clone(), wanted.into()));
        }
        let effective = system.read(&mut self.host.session, &setting)?;
        self.entries[index].main.made = Some(effective.clone());
        let touched = self.take_note(before)?;
        self.settle(index, touched)?;
        if self.entries[index].main.original == wanted && effective != wanted {
            // The original was in effect before: another number is no rounding of it.
            let asked = wanted.to_owned();
            let refusal = SettingError::NotEffective { setting, asked, effective, not_back: None };
            return Err(refusal.into());
        }
        Ok(self.became.read_back(&setting, wanted, effective)?)
    }

    /// The present values of every entry; `None` if a value can't be read.
    fn look(&mut self) -> Result<Values, RemoteError> {
        let mut look = Look::new(&mut self.host.session);
        let mut values = Vec::new();
        for entry in &self.entries {
            let mut own = Vec::new();
            for cell in entry.cells() {
                own.push(match self.host.system.read(&mut look, &cell.setting) {
                    Ok(value) => Some(value),
                    Err(error @ RemoteError::Lost { .. }) => return Err(error),
                    Err(_) => None,
                });
            }
            values.push(own);
        }
        Ok(values)
    }

    /// Notes differences from `before` as our doing: settings of one run may drag each other along. Returns the
    /// affected entries.
    fn take_note(&mut self, before: &Values) -> Result<Vec<usize>, RemoteError> {
        let after = self.look()?;
        let mut touched = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let values = before[index].iter().zip(&after[index]);
            for (cell, (before, after)) in entry.cells_mut().zip(values) {
                if before != after && after.is_some() {
                    cell.made.clone_from(after);
                    touched.push(index);
                }
            }
        }
        touched.dedup();
        Ok(touched)
    }

    /// Lets both hosts know how the change of the entry at `index` ended, and what it did to others.
    fn settle(&mut self, index: usize, touched: Vec<usize>) -> Result<(), RemoteError> {
        self.entries[index].doubt = false;
        let others = touched.into_iter().filter(|other| *other != index);
        for index in std::iter::once(index).chain(others) {
            let entry = &self.entries[index];
            // If an entry's outcome is unknown, any value can be ours as it is.
            if !entry.doubt {
                let changed = entry.around.iter().filter(|cell| cell.made.is_some());
                let (main, around) = (entry.main.clone(), changed.cloned().collect());
                let Some(open) = &mut self.open else { return Err(RemoteError::Closed) };
                open.journal.note(&Line::Effective { main, around })?;
            }
            self.arm(index)?;
        }
        Ok(())
    }

    /// Makes the host put the change back soon unless it is confirmed.
    fn expect(&mut self, index: usize) -> Result<(), RemoteError> {
        let Some(open) = &self.open else { return Err(RemoteError::Closed) };
        open.dead_man.expect(&mut self.host.session, index + 1, confirm_s(self.host.opened_in))
    }

    /// Confirms a change if full packets still get through in both directions, on this connection and on a new one.
    fn confirm(&mut self, index: usize) -> Result<(), RemoteError> {
        let setting = self.entries[index].main.setting.to_string();
        let cut = |why: String| RemoteError::CutOff { setting: setting.clone(), why };
        get_through(&mut self.host.session).map_err(|error| cut(error.to_string()))?;
        let mut fresh = self.host.again().map_err(|error| cut(error.to_string()))?;
        get_through(&mut fresh).map_err(|error| cut(error.to_string()))?;
        let Some(open) = &self.open else { return Err(RemoteError::Closed) };
        match open.dead_man.confirm(&mut self.host.session, index + 1)? {
            true => Ok(()),
            false => {
                let within_s = confirm_s(self.host.opened_in);
                Err(cut(format!("no packet got through for {within_s} s")))
            }
        }
    }

    /// Puts back a change that went wrong. If that fails, it stays noted for [`RemoteChanges::restore`].
    fn take_back(&mut self, index: usize, before: &Values) {
        if !self.host.session.answers() {
            return;
        }
        let own = originals(&self.entries).into_iter().filter(|(of, _)| *of == index);
        let around = own.skip(1).map(|(_, cell)| cell.clone()).collect();
        let (main, doubt) = (self.entries[index].main.clone(), self.entries[index].doubt);
        let entry = Entry { main, around, doubt };
        let own: HashSet<_> = entry.cells().map(|cell| cell.setting.clone()).collect();
        let outcome = put_back(self.host.system, &mut self.host.session, &[entry]).pop();
        // Whatever can't be noted now is checked again later, which does no harm.
        let Ok(touched) = self.take_note(before) else { return };
        match outcome {
            None | Some(Outcome::Failed(_)) => return,
            Some(Outcome::AlreadyBack | Outcome::PutBack { .. }) => {
                for cell in &mut self.entries[index].around {
                    // The value that another entry gave it is still there.
                    if own.contains(&cell.setting) {
                        cell.made = None;
                    }
                }
                let main = &mut self.entries[index].main;
                main.made = Some(main.original.clone());
            }
            Some(_) => {}
        }
        let _ = self.settle(index, touched);
    }
}

impl Drop for RemoteChanges {
    fn drop(&mut self) {
        // Changes that could not be put back are in the journal, and the dead-man notices the end of the session.
        if self.open.is_some() {
            self.restore();
        }
    }
}

fn all_its_own(
    assignments: &[(SettingRef, String)],
) -> Result<Vec<(SettingRef, String)>, RemoteError> {
    let own = |(setting, value): &(SettingRef, String)| Ok((its_own(setting)?, value.clone()));
    assignments.iter().map(own).collect()
}

/// Refuses to touch a setting that someone else has changed since we did.
fn still_ours(cell: &Cell, now: &str) -> Result<(), RemoteError> {
    if now == cell.original || cell.made.as_deref() == Some(now) {
        return Ok(());
    }
    let (setting, now) = (cell.setting.clone(), now.to_owned());
    let ours = cell.made.clone().unwrap_or_default();
    Err(SettingError::ChangedByOther { setting, now, ours }.into())
}

/// How long a change may go unconfirmed on a host that was opened in this time, seconds.
fn confirm_s(opened_in: Duration) -> u32 {
    let patient_s = (opened_in * CONFIRM_OPENINGS).as_secs();
    u32::try_from(patient_s).unwrap_or(u32::MAX).max(CONFIRM_S)
}

/// Sends many full packets there and back.
fn get_through(session: &mut Session) -> Result<(), RemoteError> {
    let bytes = "x".repeat(CHECK_BYTES);
    let back = session.output(&Command::new("printf", ["%s", &bytes]))?;
    match back == bytes {
        true => Ok(()),
        false => Err(RemoteError::Unexpected {
            host: session.host().into(),
            doing: "get a copy of what was sent".into(),
            words: format!("{} bytes instead of {CHECK_BYTES}", back.len()),
        }),
    }
}

#[cfg(test)]
mod tests;
