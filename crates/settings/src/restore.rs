//! Putting settings back, and the report on it.

use std::path::PathBuf;

use goodput_model::SettingRef;

use crate::beside;
use crate::error::SettingError;
use crate::footprint::Footprint;
use crate::holder::Holder;
use crate::journal::{Contents, Durable, Entry, JournalContents, JournalFile, Line};
use crate::life::{self, Life};
use crate::log::{self, ChangeKind};
use crate::lookup::machine;
use crate::machine::device;
use crate::place::Place;
use crate::setting::Machine;
use crate::side_effects::{self, Changed};
use crate::written::{FileOutcome, TakenBack, Written};

/// What became of the changes of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
    /// The journal of the changes. It is removed once everything is settled.
    pub journal: PathBuf,
    /// Every changed setting, the last change first.
    pub entries: Vec<Restored>,
    /// Every file that the run wrote and did not keep, the last one first.
    pub files: Vec<TakenBack>,
    /// Why the journal itself could not be used or removed, if so.
    pub problem: Option<String>,
    /// What else a person should know about the journal.
    pub notes: Vec<String>,
}

/// Which changes of other network namespaces are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Forget {
    /// None.
    #[default]
    Nothing,
    /// Those of namespaces that are certainly gone.
    Gone,
    /// Also those of namespaces that may exist but can't be seen from here.
    Unseen,
}

/// What happened to one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The setting.
    pub setting: SettingRef,
    /// What happened to it.
    pub outcome: Outcome,
}

/// The end of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The original was written and read back.
    PutBack {
        /// The original value.
        to: String,
    },
    /// It had its original value already.
    AlreadyBack,
    /// It has neither the original value nor ours; left alone.
    ChangedByOther {
        /// The value now, or why there is none.
        now: String,
        /// What we had set.
        ours: String,
    },
    /// Its device or route is gone, and the change with it.
    Gone {
        /// What is gone, as a sentence.
        why: String,
    },
    /// The machine has rebooted since, which undid the change. Left alone: the present value is the
    /// administrator's.
    Rebooted,
    /// The dead run's guard put it back while we waited for the guard.
    ByGuard {
        /// The original value.
        to: String,
    },
    /// A live run has changed it and will put it back itself; left alone.
    InUse {
        /// The process of that run.
        pid: u32,
    },
    /// The same in another network namespace: nothing of it is in this one.
    InUseElsewhere {
        /// The process of that run.
        pid: u32,
    },
    /// Someone else is working on it, and it is no run that is seen from here; left alone.
    Held(Holder),
    /// It belongs to another network namespace; kept in the journal.
    OtherNamespace {
        /// The prefix that makes a command run there. `None`: the namespace is gone.
        enter: Option<String>,
    },
    /// The same, and this is why the namespace's existence can't be seen from here.
    NamespaceUnseen(&'static str),
    /// It belonged to a network namespace that is gone, and the change is gone too.
    NamespaceGone,
    /// The journal is damaged, so nobody knows whether this is all of it; left alone.
    Untouched {
        /// The value before the run.
        original: String,
        /// What the run had set or was about to set.
        ours: String,
    },
    /// It could not be put back, for this reason; kept in the journal.
    Failed(String),
}

impl RestoreReport {
    /// The report on a journal without a change.
    pub fn empty(journal: PathBuf) -> Self {
        let (entries, files, notes) = Default::default();
        Self { journal, entries, files, problem: None, notes }
    }

    /// The report on a journal that can't be used.
    pub(crate) fn unusable(journal: PathBuf, problem: String) -> Self {
        Self { problem: Some(problem), ..Self::empty(journal) }
    }

    /// The report on a journal that can't be opened.
    pub(crate) fn unopened(journal: PathBuf, cause: &std::io::Error) -> Self {
        Self::unusable(journal, format!("it can't be opened: {cause}"))
    }

    /// Whether everything is as it was before the run.
    pub fn is_clean(&self) -> bool {
        self.problem.is_none()
            && self.entries.iter().all(Restored::is_as_before)
            && self.files.iter().all(TakenBack::is_as_before)
    }

    /// What is not as it was before the run, in one line; empty if all is.
    pub fn not_back(&self) -> String {
        let left = self.entries.iter().filter(|entry| !entry.is_as_before()).cloned().collect();
        let files = self.files.iter().filter(|file| !file.is_as_before()).cloned().collect();
        let notes = if self.problem.is_some() { self.notes.clone() } else { Vec::new() };
        Self { entries: left, files, notes, ..self.clone() }.to_string().replace('\n', "; ")
    }

