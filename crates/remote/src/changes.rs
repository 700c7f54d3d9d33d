//! Changes of a host reached by SSH. The original is in the journal on this host and with the dead-man on that one
//! before anything is changed.

use std::collections::HashSet;
use std::path::Path;

use goodput_model::{Permanent, SettingRef};
use goodput_settings::{Outcome, RestoreReport, Restored, SettingError};

use crate::address::Address;
use crate::command::Command;
use crate::counters::Counters;
use crate::entry::{Cell, Entry};
use crate::error::RemoteError;
use crate::host::{Host, its_own};
use crate::journal::{Contents, Journal, Line, Owner};
use crate::look::Look;
use crate::polling::PollingRates;
use crate::put_back::put_back;
use crate::shell::Shell;
use crate::ssh::{Access, DeadMan, Session};
use crate::undo::{RemoteReport, await_dead_man, finish, refuse_others, undo_at};

/// How long a change that could cut the connection may go unconfirmed, seconds.
const CONFIRM_S: u32 = 10;

/// Bytes that cross the connection in both directions to confirm a change: several full segments of any MTU.
const CHECK_BYTES: usize = 48 << 10;

/// Changes of one host that are put back together: by [`RemoteChanges::restore`], by dropping, or by the host itself
/// when the session ends.
pub struct RemoteChanges {
    host: Host,
    settled: Vec<RemoteReport>,
    entries: Vec<Entry>,
    /// Values that the connection has lived through.
    confirmed: HashSet<(SettingRef, String)>,
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
        let settled = undo_at(state_dir, address);
        if let Some(process) = settled.iter().find_map(run_at_work) {
            return Err(RemoteError::Busy { host: address.to_string(), process });
        }
        if let Some(left) = settled.iter().find(|found| !found.report.is_clean()) {
            return Err(RemoteError::LeftChanged {
                host: address.to_string(),
                left: left.to_string(),
            });
        }
        let host = Host::open(address, access)?;
        Self::at(host, state_dir, settled)
    }

    fn at(
        mut host: Host,
        state_dir: &Path,
        settled: Vec<RemoteReport>,
    ) -> Result<Self, RemoteError> {
        let dead_man = DeadMan::start(&mut host.session)?;
        // Looked for after ours is there: of two that begin at the same time, at least one sees the other.
        refuse_others(&mut host, dead_man.pid)?;
        let journal = Journal::create(state_dir, |format, pid| Owner {
            format,
            pid,
            host: host.address.to_string(),
            access: host.access.clone(),
            identity: host.identity.clone(),
            dead_man: dead_man.pid,
        })?;
        let (entries, confirmed) = Default::default();
        let open = Some(Open { journal, dead_man });
        Ok(Self { host, settled, entries, confirmed, open })
    }

    /// What dead runs had left changed there and was put back before these changes began.
    pub fn settled(&self) -> &[RemoteReport] {
        &self.settled
    }

    /// The host's system, as it calls itself.
    pub fn system(&self) -> &'static str {
        self.host.system.name()
    }

    /// What the host has counted since its start, of `device` as well if it is named.
    ///
    /// # Errors
    /// When the connection is lost, and with it every change.
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

    /// The files that make `value` of a setting outlive a reboot of the host.
    pub fn permanent(&self, setting: &SettingRef, value: &str) -> Vec<Permanent> {
        self.host.system.permanent(&its_own(setting), value)
    }

    /// Makes `value` the effective value of a setting of the host; what was read back. Of a setting that is changed
    /// several times, the value before the first change is the original.
    ///
    /// # Errors
    /// When the value is not one, a privilege is missing, the journal can't be written, someone else changed the
    /// setting since, the change cuts the connection, or the kernel made something else of the value. The
    /// setting then has its original value, or the host puts that back.
    pub fn apply(&mut self, setting: &SettingRef, value: &str) -> Result<String, RemoteError> {
        let setting = its_own(setting);
        let system = self.host.system;
        let mut look = Look::new(&mut self.host.session);
        let wanted = system.normalise(&mut look, &setting, value)?;
        let now = system.read(&mut look, &setting)?;
        let known = self.entries.iter().position(|entry| entry.main.setting == setting);
        match known {
            Some(known) => still_ours(&self.entries[known].main, &now)?,
            None => system.comes_back(&mut look, &setting)?,
        }
        if now == wanted {
            return Ok(now);
        }
        let index = match known {
            Some(index) => index,
            None => self.find_around(&setting)?,
        };
        self.note(index, &wanted)?;
        match self.change(index, &now, &wanted) {
            Ok(effective) => Ok(effective),
            Err(error) => {
                self.take_back(index);
                Err(error)
            }
        }
    }

    /// Puts everything back, the last change first. What can't be put back stays in the journal.
    pub fn restore(&mut self) -> RemoteReport {
        let host = self.host.address.to_string();
        let Some(mut open) = self.open.take() else {
            let journal = Default::default();
            let report = RestoreReport { journal, entries: Vec::new(), problem: None };
            return RemoteReport { host, report };
        };
        let dead_man = open.dead_man.pid;
        // A session that is lost has made the dead-man put back; what it did is looked at anew.
        let reached = match self.host.session.answers() {
            true => Ok(()),
            false => self.host.again().and_then(|session| {
                self.host.session = session;
                await_dead_man(&mut self.host, dead_man)
            }),
        };
        let mut restored = Vec::new();
        for entry in self.entries.iter().rev() {
            let outcome = match &reached {
                Ok(()) => put_back(self.host.system, &mut self.host.session, entry),
                Err(error) => Outcome::Failed(error.to_string()),
            };
            restored.push(Restored { setting: entry.main.setting.clone(), outcome });
        }
        let contents = Contents { entries: self.entries.clone(), ..Contents::default() };
        let report = finish(&host, &mut open.journal, &contents, restored);
        // It would do nothing more where everything is back, and tries what is not.
        self.host.session.end();
        report
    }

    /// Leaves everything as it is now.
    ///
    /// # Errors
    /// When the journal can't be removed, or the host is not connected any more; everything is then put back.
    pub fn keep(mut self) -> Result<(), RemoteError> {
        let Some(open) = &self.open else { return Ok(()) };
        // Until the dead-man has said that it goes, it may put everything back. What then fails puts it back here.
        open.dead_man.release(&mut self.host.session)?;
        open.journal.close()?;
        self.open = None;
        self.host.session.end();
        Ok(())
    }

    /// Notes what is there now as the original of a setting and of all that is coupled with it.
    fn find_around(&mut self, setting: &SettingRef) -> Result<usize, RemoteError> {
        let system = self.host.system;
        let mut look = Look::new(&mut self.host.session);
        let main = Cell::found(system, &mut look, setting.clone())?;
        let mut around = Vec::new();
        for other in system.coupled(&mut look, setting)? {
            // Another entry's own value is put back by that one.
            if self.entries.iter().any(|entry| entry.main.setting == other) {
                continue;
            }
            match Cell::found(system, &mut look, other) {
                Ok(cell) => around.push(cell),
                Err(error @ RemoteError::Lost { .. }) => return Err(error),
                // What the driver does not have can't change.
                Err(_) => {}
            }
        }
        self.entries.push(Entry { main, around, doubt: false });
        Ok(self.entries.len() - 1)
    }

    /// Has both hosts know what is about to change.
    fn note(&mut self, index: usize, to: &str) -> Result<(), RemoteError> {
        let Some(open) = &mut self.open else { return Err(RemoteError::Closed) };
        let entry = &mut self.entries[index];
        let (main, around) = (entry.main.clone(), entry.around.clone());
        open.journal.note(&Line::Intent { main, around, to: to.into() })?;
        entry.doubt = true;
        self.arm(index)
    }

    /// Gives the dead-man the script for an entry as it is now.
    fn arm(&mut self, index: usize) -> Result<(), RemoteError> {
        let Some(open) = &self.open else { return Err(RemoteError::Closed) };
        let entry = &self.entries[index];
        let mut scripts = Vec::new();
        let mut look = Look::new(&mut self.host.session);
        for cell in entry.cells() {
            match &cell.made {
                _ if entry.doubt => scripts.push(cell.script(None)),
                Some(made) if *made != cell.original => {
                    let ours = self.host.system.holds(&mut look, &cell.setting, made)?;
                    scripts.push(cell.script(Some(&ours)));
                }
                _ => {}
            }
        }
        scripts.push(":".into());
        open.dead_man.arm(&mut self.host.session, index + 1, &scripts.join("; "))
    }

    /// Changes what is noted, and looks what that has done.
    fn change(&mut self, index: usize, now: &str, wanted: &str) -> Result<String, RemoteError> {
        let setting = self.entries[index].main.setting.clone();
        let system = self.host.system;
        let session = &mut self.host.session;
        // The journal took long enough for others to change something.
        let found = system.read(session, &setting)?;
        if found != now {
            self.entries[index].doubt = false;
            let (now, ours) = (found, now.to_owned());
            return Err(SettingError::ChangedByOther { setting, now, ours }.into());
        }
        let before = self.read_around(index)?;
        let commands = system.write(&mut Look::new(&mut self.host.session), &setting, wanted)?;
        let may_cut = system.may_cut(&setting)
            && !self.confirmed.contains(&(setting.clone(), wanted.to_owned()));
        if may_cut {
            self.expect(index)?;
        }
        for command in &commands {
            self.host.session.output(command)?;
        }
        if may_cut {
            self.confirm(index)?;
            self.confirmed.insert((setting.clone(), wanted.into()));
        }
        let effective = self.look_again(index, &before)?;
        if effective == wanted {
            return Ok(effective);
        }
        let asked = wanted.into();
        Err(SettingError::NotEffective { setting, asked, effective, not_back: None }.into())
    }

    fn read_around(&mut self, index: usize) -> Result<Vec<Option<String>>, RemoteError> {
        let mut look = Look::new(&mut self.host.session);
        let mut values = Vec::new();
        for cell in &self.entries[index].around {
            match self.host.system.read(&mut look, &cell.setting) {
                Ok(value) => values.push(Some(value)),
                Err(error @ RemoteError::Lost { .. }) => return Err(error),
                Err(_) => values.push(None),
            }
        }
        Ok(values)
    }

    /// Notes what the change has made; the value.
    fn look_again(
        &mut self,
        index: usize,
        before: &[Option<String>],
    ) -> Result<String, RemoteError> {
        let setting = self.entries[index].main.setting.clone();
        let effective = self.host.system.read(&mut self.host.session, &setting)?;
        let after = self.read_around(index)?;
        let entry = &mut self.entries[index];
        entry.main.made = Some(effective.clone());
        for ((cell, before), after) in entry.around.iter_mut().zip(before).zip(after) {
            if *before != after {
                cell.made = after;
            }
        }
        self.settle(index)?;
        Ok(effective)
    }

    /// Has both hosts know how a change ended.
    fn settle(&mut self, index: usize) -> Result<(), RemoteError> {
        let entry = &mut self.entries[index];
        entry.doubt = false;
        let around = entry.around.iter().filter(|cell| cell.made.is_some()).cloned().collect();
        let line = Line::Effective { main: entry.main.clone(), around };
        let Some(open) = &mut self.open else { return Err(RemoteError::Closed) };
        open.journal.note(&line)?;
        self.arm(index)
    }

    /// Has the host put the change back soon unless it is confirmed.
    fn expect(&mut self, index: usize) -> Result<(), RemoteError> {
        let Some(open) = &self.open else { return Err(RemoteError::Closed) };
        open.dead_man.expect(&mut self.host.session, index + 1, CONFIRM_S)
    }

    /// Confirms a change, if full packets still get through in both directions: on this connection, and on a new one.
    fn confirm(&mut self, index: usize) -> Result<(), RemoteError> {
        let setting = self.entries[index].main.setting.to_string();
        let cut = |why: String| RemoteError::CutOff { setting: setting.clone(), why };
        get_through(&mut self.host.session).map_err(|error| cut(error.to_string()))?;
        let mut fresh = self.host.again().map_err(|error| cut(error.to_string()))?;
        get_through(&mut fresh).map_err(|error| cut(error.to_string()))?;
        let Some(open) = &self.open else { return Err(RemoteError::Closed) };
        match open.dead_man.confirm(&mut self.host.session, index + 1)? {
            true => Ok(()),
            false => Err(cut(format!("no packet got through for {CONFIRM_S} s"))),
        }
    }

    /// Puts a change back that went wrong. Where that fails, it stays noted for [`RemoteChanges::restore`].
    fn take_back(&mut self, index: usize) {
        if !self.host.session.answers() {
            return;
        }
        let entry = &self.entries[index];
        let outcome = put_back(self.host.system, &mut self.host.session, entry);
        if matches!(outcome, Outcome::Failed(_)) {
            return;
        }
        if matches!(outcome, Outcome::AlreadyBack | Outcome::PutBack { .. }) {
            for cell in self.entries[index].cells_mut() {
                cell.made = None;
            }
            let original = self.entries[index].main.original.clone();
            self.entries[index].main.made = Some(original);
        }
        // What can't be noted now is looked at again later, which does no harm.
        let _ = self.settle(index);
    }
}

