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

/// A line that is longer is no change, but what a crash left, bytes.
const MAX_LINE_BYTES: usize = 1 << 20;

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
/// is added meanwhile moves no place. A line that is no change is left out, and so is one of more than 1 MiB.
///
/// # Errors
/// When there is a log that can't be read.
pub fn part(state_dir: &Path, before: Option<u64>, most: usize) -> io::Result<LogPart> {
    let log = Log::open(state_dir)?;
    let mut from = before.unwrap_or(u64::MAX).min(log.length());
    let mut lines = Backwards::before(from, &log);
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

/// The files of a log as one, the older one first, each with its length when it was opened.
pub(crate) struct Log(Vec<(File, u64)>);

impl Log {
    /// The log of a folder as it is now: what is added later is not in it.
    ///
    /// # Errors
    /// When there is a log that can't be read.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
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

    /// Shows all changes to `see`, the newest first, each as it is read: a log may be too long for memory.
    ///
    /// # Errors
    /// When it can't be read.
    pub(crate) fn each(&self, mut see: impl FnMut(LoggedChange)) -> io::Result<()> {
        let mut lines = Backwards::before(self.length(), self);
        while let Some((_, line)) = lines.next()? {
            if let Ok(change) = serde_json::from_slice(&line) {
                see(change);
            }
        }
        Ok(())
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
struct Backwards<'a> {
    log: &'a Log,
    /// Where `text` begins.
    from: u64,
    /// What has been read and not returned.
    text: Vec<u8>,
    /// Whether the end of the last line in `text` was dropped, because the line is too long.
    is_cut: bool,
}

impl<'a> Backwards<'a> {
    fn before(from: u64, log: &'a Log) -> Self {
        Self { log, from, text: Vec::new(), is_cut: false }
    }

    /// The line before, and where it begins.
    fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        loop {
            let Some(begins) = self.last_line() else {
                self.read_on()?;
                continue;
            };
            let line = self.text.split_off(begins);
            let was_cut = std::mem::take(&mut self.is_cut);
            if line.is_empty() && !was_cut {
                return Ok(None);
            }
            if !was_cut && line.len() <= MAX_LINE_BYTES {
                return Ok(Some((self.from + begins as u64, line)));
            }
        }
    }

    /// Where in `text` the last line begins; `None` if that is not read yet.
    fn last_line(&self) -> Option<usize> {
        // The line has its line end, unless that was dropped: then every line end is that of a line before.
        let inside = match self.is_cut {
            true => &self.text[..],
            false => self.text.strip_suffix(b"\n").unwrap_or(&self.text),
        };
        let before = inside.iter().rposition(|byte| *byte == b'\n');
        before.map(|end| end + 1).or((self.from == 0).then_some(0))
    }

    /// Reads what is before `text`. Of a line that is too long, nothing is kept, so that it takes neither memory nor time.
    fn read_on(&mut self) -> io::Result<()> {
        if self.is_cut || self.text.len() > MAX_LINE_BYTES {
            self.text.clear();
            self.is_cut = true;
        }
        let from = self.from.saturating_sub(BLOCK_BYTES);
        let mut text = self.log.between(from, self.from)?;
        text.append(&mut self.text);
        (self.from, self.text) = (from, text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(folder: &Path) -> io::Result<Vec<LoggedChange>> {
        part(folder, None, usize::MAX).map(|all| all.changes)
    }

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

    /// After a crash, a file may have any number of zeros where nothing was written.
    #[test]
    fn a_line_longer_than_any_change_is_passed_over() {
        let line = |to: &str| {
            format!(r#"{{"at_unix_s":1,"setting":"s","from":"","to":"{to}","what":"set"}}"#) + "\n"
        };
        let [first, last] = ["first", "last"].map(line);
        let found = |long: &str| {
            let folder = tempfile::tempdir().unwrap();
            append(&folder.path().join(NAME), &format!("{first}{long}{last}")).unwrap();
            let all = part(folder.path(), None, 9).unwrap();
            let lengths: Vec<_> = all.changes.iter().map(|one| one.to.len()).collect();
            assert_eq!(all.older, None);
            lengths
        };
        let of_length = |bytes: usize| line(&"x".repeat(bytes - line("").len()));
        let longest = MAX_LINE_BYTES - line("").len();
        assert_eq!(found(&of_length(MAX_LINE_BYTES)), [4, longest, 5], "it is a change");
        // The last of these blocks begins where the line does, or a byte beside it.
        let blocks = MAX_LINE_BYTES + BLOCK_BYTES as usize - last.len();
        for bytes in [MAX_LINE_BYTES + 1, blocks - 1, blocks, blocks + 1, 3 * MAX_LINE_BYTES] {
            assert_eq!(found(&of_length(bytes)), [4, 5], "{bytes}");
        }
        let zeros = "\0".repeat(3 * MAX_LINE_BYTES);
        assert_eq!(found(&(zeros.clone() + &line("lost with them"))), [4, 5]);
        let folder = tempfile::tempdir().unwrap();
        append(&folder.path().join(NAME), &zeros).unwrap();
        assert_eq!(changes(folder.path()).unwrap(), [], "nothing else is there");
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