    /// The same for this network namespace: what belongs to another one is neither changed here nor put back from here.
    pub fn is_clean_here(&self) -> bool {
        let elsewhere = |e: &Restored| {
            use Outcome::{InUseElsewhere, NamespaceUnseen, OtherNamespace};
            matches!(e.outcome, OtherNamespace { .. } | NamespaceUnseen(_) | InUseElsewhere { .. })
        };
        let entries = self.entries.iter().filter(|entry| !elsewhere(entry)).cloned().collect();
        Self { entries, ..self.clone() }.is_clean()
    }

    /// Whether there was nothing to put back and nothing to report.
    pub(crate) fn is_silent(&self) -> bool {
        let nothing = self.entries.is_empty() && self.files.is_empty() && self.notes.is_empty();
        self.problem.is_none() && nothing
    }

    /// Why nothing more may be changed before someone has looked at this, if so: the journal of a dead run can't be read,
    /// and nobody knows what that run left.
    pub(crate) fn objection(&self) -> Option<SettingError> {
        let report = self.problem.is_some().then(|| self.to_string())?;
        Some(SettingError::Unreadable { report })
    }

    /// Whether a live run is at work there.
    pub(crate) fn is_in_use(&self) -> bool {
        let is_in_use = |outcome: &Outcome| match outcome {
            Outcome::InUse { .. } | Outcome::InUseElsewhere { .. } => true,
            Outcome::Held(holder) => holder.is_run(),
            _ => false,
        };
        let is_file_in_use = |outcome: &FileOutcome| match outcome {
            FileOutcome::InUse { .. } => true,
            FileOutcome::Held(holder) => holder.is_run(),
            _ => false,
        };
        self.entries.iter().any(|entry| is_in_use(&entry.outcome))
            || self.files.iter().any(|file| is_file_in_use(&file.outcome))
    }

    /// Whether anyone else is at work there.
    pub(crate) fn is_held(&self) -> bool {
        self.is_in_use() || self.is_waited_for()
    }

    /// Whether someone holds the journal who is no run that is seen from here.
    fn is_waited_for(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.outcome, Outcome::Held(_)))
            || self.files.iter().any(|file| matches!(file.outcome, FileOutcome::Held(_)))
    }
}

impl Restored {
    /// Whether nothing of the change is left.
    fn is_as_before(&self) -> bool {
        use Outcome::{AlreadyBack, ByGuard, Gone, NamespaceGone, PutBack, Rebooted};
        matches!(
            self.outcome,
            PutBack { .. } | ByGuard { .. } | AlreadyBack | Rebooted | NamespaceGone | Gone { .. }
        )
    }
}

impl std::fmt::Display for RestoreReport {
    /// One line per setting, and one for everything that is to be said about the journal.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = self.entries.iter().map(|e| format!("{}: {}", e.setting, e.outcome));
        let files = self.files.iter().map(ToString::to_string);
        let held = self.is_waited_for().then(|| "this journal is still held".to_string());
        let journal = self.problem.iter().chain(&self.notes).chain(&held);
        let journal = journal.map(|why| format!("{}: {why}", self.journal.display()));
        f.write_str(&settings.chain(files).chain(journal).collect::<Vec<_>>().join("\n"))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PutBack { to } => write!(f, "put back to {to}"),
            Self::AlreadyBack => f.write_str("already as it was"),
            Self::ChangedByOther { now, ours } => {
                write!(f, "changed by someone else: now {now}, goodput had set {ours}; left alone")
            }
            Self::Gone { why } => write!(f, "{why}, and the change went with it"),
            Self::Rebooted => f.write_str("a reboot has already undone it; not touched"),
            Self::ByGuard { to } => {
                write!(f, "put back to {to} by the guard of the interrupted run")
            }
            Self::InUse { pid } => write!(
                f,
                "still changed by a run at work (process {pid}), which puts it back when it ends"
            ),
            Self::InUseElsewhere { pid } => write!(
                f,
                "changed in another network namespace by a run at work (process {pid}), which puts it back when it \
                 ends; nothing of it is in this one"
            ),
            Self::Untouched { original, ours } => {
                let set = if ours.is_empty() { String::new() } else { format!(", and the run set {ours}") };
                write!(f, "left alone: before the run it was {original}{set}")
            }
            Self::Held(holder @ Holder::RunElsewhere { .. }) => {
                write!(f, "still changed: {holder}, and puts it back when it ends")
            }
            Self::Held(holder) => {
                write!(f, "not put back yet: {holder}; run `goodput settings undo` again")
            }
            Self::OtherNamespace { enter: Some(enter) } => write!(
                f,
                "belongs to another network namespace; run `goodput settings undo` in it, with \
                 `{enter}` before the command"
            ),
            Self::OtherNamespace { enter: None } => f.write_str(
                "belongs to a network namespace that is gone; `goodput settings undo --forget` forgets it",
            ),
            Self::NamespaceUnseen(why) => write!(
                f,
                "belongs to another network namespace, which may still exist ({why}); run \
                 `goodput settings undo` in it, or `goodput settings undo --forget-unseen` if you know that the namespace is gone"
            ),
            Self::NamespaceGone => f.write_str("its network namespace is gone; forgotten"),
            Self::Failed(why) => write!(f, "not put back: {why}"),
        }
    }
}

