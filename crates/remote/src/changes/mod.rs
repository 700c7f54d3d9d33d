//! Changes of a host reached by SSH. Before anything is changed, the original is in the journal on this host and with
//! the dead-man on the other one.

mod noted;
mod standby;

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;

use goodput_model::{SettingRef, Snapshot};
use goodput_settings::{
    Assignment, ChangeKind, Outcome, RestoreReport, SettingError, log_change_at,
};

use crate::address::Address;
use crate::awaited::Notify;
use crate::counters::Counters;
use crate::entry::{Cell, Entry, originals};
use crate::error::RemoteError;
use crate::host::{Host, its_own};
use crate::journal::{Contents, Line};
use crate::look::Look;
use crate::one_host;
use crate::others::is_kept;
use crate::polling::PollingRates;
use crate::put_back::put_back;
use crate::saved::{self, SavedThere, Writing};
use crate::shell::Shell;
use crate::ssh::{Access, DeadManId};
use crate::undo::{Back, RemoteReport, begin_to_put_back, finish, undo_at};
use crate::written::WrittenThere;
use noted::{Noted, Values};
use standby::Standby;

/// How often the surroundings of a setting are noted again if others change them meanwhile.
const MAX_NOTE_ATTEMPTS: u32 = 3;

/// Changes of one host that are put back together: by [`RemoteChanges::restore`], by dropping, or by the host itself
/// when the session ends.
pub struct RemoteChanges {
    host: Host,
    settled: Vec<RemoteReport>,
    noted: Noted,
    /// Values that the connection has survived.
    confirmed: HashSet<(SettingRef, String)>,
    /// Values that the host's kernel would take after others, as far as that is known.
    checked: HashSet<(SettingRef, String, Vec<Assignment>)>,
    /// Files that are written and not kept yet.
    written: Vec<WrittenThere>,
    /// Whether the host no longer puts back on its own, because all is about to be kept.
    is_released: bool,
    /// `None` once everything is put back or kept.
    standby: Option<Standby>,
}

impl RemoteChanges {
    /// Logs in, puts back what dead runs left changed there by the journals in `state_dir`, and starts the dead-man. `notify`
    /// is told what is waited for there.
    ///
    /// # Errors
    /// When there is no login, another goodput is changing the host, what a dead run left can't be put back, or the
    /// journal can't be written.
    pub fn begin(
        state_dir: &Path,
        address: &Address,
        access: &Access,
        notify: &Notify,
    ) -> Result<Self, RemoteError> {
        Self::after_dead_runs(Host::open(address, access)?.notifying(notify), state_dir)
    }

