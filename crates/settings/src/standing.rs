//! Changes that stand: what was changed on purpose and kept. Each can be taken back by itself.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use goodput_model::SettingRef;

use crate::log::{ChangeKind, Log, LoggedChange, network_namespace};
use crate::lookup::read;
use crate::{Changes, GuardProgram, SettingError};

/// A change that is still in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// What was changed.
    pub setting: SettingRef,
    /// The change, as it is in the log.
    pub logged: LoggedChange,
}

impl Standing {
    /// Sets the value before the change again, until the next boot. Returns the value that is then in effect.
    ///
    /// # Errors
    /// As those of [`Changes::apply`].
    pub fn take_back(&self, state_dir: &Path, guard: GuardProgram) -> Result<String, SettingError> {
        let mut changes = Changes::begin(state_dir, guard)?;
        let effective = changes.apply(&self.setting, &self.logged.from)?;
        changes.keep()?;
        Ok(effective)
    }
}

/// The changes in the log of `state_dir` that are still in effect on this host in this network namespace, the newest
/// first: of each setting the newest one that no later one took back. Those whose run's journal is still there may be put
/// back by it.
///
/// # Errors
/// When there is a log that can't be read.
pub fn standing(state_dir: &Path) -> io::Result<Vec<Standing>> {
    let here = network_namespace();
    let is_here = |one: &LoggedChange| one.host.is_none() && one.netns == here;
    let log = Log::open(state_dir)?;
    // All that is put back must be known before the first change is judged: a run may set and put back several times.
    let mut put_back = HashSet::new();
    log.each(|one| {
        if is_here(&one) && one.what == ChangeKind::PutBack {
            put_back.insert(whose(&one));
        }
    })?;
    let mut kept = Vec::new();
    log.each(|one| {
        let is_kept =
            is_here(&one) && one.what == ChangeKind::Set && !put_back.contains(&whose(&one));
        if is_kept && one.journal(state_dir).is_none_or(|journal| !journal.exists()) {
            kept.push(one);
        }
    })?;
    kept.reverse();
    Ok(last_ones(kept).into_iter().filter_map(in_effect).collect())
}

/// The last change of each setting, the newest first. A change that takes the one before it back leaves the one before that.
fn last_ones(oldest_first: Vec<LoggedChange>) -> Vec<LoggedChange> {
    let mut standing: HashMap<String, Vec<(usize, LoggedChange)>> = HashMap::new();
    for (number, one) in oldest_first.into_iter().enumerate() {
        let earlier = standing.entry(one.setting.clone()).or_default();
        let takes_back =
            earlier.last().is_some_and(|(_, last)| (&last.from, &last.to) == (&one.to, &one.from));
        match takes_back {
            true => drop(earlier.pop()),
            false => earlier.push((number, one)),
        }
    }
    let mut last: Vec<_> = standing.into_values().filter_map(|mut all| all.pop()).collect();
    last.sort_by_key(|(number, _)| Reverse(*number));
    last.into_iter().map(|(_, one)| one).collect()
}

/// The run and the setting: a run that has put a setting back has kept none of its changes of it.
fn whose(change: &LoggedChange) -> (Option<String>, String) {
    (change.run.clone(), change.setting.clone())
}

