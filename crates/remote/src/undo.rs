//! Cleans up over SSH what a host alone could not put back.

use std::fmt;
use std::path::{Path, PathBuf};

use goodput_settings::{
    ChangeKind, FileOutcome, Forget, JournalContents, Outcome, RestoreReport, Restored, TakenBack,
    UndoRequest, log_change_at,
};

use crate::awaited::Notify;
use crate::entry::{Cell, Entry};
use crate::error::RemoteError;
use crate::host::{Host, is_an_id};
use crate::journal::{Contents, Found, Journal, Line, Owner, all, remove_unfinished};
use crate::others::{await_dead_man, refuse_others};
use crate::put_back::put_back;
use crate::saved::{not_taken_back, take_back};
use crate::ssh::DeadManId;
use crate::written::WrittenThere;

/// Stands for a host that a damaged journal does not name.
const UNKNOWN: &str = "a host reached by SSH";

/// What happened to the changes of one run at one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteReport {
    /// The host, as `ssh://…`.
    pub host: String,
    /// What happened to them.
    pub report: RestoreReport,
    /// Whether a process there goes on putting back what is left.
    pub(crate) host_goes_on: bool,
}

/// What to know of a host that puts back by itself.
const GOES_ON_HINT: &str = "if the connection is lost, the host puts back its settings by itself within a minute, \
                            but no files; then ";

/// What to know of a host on which something is still to be put back.
const LEFT_HINT: &str = "`goodput settings undo` settles this as soon as the host answers; only `goodput settings undo \
                         --forget-unseen` gives up what can't be put back";

impl fmt::Display for RemoteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.report.to_string();
        let hint = self.hint();
        let lines = lines.lines().chain(hint.as_deref());
        let lines = lines.map(|line| format!("{}: {line}", self.host));
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

impl RemoteReport {
    /// Nothing at the host goes on putting back.
    pub(crate) fn new(host: String, report: RestoreReport) -> Self {
        Self { host, report, host_goes_on: false }
    }

    /// What to know if something is still to be put back.
    fn hint(&self) -> Option<String> {
        let goes_on = if self.host_goes_on { GOES_ON_HINT } else { "" };
        self.is_left().then(|| format!("{goes_on}{LEFT_HINT}"))
    }

    /// What is not as it was before the run, in one line; empty if all is.
    pub fn not_back(&self) -> String {
        // If a host can't be reached, someone has to know how it comes back.
        let hint = self.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        match self.report.is_clean() {
            true => String::new(),
            false => format!("{}: {}{hint}", self.host, self.report.not_back()),
        }
    }

    /// Whether something is still to be put back.
    fn is_left(&self) -> bool {
        let RestoreReport { entries, files, .. } = &self.report;
        entries.iter().any(|entry| !is_settled(entry))
            || files.iter().any(|file| !file.is_settled())
    }

    /// Why the host may not be changed before someone has looked at this, if so.
    pub(crate) fn objection(&self) -> Option<RemoteError> {
        let RestoreReport { entries, files, .. } = &self.report;
        let of_setting = entries.iter().find_map(|entry| match entry.outcome {
            Outcome::InUse { pid } => Some(pid),
            _ => None,
        });
        let of_file = files.iter().find_map(|file| match file.outcome {
            FileOutcome::InUse { pid } => Some(pid),
            _ => None,
        });
        let at_work = of_setting.or(of_file);
        let (host, left) = (self.host.clone(), self.to_string());
        match at_work {
            Some(pid) => Some(RemoteError::Busy { host, process: format!("process {pid} here") }),
            None if self.report.problem.is_some() => Some(RemoteError::Damaged { left }),
            None if self.is_left() => Some(RemoteError::LeftChanged { host, left }),
            None => None,
        }
    }
}

fn is_settled(restored: &Restored) -> bool {
    !matches!(restored.outcome, Outcome::Failed(_))
}

/// Puts back what dead runs left changed at hosts, with one report for each run that changed something. Changes
/// of live runs are left alone and reported. With [`Forget::Unseen`], changes that can't be put back are given up: the
/// host can't be reached, is another machine now, or refuses.
///
/// `notify` is told what is waited for there.
pub fn undo(state_dir: &Path, request: UndoRequest, notify: &Notify) -> Vec<RemoteReport> {
    remove_unfinished(state_dir);
    let settled = all(state_dir).map(|found| match found {
        Ok(found) => settle(found, request, notify),
        Err((path, error)) => report(UNKNOWN, path, Vec::new(), Some(error.to_string())),
    });
    settled.filter(|found| !is_silent(found)).collect()
}

