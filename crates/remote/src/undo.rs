//! Finishing over SSH what a host could not put back by itself.

use std::fmt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use goodput_settings::{Outcome, RestoreReport, Restored};

use crate::address::Address;
use crate::entry::Entry;
use crate::error::RemoteError;
use crate::host::Host;
use crate::journal::{Contents, Found, Journal, Line, Owner, all};
use crate::put_back::put_back;
use crate::ssh::MARK;

/// How long a dead-man may take that has not heard of the end yet: its patience, and some for putting back.
const DEAD_MAN_TIME: Duration = Duration::from_secs(45);

/// What the command line of a guard of goodput on that host itself has.
const LOCAL_GUARD: &str = ".journal.jsonl";

/// What became of the changes of one run at one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteReport {
    /// The host, as `ssh://…`.
    pub host: String,
    /// What became of them.
    pub report: RestoreReport,
}

impl fmt::Display for RemoteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.report.to_string();
        let lines: Vec<_> = lines.lines().map(|line| format!("{}: {line}", self.host)).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// Puts back what runs that are no more left changed at hosts, one report for each run that changed something. Those
/// of runs that live are left alone, and are reported. With `forget`, what is at hosts that can't be reached is
/// given up.
pub fn undo(state_dir: &Path, forget: bool) -> Vec<RemoteReport> {
    let settled = all(state_dir).map(|found| match found {
        Ok(found) => settle(found, forget),
        Err((path, error)) => report("a host", path, Vec::new(), Some(error.to_string())),
    });
    settled.filter(|found| !is_silent(found)).collect()
}

/// The same for one host, before a new run changes it.
pub(crate) fn undo_at(state_dir: &Path, address: &Address) -> Vec<RemoteReport> {
    let host = address.to_string();
    let of_host = |found: &Found| found.contents.owner.as_ref().is_some_and(|o| o.host == host);
    let found = all(state_dir).flatten().filter(of_host);
    found.map(|found| settle(found, false)).filter(|found| !is_silent(found)).collect()
}

fn is_silent(found: &RemoteReport) -> bool {
    found.report.entries.is_empty() && found.report.problem.is_none()
}

fn report(
    host: &str,
    journal: PathBuf,
    entries: Vec<Restored>,
    problem: Option<String>,
) -> RemoteReport {
    RemoteReport { host: host.into(), report: RestoreReport { journal, entries, problem } }
}

fn settle(found: Found, forget: bool) -> RemoteReport {
    let Found { path, contents, journal } = found;
    let Contents { owner, entries, .. } = &contents;
    let host = owner.as_ref().map_or("a host", |owner| &owner.host).to_owned();
    let Some(mut journal) = journal else {
        let pid = owner.as_ref().map_or(0, |owner| owner.pid);
        let entries = outcomes(entries, |_| Outcome::InUse { pid });
        return report(&host, path, entries, None);
    };
    if let Some(problem) = contents.problem() {
        return report(&host, path, Vec::new(), Some(problem));
    }
    let owner = match owner {
        Some(owner) if !entries.is_empty() => owner,
        _ => return close(&host, &journal, Vec::new()),
    };
    match reach(owner) {
        Ok(mut reached) => {
            let entries = put_all_back(&mut reached, owner, entries);
            finish(&host, &mut journal, &contents, entries)
        }
        Err(_) if forget => {
            let why = "forgotten; it may still be changed there".to_owned();
            let entries = outcomes(entries, |entry| Outcome::ChangedByOther {
                now: why.clone(),
                ours: entry.main.made.clone().unwrap_or_default(),
            });
            close(&host, &journal, entries)
        }
        Err(error) => {
            let why = error.to_string();
            report(&host, path, outcomes(entries, |_| Outcome::Failed(why.clone())), None)
        }
    }
}

fn reach(owner: &Owner) -> Result<Host, RemoteError> {
    Host::open(&owner.host.parse()?, &owner.access)
}

/// The last change first.
fn outcomes(entries: &[Entry], outcome: impl Fn(&Entry) -> Outcome) -> Vec<Restored> {
    let of =
        |entry: &Entry| Restored { setting: entry.main.setting.clone(), outcome: outcome(entry) };
    entries.iter().rev().map(of).collect()
}

/// Puts everything back that belongs to this boot and network namespace of the host.
fn put_all_back(host: &mut Host, owner: &Owner, entries: &[Entry]) -> Vec<Restored> {
    match (&owner.identity[..], &host.identity[..]) {
        (before, now) if before == now => {}
        ([boot, ..], [now, ..]) if boot != now => return outcomes(entries, |_| Outcome::Rebooted),
        _ => {
            let why = "it belongs to another network namespace of that host; log in to that one";
            return outcomes(entries, |_| Outcome::Failed(why.into()));
        }
    }
    let alone = await_dead_man(host, owner.dead_man);
    if let Err(error) = alone.and_then(|()| refuse_others(host, owner.dead_man)) {
        return outcomes(entries, |_| Outcome::Failed(error.to_string()));
    }
    let mut restored = Vec::new();
    for entry in entries.iter().rev() {
        let outcome = put_back(host.system, &mut host.session, entry);
        restored.push(Restored { setting: entry.main.setting.clone(), outcome });
    }
    restored
}

/// Waits until the dead-man of a run has done its work.
pub(crate) fn await_dead_man(host: &mut Host, pid: u32) -> Result<(), RemoteError> {
    let deadline = Instant::now() + DEAD_MAN_TIME;
    while host.system.processes(&mut host.session, MARK)?.contains(&pid) {
        if Instant::now() > deadline {
            return Err(RemoteError::Busy {
                host: host.address.to_string(),
                process: format!("process {pid} there"),
            });
        }
        sleep(Duration::from_millis(300));
    }
    Ok(())
}

/// Refuses a host that another goodput is changing, from here, from elsewhere or on that host.
pub(crate) fn refuse_others(host: &mut Host, own: u32) -> Result<(), RemoteError> {
    let mut others = host.system.processes(&mut host.session, MARK)?;
    others.extend(host.system.processes(&mut host.session, LOCAL_GUARD)?);
    match others.into_iter().find(|pid| *pid != own) {
        Some(pid) => Err(RemoteError::Busy {
            host: host.address.to_string(),
            process: format!("process {pid} there"),
        }),
        None => Ok(()),
    }
}

/// Notes what is settled, and closes the journal if that is all.
pub(crate) fn finish(
    host: &str,
    journal: &mut Journal,
    contents: &Contents,
    entries: Vec<Restored>,
) -> RemoteReport {
    let is_settled = |restored: &&Restored| !matches!(restored.outcome, Outcome::Failed(_));
    if entries.iter().all(|restored| is_settled(&restored)) {
        return close(host, journal, entries);
    }
    let mut problem = None;
    for restored in entries.iter().filter(is_settled) {
        let entry = contents.entries.iter().find(|e| e.main.setting == restored.setting);
        for entry in entry.into_iter() {
            let noted = journal.note(&Line::Settled { main: entry.main.clone() });
            problem = problem.or(noted.err().map(|error| error.to_string()));
        }
    }
    report(host, journal.path().into(), entries, problem)
}

fn close(host: &str, journal: &Journal, entries: Vec<Restored>) -> RemoteReport {
    let problem = journal.close().err().map(|error| error.to_string());
    report(host, journal.path().into(), entries, problem)
}