    /// The same at a host with a session, that must be none of the `others`. This run may hold it by a process there.
    pub(crate) fn begin_beside<'a>(
        state_dir: &Path,
        mut host: Host,
        others: impl IntoIterator<Item = &'a mut Self>,
    ) -> Result<Self, RemoteError> {
        for other in others {
            one_host::refuse(&mut other.host, &mut host)?;
        }
        Self::after_dead_runs(host, state_dir)
    }

    /// The process there that puts back; `None` if everything is put back or kept.
    pub(crate) fn dead_man(&self) -> Option<DeadManId> {
        self.standby.as_ref().map(|standby| standby.dead_man.id.clone())
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
        let standby = Some(Standby::begin(&mut host, state_dir)?);
        let (noted, confirmed, checked, written) = Default::default();
        let is_released = false;
        Ok(Self { host, settled, noted, confirmed, checked, written, is_released, standby })
    }

    /// The changes of dead runs that were put back before these changes began.
    pub fn settled(&self) -> &[RemoteReport] {
        &self.settled
    }

    /// Whether the host is the one that goodput runs on, in the same network namespace.
    pub fn is_this_host(&self) -> bool {
        self.host.is_this_host()
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

    /// The host's settings as they are now, as facts; see [`Host::facts`].
    ///
    /// # Errors
    /// When the connection is lost, and every change with it.
    pub fn facts(&mut self, towards: Option<IpAddr>) -> Result<Snapshot, RemoteError> {
        self.host.facts(towards)
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
        let known = self.noted.place(&setting);
        match known {
            Some(known) => still_ours(&self.noted.entries[known].main, &now)?,
            None => system.comes_back(&mut look, &setting)?,
        }
        let in_effect = now == wanted || self.noted.became.last(&setting, &wanted) == Some(&now);
        if in_effect && !(known.is_some() && system.starts_anew(&mut look, &setting)?) {
            return Ok(now);
        }
        if known.is_none_or(|known| self.noted.entries[known].main.original != wanted) {
            self.check_new(&setting, value, &[])?;
        }
        let index = match known {
            Some(index) => index,
            None => self.noted.find_around(&mut self.host, &setting)?,
        };
        let before = self.note(index, &wanted)?;
        let changed = self.change(index, &now, &wanted, &before);
        let effective = changed.inspect_err(|_| self.take_back(index, &before))?;
        if let Some(standby) = self.standby.as_ref().filter(|_| !in_effect) {
            let host = self.host.address.to_string();
            let values = [&*now, &effective];
            log_change_at(&host, standby.journal.path(), &setting, values, ChangeKind::Set);
        }
        Ok(effective)
    }

    /// Puts everything back, the last change first. What can't be put back stays in the journal.
    pub fn restore(&mut self) -> RemoteReport {
        let host = self.host.address.to_string();
        let Some(mut standby) = self.standby.take() else {
            return RemoteReport::new(host, RestoreReport::empty(Default::default()));
        };
        let dead_man = standby.dead_man.id.clone();
        let entries = &self.noted.entries;
        let has_nothing = entries.is_empty() && self.written.is_empty();
        // A lost session has made the dead-man put back; check again what it did. Nobody else may begin meanwhile, nor if the
        // session goes on without its dead-man.
        let reached = match has_nothing || is_kept(&mut self.host, &dead_man) {
            true => Ok(()),
            false => self.host.renew().and_then(|()| begin_to_put_back(&mut self.host, &dead_man)),
        };
        let contents = Contents {
            entries: entries.clone(),
            written: std::mem::take(&mut self.written),
            ..Contents::default()
        };
        let back = match reached {
            Ok(()) => Back::at(&mut self.host, &contents),
            Err(error) => Back::failed(&contents, &error.to_string()),
        };
        let mut report = finish(&host, &mut standby.journal, &contents, back);
        report.host_goes_on = !self.is_released;
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

    /// Writes lines that keep these values after a reboot into files of the host, and returns the files. Like the values
    /// themselves, they are taken back unless they are kept.
    ///
    /// # Errors
    /// When a value can't be kept by a file of ours, or a file can't be written. The files are then as before, unless the
    /// connection is lost.
    pub fn save(
        &mut self,
        assignments: &[(SettingRef, String)],
    ) -> Result<Vec<SavedThere>, RemoteError> {
        let Self { host, standby, written, .. } = self;
        let (system, session) = (host.system, &mut host.session);
        let writing = Writing::prepare(system, session, &all_its_own(assignments)?)?;
        let standby = standby.as_mut().ok_or(RemoteError::Closed)?;
        // On disk first: of a file that was under way when the connection was lost, nobody knows whether it is there.
        writing.write(system, session, |files| {
            standby.journal.note(&Line::Writes { files: files.clone() })?;
            written.extend(files);
            Ok(())
        })
    }

    /// Keeps the host from putting back on its own; whatever is not kept after that is put back from here. For several
    /// hosts that keep all or nothing.
    ///
    /// # Errors
    /// When the host is no longer connected.
    pub fn release(&mut self) -> Result<(), RemoteError> {
        if let Some(standby) = self.standby.as_ref().filter(|_| !self.is_released) {
            standby.dead_man.release(&mut self.host.session)?;
            self.is_released = true;
        }
        Ok(())
    }

    /// Leaves everything as it is now.
    ///
    /// # Errors
    /// When the journal can't be removed, or the host is no longer connected; everything is then put back, or the error
    /// says what is left.
    pub fn keep(mut self) -> Result<(), RemoteError> {
        // The dead-man stays until the end, so that nobody else begins meanwhile; once released, it puts nothing back. What
        // then fails puts it back from here.
        let closed = self.release().and_then(|()| match &self.standby {
            Some(standby) => standby.journal.close(),
            None => Ok(()),
        });
        let Err(cause) = closed else {
            self.standby = None;
            self.written.clear();
            self.host.session.end();
            return Ok(());
        };
        let report = self.restore();
        match report.report.is_clean() && report.report.notes.is_empty() {
            true => Err(cause),
            false => Err(RemoteError::NotBack { cause: Box::new(cause), left: report.to_string() }),
        }
    }

    /// Announces to both hosts what is about to change; returns all values right after that.
    fn note(&mut self, index: usize, to: &str) -> Result<Values, RemoteError> {
        let Self { host, noted, standby, .. } = self;
        let mut seen = noted.look(host)?;
        for _ in 0..MAX_NOTE_ATTEMPTS {
            noted.expect_change(host, index, to, &seen[index])?;
            let standby = standby.as_mut().ok_or(RemoteError::Closed)?;
            standby.announce(host, &mut noted.entries, index, to)?;
            // This took long enough for others to change something, and such a change is theirs.
            let now = noted.look(host)?;
            if now[index] == seen[index] {
                return Ok(now);
            }
            seen = now;
        }
        // A value that never rests is nobody's to put back.
        Ok(seen)
    }

    /// Makes the noted change, and checks its effects.
    fn change(
        &mut self,
        index: usize,
        now: &str,
        wanted: &str,
        before: &Values,
    ) -> Result<String, RemoteError> {
        let Self { host, noted, standby, confirmed, .. } = self;
        let standby = standby.as_mut().ok_or(RemoteError::Closed)?;
        let setting = noted.entries[index].main.setting.clone();
        let system = host.system;
        if let Some(found) = before[index][0].as_deref().filter(|found| *found != now) {
            noted.entries[index].doubt = false;
            let (now, ours) = (found.to_owned(), now.to_owned());
            return Err(SettingError::ChangedByOther { setting, now, ours }.into());
        }
        let commands = system.write(&mut Look::new(&mut host.session), &setting, wanted)?;
        let tried = (setting.clone(), wanted.to_owned());
        let may_cut = system.may_cut(&setting) && !confirmed.contains(&tried);
        if may_cut {
            standby.expect(host, index)?;
        }
        for command in &commands {
            if let Err(refusal) = host.session.output(command) {
                let explained = system.explained(&mut host.session, &setting, wanted, refusal);
                return Err(explained.of_a_change(&setting, wanted));
            }
        }
        if may_cut {
            standby.confirm(host, &noted.entries, index)?;
            confirmed.insert(tried);
        }
        let effective = system.read(&mut host.session, &setting)?;
        noted.entries[index].main.made = Some(effective.clone());
        let touched = noted.take_note(host, before)?;
        standby.settle(host, &mut noted.entries, index, touched)?;
        if noted.entries[index].main.original == wanted && effective != wanted {
            // The original was in effect before: another number is no rounding of it.
            let asked = wanted.to_owned();
            let refusal = SettingError::NotEffective { setting, asked, effective, not_back: None };
            return Err(refusal.into());
        }
        Ok(noted.became.read_back(&setting, wanted, effective)?)
    }

    /// Puts back a change that went wrong. If that fails, it stays noted for [`RemoteChanges::restore`].
    fn take_back(&mut self, index: usize, before: &Values) {
        let Self { host, noted, standby, .. } = self;
        if !host.session.answers() {
            return;
        }
        let own = originals(&noted.entries).into_iter().filter(|(of, _)| *of == index);
        let around = own.skip(1).map(|(_, cell)| cell.clone()).collect();
        let Entry { main, doubt, .. } = noted.entries[index].clone();
        let entry = Entry { main, around, doubt };
        let own: HashSet<_> = entry.cells().map(|cell| cell.setting.clone()).collect();
        let outcome = put_back(host.system, &mut host.session, &[entry]).pop();
        // Whatever can't be noted now is checked again later, which does no harm.
        let Ok(touched) = noted.take_note(host, before) else { return };
        match outcome {
            None | Some(Outcome::Failed(_)) => return,
            Some(Outcome::AlreadyBack | Outcome::PutBack { .. }) => {
                for cell in &mut noted.entries[index].around {
                    // The value that another entry gave it is still there.
                    if own.contains(&cell.setting) {
                        cell.made = None;
                    }
                }
                let main = &mut noted.entries[index].main;
                main.made = Some(main.original.clone());
            }
            Some(_) => {}
        }
        if let Some(standby) = standby {
            let _ = standby.settle(host, &mut noted.entries, index, touched);
        }
    }
}

impl Drop for RemoteChanges {
    fn drop(&mut self) {
        // Changes that could not be put back are in the journal, and the dead-man notices the end of the session.
        if self.standby.is_some() {
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

#[cfg(test)]
mod tests;