/// The same for a host with a session, before a new run changes it, under whatever name dead runs knew it. Journals
/// that can't be read may be about this host too. What this process itself is changing is left out: at another host that
/// looks like this one, or it is refused by [`refuse_others`].
pub(crate) fn undo_at(state_dir: &Path, host: &mut Host) -> Vec<RemoteReport> {
    let settled = all(state_dir).filter_map(|found| match found {
        Ok(found) => (is_about(&found, host) && !is_own(&found)).then(|| settle_at(found, host)),
        Err((path, error)) => Some(report(UNKNOWN, path, Vec::new(), Some(error.to_string()))),
    });
    let settled: Vec<_> = settled.collect();
    settled.into_iter().filter(|found| !is_silent(found)).collect()
}

/// Whether a journal may be about this host as it is now.
fn is_about(found: &Found, host: &Host) -> bool {
    let Some(owner) = &found.text.says.owner else { return found.problem().is_some() };
    match relation(owner, host) {
        Relation::Same => true,
        Relation::Rebooted | Relation::Unknown => owner.host == host.address.to_string(),
        // The changes are not here.
        Relation::OtherNamespace | Relation::OtherMachine => false,
    }
}

/// Whether this process is making the changes of a journal.
fn is_own(found: &Found) -> bool {
    found.journal.is_none() && found.text.says.owner.as_ref().is_some_and(Owner::is_this_process)
}

/// How the host that answers now relates to the host of a journal.
#[derive(Debug, PartialEq, Eq)]
enum Relation {
    /// The same running system.
    Same,
    /// The same machine after a reboot.
    Rebooted,
    /// The same running kernel, in another network namespace or jail.
    OtherNamespace,
    /// Another machine.
    OtherMachine,
    /// Another boot, of a machine that has no id.
    Unknown,
}

/// Judged by the boot id, which two machines share only if they were resumed from one snapshot (random(4) of Linux,
/// kern.boot_id), by the place there, and by the machine's own id. An earlier version of goodput has noted less of the place.
fn relation(owner: &Owner, host: &Host) -> Relation {
    let boot = owner.identity.first();
    if boot.is_some() && boot == host.identity.first() {
        let is_same = owner.identity.iter().zip(&host.identity).all(|(one, other)| one == other);
        return if is_same { Relation::Same } else { Relation::OtherNamespace };
    }
    match (owner.machine.as_ref().filter(|id| is_an_id(id)), &host.machine) {
        (Some(one), Some(other)) if one == other => Relation::Rebooted,
        (Some(_), Some(_)) => Relation::OtherMachine,
        _ => Relation::Unknown,
    }
}

fn is_silent(found: &RemoteReport) -> bool {
    let RestoreReport { entries, files, problem, notes, .. } = &found.report;
    entries.is_empty() && files.is_empty() && problem.is_none() && notes.is_empty()
}

fn report(
    host: &str,
    journal: PathBuf,
    entries: Vec<Restored>,
    problem: Option<String>,
) -> RemoteReport {
    let report = RestoreReport { entries, problem, ..RestoreReport::empty(journal) };
    RemoteReport::new(host.into(), report)
}

/// What is known about a journal without its host: a live run holds it, it may not be used, or nothing is left to do.
fn without_host(
    found: Found,
    request: UndoRequest,
) -> Result<(Journal, Contents, Owner), Box<RemoteReport>> {
    let problem = found.problem();
    let Found { path, text, journal } = found;
    let usable = text.foreign().is_none() && request.use_damaged;
    let contents = text.says;
    let owner = contents.owner.as_ref();
    let host = owner.map_or(UNKNOWN, |owner| &owner.host);
    let Some(journal) = journal else {
        let pid = owner.map_or(0, |owner| owner.pid);
        let entries = outcomes(&contents.entries, |_| Outcome::InUse { pid });
        let files = files(&contents.written, &FileOutcome::InUse { pid });
        return Err(with_files(report(host, path, entries, None), files).into());
    };
    if let Some(problem) = problem.filter(|_| !usable) {
        let report = report(host, path, untouched(&contents.entries), Some(problem));
        let files = files(&contents.written, &FileOutcome::Untouched);
        return Err(with_files(report, files).into());
    }
    match contents.owner.clone() {
        Some(owner) if !contents.is_empty() => Ok((journal, contents, owner)),
        Some(_) => Err(close(host, &journal, Vec::new()).into()),
        // It is unknown at which host they are.
        None => {
            let report = close(host, &journal, untouched(&contents.entries));
            let files = files(&contents.written, &FileOutcome::Untouched);
            Err(with_files(report, files).into())
        }
    }
}

