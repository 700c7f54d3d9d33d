//! The changes made at a host, on this host's disk, in case the host can't put them back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use goodput_settings::{
    LastLine, close, lines, make_own_folder, mend_end, seal, set_aside, unseal,
};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::entry::{Cell, Entry};
use crate::error::RemoteError;
use crate::ssh::Access;

/// Suffix of these journals' names.
const SUFFIX: &str = ".remote.jsonl";

/// The version of the format that is written.
const FORMAT_VERSION: u32 = 2;

/// The versions that can be read. The first had neither the machine nor the values that a change under way can leave.
const KNOWN_FORMATS: std::ops::RangeInclusive<u32> = 1..=FORMAT_VERSION;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(crate) enum Line {
    /// The first line.
    Begin(Owner),
    /// A setting is about to be changed.
    Intent {
        /// The setting, with its value before the first change.
        main: Cell,
        /// What may change along with it, with the values before the first change.
        around: Vec<Cell>,
        /// The value that it is about to get.
        to: String,
    },
    /// The last change was carried out.
    Effective {
        /// The setting now.
        main: Cell,
        /// What was changed along with it.
        around: Vec<Cell>,
    },
    /// There is nothing left to do about a setting.
    Settled {
        /// The setting.
        main: Cell,
    },
}

/// Which host was changed, from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// [`FORMAT_VERSION`] of the writer.
    pub(crate) format: u32,
    /// Process id of the run here, for people.
    pub(crate) pid: u32,
    /// The host, as `ssh://…`.
    pub(crate) host: String,
    /// How it was reached.
    pub(crate) access: Access,
    /// What the host reported about its boot and the place of the session.
    pub(crate) identity: Vec<String>,
    /// Distinguishes that machine from every other one, if the host reports this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) machine: Option<String>,
    /// Process id of the dead-man there.
    pub(crate) dead_man: u32,
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The first line, if it can be read.
    pub(crate) owner: Option<Owner>,
    /// The entries to put back, in the order of the changes.
    pub(crate) entries: Vec<Entry>,
    /// Numbers of the lines that can't be read, from 1.
    pub(crate) unreadable: Vec<usize>,
}

impl Contents {
    /// Reads a journal. The beginning of a line at its end was interrupted before its change was made. The first line was
    /// whole before the journal got its name: a journal without it is damaged.
    fn parse(bytes: &[u8]) -> Self {
        let mut contents = Self::default();
        let (whole, rest) = lines(bytes);
        let last = matches!(LastLine::of(rest), LastLine::Unbroken | LastLine::Damaged);
        for (index, line) in whole.chain(last.then_some(rest)).enumerate() {
            match unseal(line) {
                Some(line) => contents.add(line),
                None => contents.unreadable.push(index + 1),
            }
        }
        contents
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Begin(owner) => self.owner = Some(owner),
            Line::Intent { main, around, .. } => {
                let entry = Entry { main, around, doubt: true };
                let mut entries = self.entries.iter_mut();
                match entries.find(|known| known.main.setting == entry.main.setting) {
                    Some(known) => *known = entry,
                    None => self.entries.push(entry),
                }
            }
            Line::Effective { main, around } => {
                let found = self.entries.iter_mut().find(|e| e.main.setting == main.setting);
                let Some(entry) = found else { return };
                entry.doubt = false;
                entry.cells_mut().for_each(|cell| cell.made = None);
                for made in std::iter::once(main).chain(around) {
                    let cell = entry.cells_mut().find(|cell| cell.setting == made.setting);
                    cell.into_iter().for_each(|cell| cell.made.clone_from(&made.made));
                }
            }
            Line::Settled { main } => {
                self.entries.retain(|entry| entry.main.setting != main.setting);
                // Later changes found a value of our own making.
                for entry in &mut self.entries {
                    entry.around.retain(|cell| cell.setting != main.setting);
                }
            }
        }
    }

    /// Why nothing is put back by this journal unless a person asks for that, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        self.foreign().or_else(|| self.damage())
    }

    /// Why this goodput can't use the journal at all, if so.
    pub(crate) fn foreign(&self) -> Option<String> {
        let foreign = self.owner.as_ref().filter(|owner| !KNOWN_FORMATS.contains(&owner.format));
        foreign
            .map(|owner| format!("its format is {}; use the version that wrote it", owner.format))
    }

    /// How the journal is damaged, and what a person can do, if it is.
    fn damage(&self) -> Option<String> {
        let undo = "`goodput settings undo --damaged`";
        match (&self.owner, self.unreadable.first()) {
            (Some(_), None) => None,
            (None, None) if self.entries.is_empty() => None,
            (Some(_), Some(line)) => Some(format!(
                "it is damaged: line {line} is not valid; nothing was changed; {undo} puts back what its other lines \
                 say, and sets it aside"
            )),
            (None, _) => Some(format!(
                "it is damaged: its first line is not valid; nothing was changed; put back by hand what it names, \
                 then {undo} sets it aside"
            )),
        }
    }
}