fn in_effect(logged: LoggedChange) -> Option<Standing> {
    let setting: SettingRef = logged.setting.parse().ok()?;
    (logged.from != logged.to && read(&setting).ok()? == logged.to)
        .then_some(Standing { setting, logged })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{guard, in_scene};

    #[test]
    fn what_was_kept_stands_until_it_is_taken_back() {
        in_scene(|state_dir| {
            let setting: SettingRef = "sysctl.net.ipv4.tcp_reordering".parse().unwrap();
            let before = read(&setting).unwrap();
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            changes.apply(&setting, "7").unwrap();
            assert_eq!(standing(state_dir).unwrap(), [], "its run may put it back");
            changes.keep().unwrap();
            let found = standing(state_dir).unwrap();
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!((&found[0].logged.from, &*found[0].logged.to), (&before, "7"));
            let journal = state_dir.join("another.jsonl");
            let values = ["9", "7"];
            crate::log_change_at("ssh://b", &journal, &setting, values, ChangeKind::Set);
            assert_eq!(standing(state_dir).unwrap(), found, "another host is another one");
            assert_eq!(found[0].take_back(state_dir, guard()).unwrap(), before);
            assert_eq!(read(&setting).unwrap(), before);
            assert_eq!(standing(state_dir).unwrap(), []);
        });
    }

    #[test]
    fn what_was_changed_twice_is_taken_back_step_by_step() {
        in_scene(|state_dir| {
            let setting: SettingRef = "sysctl.net.ipv4.tcp_reordering".parse().unwrap();
            let before = read(&setting).unwrap();
            for value in ["7", "9"] {
                let mut changes = Changes::begin(state_dir, guard()).unwrap();
                changes.apply(&setting, value).unwrap();
                changes.keep().unwrap();
            }
            let stands = || standing(state_dir).unwrap().pop();
            let last = stands().unwrap();
            assert_eq!([&*last.logged.from, &*last.logged.to], ["7", "9"]);
            assert_eq!(last.take_back(state_dir, guard()).unwrap(), "7");
            let first = stands().unwrap();
            assert_eq!([&*first.logged.from, &*first.logged.to], [&*before, "7"]);
            assert_eq!(first.take_back(state_dir, guard()).unwrap(), before);
            assert_eq!(stands(), None);
        });
    }

    #[test]
    fn a_run_that_puts_its_own_changes_back_leaves_an_earlier_one_standing() {
        in_scene(|state_dir| {
            let setting: SettingRef = "sysctl.net.ipv4.tcp_reordering".parse().unwrap();
            let before = read(&setting).unwrap();
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            changes.apply(&setting, "7").unwrap();
            changes.keep().unwrap();
            let mut later = Changes::begin(state_dir, guard()).unwrap();
            later.apply(&setting, "9").unwrap();
            assert!(later.restore().is_clean());
            let found = standing(state_dir).unwrap();
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!((&found[0].logged.from, &*found[0].logged.to), (&before, "7"));
        });
    }

    #[test]
    fn what_a_run_changes_again_after_putting_it_back_does_not_stand() {
        in_scene(|state_dir| {
            std::fs::create_dir_all(state_dir).unwrap();
            let setting: SettingRef = "sysctl.net.ipv4.tcp_reordering".parse().unwrap();
            std::fs::write("/proc/sys/net/ipv4/tcp_reordering", "7").unwrap();
            let enter = |run: &str, values: [&str; 2], what| {
                crate::log::enter(&state_dir.join(run), &setting, values, what);
            };
            enter("kept.jsonl", ["3", "7"], ChangeKind::Set);
            enter("tried.jsonl", ["7", "9"], ChangeKind::Set);
            enter("tried.jsonl", ["9", "7"], ChangeKind::PutBack);
            enter("tried.jsonl", ["9", "7"], ChangeKind::Set);
            // Far more than is read at a time.
            for _ in 0..500 {
                enter("later.jsonl", ["7", "9"], ChangeKind::Set);
                enter("later.jsonl", ["9", "7"], ChangeKind::PutBack);
            }
            let found = standing(state_dir).unwrap();
            let runs: Vec<_> = found.iter().map(|one| one.logged.run.as_deref()).collect();
            assert_eq!(runs, [Some("kept")]);
        });
    }

    #[test]
    fn what_was_put_back_or_changed_by_others_does_not_stand() {
        in_scene(|state_dir| {
            let setting: SettingRef = "sysctl.net.ipv4.tcp_reordering".parse().unwrap();
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            changes.apply(&setting, "7").unwrap();
            assert!(changes.restore().is_clean());
            assert_eq!(standing(state_dir).unwrap(), []);
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            changes.apply(&setting, "7").unwrap();
            changes.keep().unwrap();
            std::fs::write("/proc/sys/net/ipv4/tcp_reordering", "9").unwrap();
            assert_eq!(standing(state_dir).unwrap(), []);
        });
    }
}