/// The same outcome for each file, the last one first.
fn files(written: &[WrittenThere], outcome: &FileOutcome) -> Vec<TakenBack> {
    let of = |file: &WrittenThere| TakenBack { path: file.path.clone(), outcome: outcome.clone() };
    written.iter().rev().map(of).collect()
}

/// The report with what became of files.
fn with_files(mut report: RemoteReport, files: Vec<TakenBack>) -> RemoteReport {
    report.report.files = files;
    report
}

fn untouched(entries: &[Entry]) -> Vec<Restored> {
    outcomes(entries, |Entry { main, .. }| Outcome::Untouched {
        original: main.original.clone(),
        ours: main.made.clone().unwrap_or_default(),
    })
}

/// Settles a journal by logging in to its host.
fn settle(found: Found, request: UndoRequest, notify: &Notify) -> RemoteReport {
    let (mut journal, contents, owner) = match without_host(found, request) {
        Ok(found) => found,
        Err(report) => return *report,
    };
    let back = match reach(&owner).map(|host| host.notifying(notify)) {
        Ok(mut host) => put_all_back(&mut host, &owner, &contents),
        Err(error) => Back::failed(&contents, &error.to_string()),
    };
    let back = match request.forget {
        Forget::Unseen => back.forgotten(),
        Forget::Nothing | Forget::Gone => back,
    };
    finish(&owner.host, &mut journal, &contents, back)
}

/// Settles a journal at its host. A reboot has undone all settings, those in damaged lines too.
fn settle_at(found: Found, host: &mut Host) -> RemoteReport {
    let owner = found.text.says.owner.as_ref();
    let use_damaged = owner.is_some_and(|owner| relation(owner, host) == Relation::Rebooted);
    let request = UndoRequest { use_damaged, ..UndoRequest::default() };
    let (mut journal, contents, owner) = match without_host(found, request) {
        Ok(found) => found,
        Err(report) => return *report,
    };
    let back = put_all_back(host, &owner, &contents);
    finish(&owner.host, &mut journal, &contents, back)
}

/// Gives up a change that could not be put back.
fn forgotten(restored: Restored) -> Restored {
    let Outcome::Failed(why) = restored.outcome else { return restored };
    let now = format!("forgotten, and may still be changed there ({why})");
    Restored { outcome: Outcome::ChangedByOther { now, ours: String::new() }, ..restored }
}

fn reach(owner: &Owner) -> Result<Host, RemoteError> {
    Host::open(&owner.host.parse()?, &owner.access)
}

/// One outcome per entry, the last change first.
fn outcomes(entries: &[Entry], outcome: impl Fn(&Entry) -> Outcome) -> Vec<Restored> {
    let of =
        |entry: &Entry| Restored { setting: entry.main.setting.clone(), outcome: outcome(entry) };
    entries.iter().rev().map(of).collect()
}

/// What became of the changes of one run.
pub(crate) struct Back {
    /// Of its settings, the last one first.
    entries: Vec<Restored>,
    /// Of its files, the last one first.
    files: Vec<TakenBack>,
}

impl Back {
    /// Puts everything back, at a host where nobody else may begin meanwhile.
    pub(crate) fn at(host: &mut Host, contents: &Contents) -> Self {
        let (system, entries) = (host.system, &contents.entries);
        let entries = restored(entries, put_back(system, &mut host.session, entries));
        Self { entries, files: take_back(system, &mut host.session, &contents.written) }
    }

    /// Nothing could be put back.
    pub(crate) fn failed(contents: &Contents, why: &str) -> Self {
        let entries = outcomes(&contents.entries, |_| Outcome::Failed(why.into()));
        Self { entries, files: not_taken_back(&contents.written, why) }
    }

    /// A reboot has undone everything but the files.
    fn after_reboot(contents: &Contents, files: Vec<TakenBack>) -> Self {
        Self { entries: outcomes(&contents.entries, |_| Outcome::Rebooted), files }
    }

    /// Gives up what could not be put back.
    fn forgotten(mut self) -> Self {
        self.entries = self.entries.into_iter().map(forgotten).collect();
        for file in &mut self.files {
            if let FileOutcome::Failed(why) = &mut file.outcome {
                file.outcome = FileOutcome::GivenUp(std::mem::take(why));
            }
        }
        self
    }

    /// Whether there are files, and nothing is left to do about them.
    fn settles_files(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(TakenBack::is_settled)
    }

    /// Whether nothing is left to do.
    fn is_settled(&self) -> bool {
        self.entries.iter().all(is_settled) && self.files.iter().all(TakenBack::is_settled)
    }
}