impl Outcome {
    /// The end of a change whose device or route is gone. `what` also names the devices that are there, and says what to do
    /// about it: that is for whoever asked for a setting.
    pub(crate) fn gone(what: &str) -> Self {
        let missing = what.split([',', ';']).next().unwrap_or(what);
        Self::Gone { why: format!("there is no {missing} any more") }
    }
}

/// Enters into the log what was put back.
fn log_what_is_back(journal: &JournalFile, contents: &Contents, entries: &[Restored]) {
    for Restored { setting, outcome } in entries {
        let entry = contents.entries.iter().find(|entry| entry.setting == *setting);
        if let (Outcome::PutBack { to }, Some(entry)) = (outcome, entry) {
            log::enter(journal.path(), setting, [&last(entry), to], ChangeKind::PutBack);
        }
    }
}

/// Puts back what `contents` lists, last change first, and notes in `journal` what is settled.
pub(crate) fn settle_contents(
    journal: &mut JournalFile,
    contents: &Contents,
    forget: Forget,
) -> RestoreReport {
    let mut report = RestoreReport::empty(journal.path().into());
    let before = contents;
    let mut contents = contents.clone();
    let contents = &mut contents;
    let result = Place::here().and_then(|here| {
        for setting in contents.undo_order() {
            let outcome = match outcome(&setting, contents, &here, journal) {
                Outcome::OtherNamespace { .. } => elsewhere(contents, forget),
                outcome => outcome,
            };
            report.entries.push(Restored { setting, outcome });
        }
        // Some values can be written only once another setting is back: a macvlan's MTU can't exceed the MTU of the
        // device below.
        if report.entries.iter().any(|entry| matches!(entry.outcome, Outcome::PutBack { .. })) {
            let failed = |entry: &&mut Restored| matches!(entry.outcome, Outcome::Failed(_));
            for entry in report.entries.iter_mut().filter(failed) {
                entry.outcome = outcome(&entry.setting, contents, &here, journal);
            }
        }
        let files = before.written.iter().rev().flat_map(Written::take_back);
        report.files = files.collect();
        log_what_is_back(journal, before, &report.entries);
        tidy(journal, &report)
    });
    report.problem = result.err().map(|error| error.to_string());
    report
}

/// Closes the journal, or notes which settings, and whether the files, are settled.
fn tidy(journal: &mut JournalFile, report: &RestoreReport) -> Result<(), SettingError> {
    let RestoreReport { entries, files, .. } = report;
    let are_back = files.iter().all(TakenBack::is_settled);
    if are_back && entries.iter().all(is_settled) {
        return journal.close();
    }
    if are_back && !files.is_empty() {
        // Files outlast a reboot: without this line, it would take them back once more.
        journal.append(&Line::FilesSettled { changes: files.len() }, Durable::Yes)?;
    }
    entries.iter().filter(|entry| is_settled(entry)).try_for_each(|entry| {
        journal.append(&Line::Settled { setting: entry.setting.clone() }, Durable::No)
    })
}

fn is_settled(entry: &Restored) -> bool {
    use Outcome::{Failed, Held, NamespaceUnseen, OtherNamespace};
    !matches!(entry.outcome, OtherNamespace { .. } | NamespaceUnseen(_) | Failed(_) | Held(_))
}