impl Drop for RemoteChanges {
    fn drop(&mut self) {
        // What could not be put back is in the journal, and the dead-man is told by the end of the session.
        if self.open.is_some() {
            self.restore();
        }
    }
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

/// The run of this host that lives and has changed the other one, if that is what a report says.
fn run_at_work(report: &RemoteReport) -> Option<String> {
    report.report.entries.iter().find_map(|entry| match entry.outcome {
        Outcome::InUse { pid } => Some(format!("process {pid} here")),
        _ => None,
    })
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
mod tests {
    use super::*;
    use goodput_testing::{in_namespace, wait_for};
    use std::path::PathBuf;
    use std::process;

    const PARAMETER: &str = "sysctl.net.ipv4.tcp_rmem";
    const OURS: &str = "4096 65536 262144";

    fn sh(script: &str) -> String {
        let output = process::Command::new("sh").args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A host whose shell is one of this thread's network namespace.
    fn host() -> Host {
        let address = "ssh://here".parse().unwrap();
        Host::through(Box::new(|| Session::with_shell(["sh"])), &address, &Access::default())
            .unwrap()
    }

    fn setting(name: &str) -> SettingRef {
        name.parse().unwrap()
    }

    fn begin(folder: &tempfile::TempDir) -> RemoteChanges {
        RemoteChanges::at(host(), folder.path(), Vec::new()).unwrap()
    }

    fn value(name: &str) -> String {
        host().read(&setting(name)).unwrap()
    }

    /// Runs a test in a network namespace with the devices v0 and v1, if this machine can.
    fn in_scene(test: impl FnOnce(tempfile::TempDir) + Send + 'static) {
        in_namespace(|| {
            sh("ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up");
            test(tempfile::tempdir().unwrap());
        });
    }

    fn journals(folder: &tempfile::TempDir) -> Vec<PathBuf> {
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_is_changed_comes_back_with_all_around_it() {
        in_scene(|folder| {
            let parts = "ethtool -k v0 | grep -e segmentation -e checksum";
            sh("ethtool -K v0 tx-tcp6-segmentation off");
            let before = (value(PARAMETER), sh(parts), value("link.mtu@v0"));
            let mut changes = begin(&folder);
            assert_eq!(changes.apply(&setting(PARAMETER), OURS).unwrap(), OURS);
            assert_eq!(changes.apply(&setting("offload.tx-checksum@v0"), "off").unwrap(), "off");
            assert_eq!(changes.apply(&setting("far:link.mtu@v0"), "1400").unwrap(), "1400");
            assert_eq!(value("feature.tx-tcp-segmentation@v0"), "off", "it needs checksums");
            assert_eq!(value("link.mtu@v0"), "1400");
            let report = changes.restore();
            assert!(report.report.is_clean(), "{report}");
            assert_eq!((value(PARAMETER), sh(parts), value("link.mtu@v0")), before);
            assert!(journals(&folder).is_empty());
        });
    }

    #[test]
    fn the_host_puts_back_by_itself_when_the_connection_goes() {
        in_scene(|folder| {
            let parts = "ethtool -k v0 | grep -e segmentation -e checksum";
            let before = (value(PARAMETER), sh(parts));
            let mut changes = begin(&folder);
            changes.apply(&setting(PARAMETER), OURS).unwrap();
            changes.apply(&setting("offload.tx-checksum@v0"), "off").unwrap();
            changes.host.session.cut();
            wait_for("the host to put back", || (value(PARAMETER), sh(parts)) == before);
            assert_eq!(journals(&folder).len(), 1, "the run does not know yet");
            let report = changes.restore();
            assert!(report.report.is_clean() && journals(&folder).is_empty(), "{report}");
        });
    }

    #[test]
    fn what_neither_could_put_back_is_put_back_by_the_journal() {
        in_scene(|folder| {
            let before = value(PARAMETER);
            let mut changes = begin(&folder);
            changes.apply(&setting(PARAMETER), OURS).unwrap();
            let dead_man = changes.open.as_ref().unwrap().dead_man.pid;
            sh(&format!("kill -9 {dead_man}"));
            changes.host.session.cut();
            let line = format!("/proc/{dead_man}/cmdline");
            wait_for("the dead-man to be gone", || {
                std::fs::read(&line).unwrap_or_default().is_empty()
            });
            assert_eq!(value(PARAMETER), OURS, "nobody is left to put it back");
            let report = changes.restore();
            assert_eq!(report.report.entries[0].outcome, Outcome::PutBack { to: before.clone() });
            assert_eq!(value(PARAMETER), before);
        });
    }

    #[test]
    fn what_someone_else_changed_is_left_alone() {
        in_scene(|folder| {
            let mut changes = begin(&folder);
            changes.apply(&setting(PARAMETER), OURS).unwrap();
            sh("sysctl -w net.ipv4.tcp_rmem='1000 2000 3000'");
            let refused = changes.apply(&setting(PARAMETER), "4096 4096 4096").unwrap_err();
            assert!(refused.to_string().contains("someone else"), "{refused}");
            let report = changes.restore();
            assert!(report.to_string().contains("someone else"), "{report}");
            assert_eq!(value(PARAMETER), "1000 2000 3000");
            let mut changes = begin(&folder);
            changes.apply(&setting(PARAMETER), OURS).unwrap();
            sh("sysctl -w net.ipv4.tcp_rmem='1000 2000 4000'");
            changes.host.session.end();
            assert_eq!(value(PARAMETER), "1000 2000 4000", "nor does the host touch it");
        });
    }

    #[test]
    fn a_second_goodput_is_refused() {
        in_scene(|folder| {
            let first = begin(&folder);
            let second = RemoteChanges::at(host(), folder.path(), Vec::new()).err().unwrap();
            assert!(matches!(second, RemoteError::Busy { .. }), "{second}");
            drop(first);
            begin(&folder);
        });
    }

    #[test]
    fn what_is_kept_stays() {
        in_scene(|folder| {
            let mut changes = begin(&folder);
            changes.apply(&setting(PARAMETER), OURS).unwrap();
            changes.keep().unwrap();
            assert_eq!(value(PARAMETER), OURS);
            assert!(journals(&folder).is_empty());
        });
    }

    #[test]
    fn what_the_kernel_refuses_is_as_before() {
        in_scene(|folder| {
            let mut changes = begin(&folder);
            let congestion = setting("sysctl.net.ipv4.tcp_congestion_control");
            let before = value(&congestion.to_string());
            assert!(changes.apply(&congestion, "no_such_one").is_err());
            assert!(changes.apply(&setting("link.mtu@nosuch"), "1400").is_err());
            assert!(changes.apply(&setting("qdisc.htb.rate@v0:1:1"), "1mbit").is_err());
            assert_eq!(value(&congestion.to_string()), before);
            assert!(changes.restore().report.is_clean());
        });
    }
}
