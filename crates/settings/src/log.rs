//! The log of all changes, for people. Nothing is put back by it: that is what journals are for.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use goodput_model::SettingRef;
use serde::{Deserialize, Serialize};

use crate::place::Place;

/// Its file in the state directory.
const NAME: &str = "changes.log";

/// The part before, if an older version of goodput has renamed it.
const OLDER_NAME: &str = "changes.log.1";

/// So much is read at a time, from the end on, bytes.
const BLOCK_BYTES: u64 = 64 << 10;

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
        let _ = append(&folder.join(NAME), &format!("{line}\n"));
    }
}

/// Inode number of this thread's network namespace; `None` if `/proc` doesn't say.
pub fn network_namespace() -> Option<u64> {
    Place::here().ok().map(|here| here.netns)
}

/// One system call, so that lines of several processes don't mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(file)?.write_all(line.as_bytes())
}

/// A part of the log, the newest change first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// The changes.
    pub changes: Vec<LoggedChange>,
    /// Where the changes before them end; `None` if there are none.
    pub older: Option<u64>,
}

/// At most `most` changes of the log of `state_dir`: those before a place that [`LogPart::older`] named, or the newest ones. What
/// is added meanwhile moves no place. A line that is no change is left out.
///
/// # Errors
/// When there is a log that can't be read.
pub fn part(state_dir: &Path, before: Option<u64>, most: usize) -> io::Result<LogPart> {
    let log = Log::open(state_dir)?;
    let mut from = before.unwrap_or(u64::MAX).min(log.length());
    let mut lines = Backwards { log, from, text: Vec::new() };
    let mut changes = Vec::new();
    while changes.len() < most {
        let Some((at, line)) = lines.next()? else {
            return Ok(LogPart { changes, older: None });
        };
        from = at;
        changes.extend(serde_json::from_slice::<LoggedChange>(&line).ok());
    }
    Ok(LogPart { changes, older: (from > 0).then_some(from) })
}

/// All changes in the log of `state_dir`, the newest first.
///
/// # Errors
/// When there is a log that can't be read.
pub fn changes(state_dir: &Path) -> io::Result<Vec<LoggedChange>> {
    Ok(part(state_dir, None, usize::MAX)?.changes)
}

/// The files of a log as one, the older one first, each with its length when it was opened.
struct Log(Vec<(File, u64)>);

impl Log {
    fn open(folder: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        for name in [OLDER_NAME, NAME] {
            match File::open(folder.join(name)) {
                Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                opened => {
                    let file = opened?;
                    let length = file.metadata()?.len();
                    files.push((file, length));
                }
            }
        }
        Ok(Self(files))
    }

    fn length(&self) -> u64 {
        self.0.iter().map(|(_, length)| length).sum()
    }

    /// What is between two places.
    fn between(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut begins = 0;
        for (file, length) in &self.0 {
            let (first, last) = (from.max(begins), to.min(begins + length));
            if first < last {
                let before = text.len();
                text.resize(before + (last - first) as usize, 0);
                file.read_exact_at(&mut text[before..], first - begins)?;
            }
            begins += length;
        }
        Ok(text)
    }
}

/// The lines of a log from a place back to its beginning.
struct Backwards {
    log: Log,
    /// Where `text` begins.
    from: u64,
    /// What has been read and not returned.
    text: Vec<u8>,
}

impl Backwards {
    /// The line before, and where it begins.
    fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        loop {
            let whole = self.text.strip_suffix(b"\n").unwrap_or(&self.text);
            if let Some(end) = whole.iter().rposition(|byte| *byte == b'\n') {
                let line = self.text.split_off(end + 1);
                return Ok(Some((self.from + end as u64 + 1, line)));
            }
            if self.from == 0 {
                let first = std::mem::take(&mut self.text);
                return Ok((!first.is_empty()).then_some((0, first)));
            }
            let from = self.from.saturating_sub(BLOCK_BYTES);
            let mut text = self.log.between(from, self.from)?;
            text.append(&mut self.text);
            (self.from, self.text) = (from, text);
        }
    }
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
    fn a_long_log_is_read_in_parts_and_nothing_of_it_is_ever_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let setting: SettingRef = "offload.tso@eth0".parse().unwrap();
        let enter = |number: u32| {
            let to = format!("{number}{}", "x".repeat(number as usize % 997));
            super::enter(&folder.path().join("j"), &setting, ["", &to], ChangeKind::Set);
        };
        (0..300).for_each(enter);
        // What an older version left.
        std::fs::rename(folder.path().join(NAME), folder.path().join(OLDER_NAME)).unwrap();
        (300..1000).for_each(enter);
        let (mut before, mut found) = (None, Vec::new());
        loop {
            let part = part(folder.path(), before, 99).unwrap();
            found.extend(part.changes);
            before = part.older;
            // Another run goes on meanwhile.
            enter(1);
            if before.is_none() {
                break;
            }
        }
        let numbers: Vec<_> = found.iter().map(|one| one.to.trim_end_matches('x')).collect();
        let all: Vec<_> = (0..1000).rev().map(|number| number.to_string()).collect();
        assert_eq!(numbers, all);
        assert_eq!(changes(folder.path()).unwrap().len(), 1011, "with those meanwhile");
    }

    #[test]
    fn a_part_ends_with_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let none = LogPart { changes: Vec::new(), older: None };
        assert_eq!(part(folder.path(), None, 9).unwrap(), none);
        let setting: SettingRef = "offload.tso@eth0".parse().unwrap();
        for _ in 0..2 {
            enter(&folder.path().join("j"), &setting, ["on", "off"], ChangeKind::Set);
        }
        let places =
            [(None, 1, true), (None, 2, false), (Some(u64::MAX), 3, false), (Some(0), 3, false)];
        for (before, most, more) in places {
            let part = part(folder.path(), before, most).unwrap();
            assert_eq!(part.older.is_some(), more, "{before:?}, {most}");
        }
    }
}