/// An open journal, locked as long as this value lives.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    /// What its end was when it was opened.
    end: LastLine,
    /// Whether a line can't be read.
    damaged: bool,
}

impl Journal {
    /// Begins a journal in `state_dir`.
    pub(crate) fn create(
        state_dir: &Path,
        owner: impl FnOnce(u32, u32) -> Owner,
    ) -> Result<Self, RemoteError> {
        let fail = |cause| RemoteError::Journal { path: state_dir.into(), cause };
        make_own_folder(state_dir).map_err(fail)?;
        let pid = std::process::id();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let path = state_dir.join(format!("{now}-{pid}{SUFFIX}"));
        // Nobody looks there, so a journal without a first line is a damaged one, and not one whose writer died early.
        let unnamed = path.with_extension("new");
        let mut journal = Self::new(&unnamed, path).map_err(fail)?;
        let begun = journal.append(&Line::Begin(owner(FORMAT_VERSION, pid)));
        let named = begun.and_then(|()| fs::rename(&unnamed, &journal.path));
        let synced = named.and_then(|()| File::open(state_dir)?.sync_all());
        match synced {
            Ok(()) => Ok(journal),
            Err(cause) => {
                // It holds no change yet.
                let _ = fs::remove_file(&unnamed).or_else(|_| fs::remove_file(&journal.path));
                Err(fail(cause))
            }
        }
    }

    /// A new, locked file at `unnamed`, which will be at `path`.
    fn new(unnamed: &Path, path: PathBuf) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true).mode(0o600);
        let file = options.open(unnamed)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { file, path, end: LastLine::Ended, damaged: false })
    }

    /// Adds a line, which is on disk when this returns.
    fn append(&mut self, line: &Line) -> io::Result<()> {
        let text = [self.end.line_break(), &seal(line)?].concat();
        let length = self.file.metadata()?.len();
        self.file.write_all(&text).and_then(|()| self.file.sync_all()).inspect_err(|_| {
            // A partial line in front of the next one would spoil both.
            let _ = self.file.set_len(length);
        })?;
        self.end = self.end.followed();
        Ok(())
    }

    /// Adds a line, which is on disk when this returns.
    pub(crate) fn note(&mut self, line: &Line) -> Result<(), RemoteError> {
        let written = self.append(line);
        written.map_err(|cause| RemoteError::Journal { path: self.path.clone(), cause })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What its end was when it was opened.
    pub(crate) fn end(&self) -> LastLine {
        self.end
    }

    /// Where a damaged journal is once it is closed. `None`: it is whole, or not closed.
    pub(crate) fn set_aside(&self) -> Option<PathBuf> {
        set_aside(&self.path).filter(|_| self.damaged)
    }

    /// Removes the journal: nothing is left to put back. A damaged one is set aside.
    pub(crate) fn close(&self) -> Result<(), RemoteError> {
        let closed = close(&self.path, self.damaged);
        closed.map_err(|cause| RemoteError::Journal { path: self.path.clone(), cause })
    }
}

/// A journal in a directory.
pub(crate) struct Found {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its contents.
    pub(crate) contents: Contents,
    /// The journal itself, unless a live run holds it.
    pub(crate) journal: Option<Journal>,
}

/// The journals in `state_dir`, the last one first. A journal that can't be read is an error in its place. Each is
/// opened and locked only when its turn comes: others may need the rest meanwhile.
pub(crate) fn all(
    state_dir: &Path,
) -> impl Iterator<Item = Result<Found, (PathBuf, io::Error)>> + use<> {
    let entries = fs::read_dir(state_dir).into_iter().flatten().flatten();
    let ours = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(SUFFIX));
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(ours).collect();
    paths.sort();
    let open = |path: PathBuf| match open(&path) {
        Ok(found) => found.map(Ok),
        Err(error) => Some(Err((path, error))),
    };
    paths.into_iter().rev().filter_map(open)
}