fn outcome(
    setting: &SettingRef,
    contents: &mut Contents,
    here: &Place,
    journal: &mut JournalFile,
) -> Outcome {
    let Some(entry) = contents.of(setting).cloned() else { return Outcome::AlreadyBack };
    match put_back(&entry, contents, here, journal) {
        Ok(outcome) => outcome,
        // This run removed the object with another setting, and our change with it.
        Err(SettingError::Gone { .. }) if entry.dragged.contains(&None) => Outcome::AlreadyBack,
        // If its device or route is gone, so is our change.
        Err(SettingError::Gone { what, .. }) => Outcome::gone(&what),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

fn put_back(
    entry: &Entry,
    contents: &mut Contents,
    here: &Place,
    journal: &mut JournalFile,
) -> Result<Outcome, SettingError> {
    let setting = &entry.setting;
    let place = contents.owner.as_ref().map(|owner| &owner.place);
    if place.is_some_and(|place| !place.same_boot(here)) {
        return Ok(Outcome::Rebooted);
    }
    let machine = machine(setting)?;
    let elsewhere = place.is_some_and(|place| !place.same_namespace(here));
    if machine.namespaced(setting) && elsewhere {
        return Ok(Outcome::OtherNamespace { enter: None });
    }
    if let Some(now) = entry.link.and_then(|link| device::renamed(setting, link)) {
        return Err(SettingError::Renamed { setting: setting.clone(), now });
    }
    if machine.capture(setting)? != entry.exact {
        let now = machine.read(setting)?;
        let ours = entry.known_values().any(|ours| machine.same(ours, &now));
        if !ours && !is_cut_short(machine, entry, &now) {
            return Ok(Outcome::ChangedByOther { now, ours: last(entry) });
        }
    }
    carry_out(machine, entry, contents, journal)
}

/// Puts a setting back, and notes this before and after.
fn carry_out(
    machine: &dyn Machine,
    entry: &Entry,
    contents: &mut Contents,
    journal: &mut JournalFile,
) -> Result<Outcome, SettingError> {
    let begin = |around| {
        let to = entry.original.clone();
        let (setting, original, exact) = (entry.setting.clone(), to.clone(), entry.exact.clone());
        let (link, rounded) = (entry.link, None);
        // Without this line another process may not know what was cut short here. Yet a disk that has filled up
        // must not leave anything changed.
        let line = Line::Intent { setting, original, exact, to, rounded, around, link };
        let _ = journal.append(&line, Durable::No);
    };
    let all = contents.entries.iter().map(|entry| &entry.setting);
    let beside = beside::values(all, machine, &entry.setting);
    let brought = bring_back(machine, contents, entry, begin)?;
    if !brought.left.is_empty() {
        let left = brought.left.join("; ");
        return Ok(Outcome::Failed(format!(
            "the value is back, but not what changed with it: {left}"
        )));
    }
    let effective = Line::Effective {
        setting: entry.setting.clone(),
        value: entry.original.clone(),
        around: brought.changed,
        beside: beside::altered(&beside),
    };
    if brought.wrote {
        // As above.
        let _ = journal.append(&effective, Durable::No);
    }
    contents.add(effective);
    Ok(match brought.wrote {
        false => Outcome::AlreadyBack,
        true => Outcome::PutBack { to: entry.original.clone() },
    })
}

/// Whether our last change, cut short, may have left this value.
fn is_cut_short(machine: &dyn Machine, entry: &Entry, now: &str) -> bool {
    let values: Vec<&str> = entry.known_values().map(String::as_str).collect();
    entry.may_have_become(now) || (entry.doubt.is_some() && machine.is_between(now, &values))
}

/// The work of putting a setting back.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    /// Whether anything was written.
    pub(crate) wrote: bool,
    /// What still differs from the original, for a person.
    pub(crate) left: Vec<String>,
    /// What is around the setting afterwards, as far as it was different before.
    pub(crate) changed: Changed,
}

/// Writes the original of a setting and of everything that changed along with it, unless all of it is back already.
/// What another setting of the run holds is left out. Before anything is written, `begin` gets the differences between
/// the setting's surroundings now and before the first change.
pub(crate) fn bring_back(
    machine: &dyn Machine,
    contents: &Contents,
    entry: &Entry,
    begin: impl FnOnce(Changed),
) -> Result<Brought, SettingError> {
    let setting = &entry.setting;
    // A journal of an older version lists no side effects.
    let footprint = match entry.before.is_empty() {
        true => Footprint::Nothing,
        false => machine.footprint(setting),
    };
    let (now, unseen) = match side_effects::capture(setting, &footprint) {
        Ok(now) => (now, None),
        // The value itself can still be put back.
        Err(why) => (entry.before.clone(), Some(why.to_string())),
    };
    let mut target = contents.target(entry, &now);
    target.retain(|cell, _| footprint.covers(cell));
    let is_back = machine.capture(setting)? == entry.exact;
    if is_back && side_effects::differing(&target, &now).is_empty() && unseen.is_none() {
        return Ok(Brought::default());
    }
    begin(side_effects::changed(&entry.before, &now));
    // Some values can be written only once others are back, so only the final state counts.
    let written = if is_back { Ok(()) } else { machine.write(setting, &entry.exact) };
    #[cfg(test)]
    crate::testing::step();
    let (left, then) = match unseen {
        Some(why) => (vec![why], now.clone()),
        None => side_effects::bring_about(setting, &footprint, &target)?,
    };
    let mut after = machine.capture(setting)?;
    if !machine.same(&after, &entry.exact) && entry.doubt.is_some() {
        // The surroundings noted when the interrupted change began may contain an earlier value of this setting.
        machine.write(setting, &entry.exact)?;
        after = machine.capture(setting)?;
    }
    if machine.same(&after, &entry.exact) {
        return Ok(Brought { wrote: true, left, changed: side_effects::changed(&now, &then) });
    }
    written?;
    let (asked, effective) = (entry.exact.clone(), after);
    Err(SettingError::NotEffective { setting: setting.clone(), asked, effective, not_back: None })
}

/// What happens to a change that belongs to another namespace.
fn elsewhere(contents: &Contents, forget: Forget) -> Outcome {
    let Some(owner) = &contents.owner else { return Outcome::OtherNamespace { enter: None } };
    match (life::of(&owner.place), forget) {
        (Life::Lives(file), _) => Outcome::OtherNamespace { enter: Some(life::enter(&file)) },
        (Life::Gone, Forget::Nothing) => Outcome::OtherNamespace { enter: None },
        (Life::Unseen(why), Forget::Nothing | Forget::Gone) => Outcome::NamespaceUnseen(why),
        (Life::Gone | Life::Unseen(_), _) => Outcome::NamespaceGone,
    }
}

pub(crate) fn last(entry: &Entry) -> String {
    entry.ours.last().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(setting: &str, outcome: Outcome) -> Restored {
        Restored { setting: setting.parse().unwrap(), outcome }
    }

    #[test]
    fn only_what_is_not_back_is_named_as_such_in_one_line() {
        let theirs = Outcome::ChangedByOther { now: "700".into(), ours: "500".into() };
        let mut report = RestoreReport {
            entries: vec![
                restored(
                    "sysctl.net.ipv4.tcp_no_metrics_save",
                    Outcome::PutBack { to: "0".into() },
                ),
                restored("link.txqueuelen@v0", theirs.clone()),
                restored("link.txqueuelen@v1", theirs),
            ],
            ..RestoreReport::empty("/state/1.journal.jsonl".into())
        };
        let changed = "changed by someone else: now 700, goodput had set 500; left alone";
        let both = ["v0", "v1"].map(|device| format!("link.txqueuelen@{device}: {changed}"));
        assert_eq!(report.not_back(), both.join("; "));
        assert!(!report.is_clean());
        report.entries.truncate(1);
        assert_eq!((report.not_back(), report.is_clean()), (String::new(), true));
    }

    #[test]
    fn a_device_that_is_gone_took_the_change_with_it() {
        let gone = restored(
            "link.txqueuelen@d0",
            Outcome::gone("device d0, only lo, v0; name one of these"),
        );
        let report = RestoreReport {
            entries: vec![gone],
            ..RestoreReport::empty("/state/1.journal.jsonl".into())
        };
        let said =
            "link.txqueuelen@d0: there is no device d0 any more, and the change went with it";
        assert_eq!(report.to_string(), said);
        assert!(report.is_clean(), "nothing is left to put back");
    }
}
