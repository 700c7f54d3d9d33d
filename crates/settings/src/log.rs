//! The log of all changes, for people. Nothing is put back by it: that is what journals are for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use goodput_model::SettingRef;
use serde::{Deserialize, Serialize};

use crate::place::Place;

/// Its file in the state directory.
const NAME: &str = "changes.log";

/// What a full log is renamed to. The one before it is lost.
const OLDER_NAME: &str = "changes.log.1";

/// From this size on, a log is full, bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The newest part of each file that is read, bytes.
const MAX_READ_BYTES: u64 = 1 << 20;

/// What the file of a journal has behind the name of its run.
const JOURNAL_EXTENSION: &str = "jsonl";

/// One change of a setting of this host, or of a host reached by SSH from here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedChange {
    /// When, seconds since 1970 by this host's clock.
    pub at_unix_s: u64,
    /// What was changed.
    pub setting: String,
    /// Its value before.
    pub from: String,
    /// Its value after.
    pub to: String,
    /// What the change was.
    pub what: ChangeKind,
    /// The name of the run's journal, which no other run has; absent in logs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Inode number of the network namespace in which it was made, as in `net:[4026531833]`; absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<u64>,
    /// The host that was changed by SSH, as `ssh://…`; absent: this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl LoggedChange {
    /// The journal of the run that made it, which is gone once there is nothing to put back. The run is named after it.
    pub(crate) fn journal(&self, state_dir: &Path) -> Option<PathBuf> {
        Some(state_dir.join(format!("{}.{JOURNAL_EXTENSION}", self.run.as_ref()?)))
    }
}

/// What a change was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A new value.
    Set,
    /// The original value again.
    PutBack,
}

/// Adds a change of this host to the log beside `journal`. A log that can't be written stops no change, and above all
/// none that puts something back.
pub(crate) fn enter(journal: &Path, setting: &SettingRef, values: [&str; 2], what: ChangeKind) {
    add(journal, LoggedChange { netns: network_namespace(), ..of(journal, setting, values, what) });
}

/// The same for a host that is changed by SSH, `ssh://…`. Of values, the first is that before.
pub fn enter_at(
    host: &str,
    journal: &Path,
    setting: &SettingRef,
    values: [&str; 2],
    what: ChangeKind,
) {
    add(journal, LoggedChange { host: Some(host.into()), ..of(journal, setting, values, what) });
}

fn of(
    journal: &Path,
    setting: &SettingRef,
    [from, to]: [&str; 2],
    what: ChangeKind,
) -> LoggedChange {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (setting, from, to) = (setting.to_string(), from.to_owned(), to.to_owned());
    let run = journal.file_stem().map(|name| name.to_string_lossy().into_owned());
    let (netns, host) = (None, None);
    LoggedChange { at_unix_s: now.as_secs(), setting, from, to, what, run, netns, host }
}

fn add(journal: &Path, change: LoggedChange) {
    if let (Some(folder), Ok(line)) = (journal.parent(), serde_json::to_string(&change)) {
        let _ = rename_full(folder);
        let _ = append(&folder.join(NAME), &format!("{line}\n"));
    }
}

/// Inode number of this thread's network namespace; `None` if `/proc` doesn't say.
pub fn network_namespace() -> Option<u64> {
    Place::here().ok().map(|here| here.netns)
}

/// Makes room for a new log once the present one is full.
fn rename_full(folder: &Path) -> io::Result<()> {
    let log = folder.join(NAME);
    match log.symlink_metadata()?.len() >= MAX_BYTES {
        true => fs::rename(log, folder.join(OLDER_NAME)),
        false => Ok(()),
    }
}

/// One system call, so that lines of several processes don't mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(file)?.write_all(line.as_bytes())
}

/// The changes in the log of `state_dir`, the newest first: those of the last megabyte of each of its two files. A line
/// that is no change, such as the first one of that part, is left out.
///
/// # Errors
/// When there is a log that can't be read.
pub fn changes(state_dir: &Path) -> io::Result<Vec<LoggedChange>> {
    let mut found = newest(&state_dir.join(NAME))?;
    found.extend(newest(&state_dir.join(OLDER_NAME))?);
    Ok(found)
}

fn newest(file: &Path) -> io::Result<Vec<LoggedChange>> {
    let mut file = match File::open(file) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_READ_BYTES)))?;
    let mut text = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_changes_are_read_whatever_else_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(changes(folder.path()).unwrap(), []);
        let journal = folder.path().join("a.journal");
        let setting: SettingRef = "offload.tso@eth0".parse().unwrap();
        enter(&journal, &setting, ["on", "off"], ChangeKind::Set);
        append(&folder.path().join(NAME), "{\"cut short\n\u{fffd}\n").unwrap();
        enter(&journal, &setting, ["off", "on"], ChangeKind::PutBack);
        let found = changes(folder.path()).unwrap();
        let old = r#"{"at_unix_s":1,"setting":"s","from":"a","to":"b","what":"set"}"#;
        append(&folder.path().join(OLDER_NAME), &format!("{old}\n")).unwrap();
        let old = changes(folder.path()).unwrap().pop().unwrap();
        assert_eq!((old.run, old.netns, old.host), (None, None, None));
        let seen: Vec<_> = found.iter().map(|one| (&*one.from, &*one.to, one.what)).collect();
        assert_eq!(seen, [("off", "on", ChangeKind::PutBack), ("on", "off", ChangeKind::Set)]);
        assert_eq!(found[0].setting, "offload.tso@eth0");
        assert_eq!(found[0].run.as_deref(), Some("a"));
        assert!(found[0].netns.is_some() && found[0].netns == network_namespace());
        assert!(found[0].at_unix_s > 1_700_000_000);
        enter_at("ssh://b", &journal, &setting, ["on", "off"], ChangeKind::Set);
        let there = changes(folder.path()).unwrap().remove(0);
        assert_eq!((there.host.as_deref(), there.netns), (Some("ssh://b"), None));
    }

    #[test]
    fn a_full_log_is_renamed_and_only_one_older_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (log, older) = (folder.path().join(NAME), folder.path().join(OLDER_NAME));
        let setting: SettingRef = "offload.tso@eth0".parse().unwrap();
        let enter = || enter(&folder.path().join("j"), &setting, ["on", "off"], ChangeKind::Set);
        for filler in ["a", "b"] {
            fs::write(&log, filler.repeat(MAX_BYTES as usize - 2) + "\n").unwrap();
            enter();
            enter();
            assert!(fs::read_to_string(&older).unwrap().starts_with(filler));
            assert_eq!(changes(folder.path()).unwrap().len(), 2, "one in each");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn of_a_long_log_the_end_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let setting: SettingRef = "offload.tso@eth0".parse().unwrap();
        let value = "x".repeat(1000);
        for number in 0..1200 {
            let to = format!("{number}{value}");
            enter(&folder.path().join("j"), &setting, ["", &to], ChangeKind::Set);
        }
        let found = changes(folder.path()).unwrap();
        assert!((800..1000).contains(&found.len()), "{}", found.len());
        assert!(found[0].to.starts_with("1199x"));
    }
}
