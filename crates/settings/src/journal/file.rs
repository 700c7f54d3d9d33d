//! One journal on disk: created, locked, listed, appended to, removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::asker::Asker;
use super::closing::{close, set_aside};
use super::contents::{Contents, JOURNAL_FORMAT_VERSION, Line, Owner};
use super::last_line::{LastLine, mend_end};
use super::list::List;
use super::own_folder::{lock_folder, make_own_folder, own, sync_folder};
use super::sealed_line::seal;
use crate::error::SettingError;
use crate::place::Place;

/// Suffix of journals' names.
pub(super) const SUFFIX: &str = ".journal.jsonl";

/// In place of the end of [`SUFFIX`] until the first line is on disk. So a journal without a first line is a damaged
/// one, and not one whose writer died early. A file that such a writer leaves has changed nothing.
const UNNAMED: &str = "new";

/// The end of the name of a journal that has no first line yet.
const UNNAMED_SUFFIX: &str = ".journal.new";

/// Removes files that writers left when they died before the first line of their journal was on disk. The folder is
/// locked, so that nobody is writing such a line. Others' files stay, and so does what can't be removed: it does no harm.
pub(super) fn remove_unnamed(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|name| name.ends_with(UNNAMED_SUFFIX)) && is_left(&path) {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Whether a journal without a name is ours, and its writer is gone.
fn is_left(unnamed: &Path) -> bool {
    let opened = open_own(unnamed).ok().flatten();
    opened.is_some_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// An open journal. It is locked as long as this value lives.
#[derive(Debug)]
pub(crate) struct JournalFile {
    file: File,
    path: PathBuf,
    list: List,
    length: u64,
    /// What its end was when it was opened.
    end: LastLine,
    /// Whether a line can't be read.
    damaged: bool,
}

impl JournalFile {
    /// Creates the journal of this process in `state_dir`, which is created if need be.
    ///
    /// # Errors
    /// If it can't be written, or `others` finds the process of another run that changes this namespace now.
    pub(super) fn create(
        state_dir: &Path,
        place: &Place,
        asker: Asker,
        others: impl FnOnce(&Path, &List) -> io::Result<Option<u32>>,
    ) -> Result<Self, SettingError> {
        let fail =
            |operation, cause| SettingError::Journal { operation, path: state_dir.into(), cause };
        make_own_folder(state_dir).map_err(|cause| fail("create the directory of", cause))?;
        // The guard runs in another directory, so the path must not be relative.
        let folder = state_dir.canonicalize().map_err(|cause| fail("find", cause))?;
        let list = List::of(&folder)?;
        let _listing = list.lock()?;
        let pid = std::process::id();
        let path = folder.join(format!("{}-{pid}{SUFFIX}", now_ns()));
        let _busy = lock_folder(&folder).map_err(|cause| fail("lock", cause))?;
        let other = others(&folder, &list).map_err(|cause| fail("look next to", cause))?;
        if let Some(pid) = other {
            return Err(SettingError::Busy { pid });
        }
        let unnamed = path.with_extension(UNNAMED);
        let created = Self::create_locked(&unnamed, path, list);
        let mut journal = created.map_err(|cause| fail("create", cause))?;
        let (format, place) = (JOURNAL_FORMAT_VERSION, place.clone());
        let begin = Line::Begin(Owner { format, pid, place, asker });
        let named = |journal: &Self| fs::rename(&unnamed, &journal.path);
        let written = journal
            .append(&begin, Durable::Yes)
            .and_then(|()| named(&journal).map_err(|cause| fail("name", cause)))
            .and_then(|()| journal.list.add(&journal.path))
            .and_then(|()| sync_folder(&folder).map_err(|cause| fail("sync", cause)));
        match written {
            Ok(()) => Ok(journal),
            Err(error) => {
                // The journal holds no change yet. Report the first error.
                let _ = fs::remove_file(&unnamed).or_else(|_| fs::remove_file(&journal.path));
                Err(error)
            }
        }
    }

    /// Creates the file under a name at which nobody looks, until its first line is on disk.
    fn create_locked(unnamed: &Path, path: PathBuf, list: List) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create_new(true).mode(0o600).open(unnamed)?;
        rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        Ok(Self { file, path, list, length: 0, end: LastLine::Ended, damaged: false })
    }

    /// Opens a journal and waits until its owner has released it. `None`: it is closed.
    pub(crate) fn take_over(path: &Path) -> io::Result<Option<Self>> {
        Self::open(path, FlockOperation::LockExclusive)
    }

    /// Opens a journal whose owner is dead. `None`: it is closed or its owner lives.
    pub(super) fn open_abandoned(path: &Path) -> io::Result<Option<Self>> {
        Self::open(path, FlockOperation::NonBlockingLockExclusive)
    }

    fn open(path: &Path, operation: FlockOperation) -> io::Result<Option<Self>> {
        let Some(mut file) = open_own(path)? else { return Ok(None) };
        match rustix::io::retry_on_intr(|| flock(&file, operation)) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            other => other?,
        }
        // The process that held the lock before may have closed the journal in the meantime.
        let status = file.metadata()?;
        if status.nlink() == 0 {
            return Ok(None);
        }
        let list = List::of(path.parent().unwrap_or(Path::new("/"))).map_err(io::Error::other)?;
        let end = mend_end(&mut file)?;
        let (length, path, damaged) = (file.metadata()?.len(), path.into(), false);
        Ok(Some(Self { file, path, list, length, end, damaged }))
    }

    /// The contents of the journal at `path`, and whether its owner lives. `None`: it is closed.
    pub(crate) fn peek(path: &Path) -> io::Result<Option<(Contents, bool)>> {
        let Some(mut file) = open_own(path)? else { return Ok(None) };
        // Shared, so that two processes that look at the same time don't mistake each other for the owner.
        let alive = match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(rustix::io::Errno::WOULDBLOCK) => true,
            other => other.map(|()| false)?,
        };
        // Nor does a process that takes the journal over mistake this one for the owner.
        let _ = flock(&file, FlockOperation::Unlock);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let closed = file.metadata()?.nlink() == 0;
        Ok((!closed).then(|| (Contents::parse(&bytes), alive)))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its contents.
    pub(crate) fn contents(&mut self) -> Result<Contents, SettingError> {
        let mut bytes = Vec::new();
        self.file
            .rewind()
            .and_then(|()| self.file.read_to_end(&mut bytes))
            .map_err(|cause| self.failed("read", cause))?;
        let contents = Contents::parse(&bytes);
        self.damaged = contents.damage().is_some();
        Ok(contents)
    }

    /// What its end was when it was opened.
    pub(crate) fn end(&self) -> LastLine {
        self.end
    }

    /// Adds a line, whole or not at all.
    pub(crate) fn append(&mut self, line: &Line, durable: Durable) -> Result<(), SettingError> {
        #[cfg(test)]
        crate::testing::step();
        let line = seal(line).map_err(|e| self.failed("write", e.into()))?;
        let text = [self.end.line_break(), &line].concat();
        let written = self.file.write_all(&text).and_then(|()| match durable {
            Durable::Yes => self.file.sync_all(),
            Durable::No => Ok(()),
        });
        match written {
            Ok(()) => {
                self.length += text.len() as u64;
                self.end = self.end.followed();
            }
            Err(cause) => {
                // A partial line in front of the next one would spoil both. Shrinking needs no
                // space; if it still fails, the line is reported as unreadable.
                let _ = self.file.set_len(self.length);
                return Err(self.failed("write", cause));
            }
        }
        Ok(())
    }

    /// Where a damaged journal is once it is closed.
    pub(crate) fn set_aside(&self) -> Option<PathBuf> {
        set_aside(&self.path).filter(|_| self.damaged)
    }

    /// Closes the journal: nothing is left to put back. A damaged one is set aside.
    pub(crate) fn close(&self) -> Result<(), SettingError> {
        close(&self.path, self.damaged).map_err(|error| self.failed("remove", error))?;
        // A dangling line of the list does no harm; the next run removes it.
        let _ = self.list.remove(&self.path);
        Ok(())
    }

    fn failed(&self, operation: &'static str, cause: io::Error) -> SettingError {
        SettingError::Journal { operation, path: self.path.clone(), cause }
    }

    /// Makes every further line fail as on a full disk (full(4)).
    #[cfg(test)]
    pub(crate) fn fill_disk(&mut self) {
        self.file = OpenOptions::new().append(true).open("/dev/full").unwrap();
    }
}

impl Drop for JournalFile {
    fn drop(&mut self) {
        // Closing alone would leave the lock with a child between its fork and its exec.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Opens a journal of this user. `None`: it is closed. Files of others must not steer what
/// we change, and anything but a regular file must not make us wait.
fn open_own(path: &Path) -> io::Result<Option<File>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = OpenOptions::new().read(true).append(true).custom_flags(flags).open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let status = file.metadata()?;
    if !status.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    own(&status)?;
    Ok(Some(file))
}

/// Whether a line must be on disk before going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// It must survive a power cut.
    Yes,
    /// It must survive the death of this process; for this, writing is enough.
    No,
}

/// Makes names unique within one process. Their order also shows people which came first.
fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}