/// Puts everything back that belongs to this boot and network namespace of the host.
fn put_all_back(host: &mut Host, owner: &Owner, contents: &Contents) -> Back {
    let relation = relation(owner, host);
    let why = match relation {
        Relation::Same => None,
        Relation::Rebooted if contents.written.is_empty() => {
            return Back::after_reboot(contents, Vec::new());
        }
        Relation::Rebooted => None,
        Relation::OtherNamespace => {
            Some("it belongs to another network namespace or jail of that host; log in to that one")
        }
        Relation::OtherMachine => Some("another machine answers at this name now"),
        Relation::Unknown => Some(
            "the host has rebooted, which has undone it, or another machine answers at this name now; \
             the host has no id that tells machines apart (/etc/machine-id, kern.hostuuid)",
        ),
    };
    if let Some(why) = why {
        return Back::failed(contents, why);
    }
    let begun = begin_to_put_back(host, &owner.dead_man());
    match (relation, begun) {
        (Relation::Rebooted, begun) => {
            let files = match begun {
                Ok(()) => take_back(host.system, &mut host.session, &contents.written),
                Err(error) => not_taken_back(&contents.written, &error.to_string()),
            };
            Back::after_reboot(contents, files)
        }
        (_, Ok(())) => Back::at(host, contents),
        (_, Err(error)) => Back::failed(contents, &error.to_string()),
    }
}

/// Makes sure that nobody else changes the host or puts something back there: neither the dead-man of the run, nor another
/// run, nor one that begins meanwhile.
pub(crate) fn begin_to_put_back(host: &mut Host, of_run: &DeadManId) -> Result<(), RemoteError> {
    host.stand_by()?;
    await_dead_man(host, of_run)?;
    refuse_others(host)
}

/// The outcomes of all entries, the last change first.
fn restored(entries: &[Entry], outcomes: Vec<Outcome>) -> Vec<Restored> {
    let of = |(entry, outcome): (&Entry, Outcome)| Restored {
        setting: entry.main.setting.clone(),
        outcome,
    };
    entries.iter().zip(outcomes).rev().map(of).collect()
}

/// Enters into the log of changes what is back, whether it was put back from here or by the host itself.
fn log_what_is_back(host: &str, journal: &Journal, contents: &Contents, entries: &[Restored]) {
    for Restored { setting, outcome } in entries {
        let entry = contents.entries.iter().find(|entry| entry.main.setting == *setting);
        let Some(Cell { original, made, .. }) = entry.map(|entry| &entry.main) else { continue };
        let from = match (outcome, made) {
            (Outcome::PutBack { .. } | Outcome::AlreadyBack, Some(made)) => made,
            // A change that was cut: nobody has read what it left.
            (Outcome::PutBack { .. }, None) => "unknown",
            _ => continue,
        };
        if from != original {
            log_change_at(host, journal.path(), setting, [from, original], ChangeKind::PutBack);
        }
    }
}

/// Notes what is settled, and closes the journal if nothing else is left.
pub(crate) fn finish(
    host: &str,
    journal: &mut Journal,
    contents: &Contents,
    back: Back,
) -> RemoteReport {
    log_what_is_back(host, journal, contents, &back.entries);
    let (is_settled, settles_files) = (back.is_settled(), back.settles_files());
    let Back { entries, files } = back;
    let report = match is_settled {
        true => close(host, journal, entries),
        false => {
            let settled_files = settles_files.then_some(files.len());
            left(host, journal, contents, entries, settled_files)
        }
    };
    with_files(report, files)
}

/// Notes what is settled while something is left: settings, and this many changes of files, if all of them are.
fn left(
    host: &str,
    journal: &mut Journal,
    contents: &Contents,
    entries: Vec<Restored>,
    settled_files: Option<usize>,
) -> RemoteReport {
    let settled_files = settled_files.map(|changes| journal.note(&Line::FilesSettled { changes }));
    let mut problem = settled_files.and_then(Result::err).map(|error| error.to_string());
    for restored in entries.iter().filter(|restored| is_settled(restored)) {
        let entry = contents.entries.iter().find(|e| e.main.setting == restored.setting);
        for entry in entry.into_iter() {
            let noted = journal.note(&Line::Settled { main: entry.main.clone() });
            problem = problem.or(noted.err().map(|error| error.to_string()));
        }
    }
    noted(report(host, journal.path().into(), entries, problem), journal)
}

fn close(host: &str, journal: &Journal, entries: Vec<Restored>) -> RemoteReport {
    let problem = journal.close().err().map(|error| error.to_string());
    noted(report(host, journal.path().into(), entries, problem), journal)
}

/// With what else a person should know about the journal.
fn noted(mut report: RemoteReport, journal: &Journal) -> RemoteReport {
    report.report.notes.extend(journal.notes());
    report
}