/// Opens a journal. `None`: it was closed meanwhile.
fn open(path: &Path) -> io::Result<Option<Found>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = OpenOptions::new().read(true).append(true).custom_flags(flags).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let status = file.metadata()?;
    // A file that someone else wrote must not steer what we change.
    if !status.is_file() || status.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is no file of this user"));
    }
    let free = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => false,
        other => other.map(|()| true)?,
    };
    if file.metadata()?.nlink() == 0 {
        return Ok(None);
    }
    let end = if free { mend_end(&mut file)? } else { LastLine::Ended };
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let contents = Contents::parse(&bytes);
    let damaged = contents.damage().is_some();
    let journal = free.then(|| Journal { file, path: path.into(), end, damaged });
    Ok(Some(Found { path: path.into(), contents, journal }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use crate::systems;
    use proptest::prelude::*;

    fn cell(made: Option<&str>) -> Cell {
        let show = "ip -j -p link show dev eth0";
        let mut shell = Scripted::default().prints(show, "[{\"mtu\":1500}]");
        let system = systems::of(&mut Scripted::default().prints("uname -s", "Linux")).unwrap();
        let setting = "link.mtu@eth0".parse().unwrap();
        let mut cell = Cell::found(system, &mut shell, setting).unwrap();
        cell.made = made.map(Into::into);
        cell
    }

    fn owner(format: u32, pid: u32) -> Owner {
        let (host, identity) = ("ssh://b".into(), vec!["boot".into()]);
        let machine = Some("m".into());
        Owner { format, pid, host, access: Access::default(), identity, machine, dead_man: 7 }
    }

    #[test]
    fn a_journal_says_what_is_to_be_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), owner).unwrap();
        let intent = Line::Intent { main: cell(None), around: Vec::new(), to: "9000".into() };
        journal.note(&intent).unwrap();
        let contents = || all(folder.path()).next().unwrap().ok().unwrap().contents;
        assert!(contents().entries[0].doubt);
        journal.note(&Line::Effective { main: cell(Some("9000")), around: Vec::new() }).unwrap();
        assert_eq!(contents().entries[0].main, cell(Some("9000")));
        let found = all(folder.path()).next().unwrap().ok().unwrap();
        assert!(found.journal.is_none(), "its run lives");
        journal.note(&Line::Settled { main: cell(None) }).unwrap();
        assert!(contents().entries.is_empty());
        journal.close().unwrap();
        assert_eq!(all(folder.path()).count(), 0);
    }

    #[test]
    fn a_journal_holds_up_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        drop(Journal::create(folder.path(), owner).unwrap());
        drop(Journal::create(folder.path(), owner).unwrap());
        // A process started by another test also holds the locks until its program begins.
        goodput_testing::wait_for("both to be free at once", || {
            let mut found = all(folder.path());
            let first = found.next().unwrap().ok().unwrap();
            let second = all(folder.path()).nth(1).unwrap().ok().unwrap();
            first.journal.is_some() && second.journal.is_some()
        });
    }

    #[test]
    fn damage_is_reported_and_a_torn_line_is_none() {
        let line = serde_json::to_string(&Line::Begin(owner(FORMAT_VERSION, 1))).unwrap();
        assert_eq!(Contents::parse(format!("{line}\n{{\"li").as_bytes()).problem(), None);
        assert!(
            Contents::parse(format!("{line}\nx\n").as_bytes()).problem().unwrap().contains("2")
        );
        let overwritten = format!("{line}\n{line}x");
        assert!(Contents::parse(overwritten.as_bytes()).problem().unwrap().contains("line 2"));
        let newer = line.replace("\"format\":2", "\"format\":3") + "\n";
        assert!(Contents::parse(newer.as_bytes()).problem().unwrap().contains("format is 3"));
        let older = line.replace("\"format\":2", "\"format\":1").replace(",\"machine\":\"m\"", "");
        assert_eq!(Contents::parse((older + "\n").as_bytes()).problem(), None);
        for damaged in [&b""[..], b"\n", &[0; 300], &line.as_bytes()[..60]] {
            assert!(Contents::parse(damaged).problem().unwrap().contains("first line"));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_contents(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            Contents::parse(&bytes);
        }
    }
}
