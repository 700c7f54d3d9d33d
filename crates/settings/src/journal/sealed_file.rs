//! A journal on disk, whatever its lines say: created, locked, opened, appended to, closed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Serialize;

use super::closing::{close, set_aside};
use super::last_line::LastLine;
use super::own_folder::{own, sync_folder};
use super::sealed_line::seal;
use super::text::{Account, JournalText};

/// In place of the end of a journal's name until the first line is on disk. So a journal without a first line is a
/// damaged one, and not one whose writer died early. A file that such a writer leaves has changed nothing.
const UNNAMED: &str = "new";

/// A journal that this process holds. It is locked as long as this value lives.
#[derive(Debug)]
pub struct SealedFile {
    file: File,
    path: PathBuf,
    /// Bytes.
    length: u64,
    /// What its end was when it was opened.
    end: LastLine,
    /// How it is damaged, if it is.
    damage: Option<String>,
}

/// A journal that was opened.
#[derive(Debug)]
pub struct Opened<A> {
    /// What it says.
    pub text: JournalText<A>,
    /// The journal itself; `None` if another process holds it.
    pub file: Option<SealedFile>,
}

impl SealedFile {
    /// Begins a journal of this process in `folder` with its `first` line. Its name ends with `suffix`, and is on disk
    /// when this returns.
    ///
    /// # Errors
    /// If it can't be written. Nothing of it is left then.
    pub fn begin(folder: &Path, suffix: &str, first: &impl Serialize) -> io::Result<Self> {
        let path = folder.join(format!("{}-{}{suffix}", now_ns(), std::process::id()));
        // Nobody looks there.
        let unnamed = path.with_extension(UNNAMED);
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create_new(true).mode(0o600).open(&unnamed)?;
        let mut journal = Self { file, path, length: 0, end: LastLine::Ended, damage: None };
        let locked =
            rustix::io::retry_on_intr(|| flock(&journal.file, FlockOperation::LockExclusive));
        let begun = locked
            .map_err(Into::into)
            .and_then(|()| journal.append(first, Durable::Yes))
            .and_then(|()| fs::rename(&unnamed, &journal.path))
            .and_then(|()| sync_folder(folder));
        match begun {
            Ok(()) => Ok(journal),
            Err(error) => {
                // It holds no change yet. Report the first error.
                let _ = fs::remove_file(&unnamed).or_else(|_| fs::remove_file(&journal.path));
                Err(error)
            }
        }
    }

    /// Opens the journal at `path`, and locks it if nobody holds it. `None`: it is closed.
    ///
    /// # Errors
    /// If it can't be read, or is not a file of this user.
    pub fn open<A: Account>(path: &Path) -> io::Result<Option<Opened<A>>> {
        Self::open_with(path, FlockOperation::NonBlockingLockExclusive)
    }

    /// The same, but waits until nobody else holds it.
    pub(super) fn take_over<A: Account>(path: &Path) -> io::Result<Option<Opened<A>>> {
        Self::open_with(path, FlockOperation::LockExclusive)
    }

    fn open_with<A: Account>(path: &Path, lock: FlockOperation) -> io::Result<Option<Opened<A>>> {
        let Some(mut file) = open_own(path)? else { return Ok(None) };
        let is_free = match rustix::io::retry_on_intr(|| flock(&file, lock)) {
            Err(rustix::io::Errno::WOULDBLOCK) => false,
            other => other.map(|()| true)?,
        };
        // The process that held the lock before may have closed the journal in the meantime.
        if file.metadata()?.nlink() == 0 {
            return Ok(None);
        }
        let text = read(&mut file)?;
        let file = is_free.then(|| Self::mended(file, path, &text)).transpose()?;
        Ok(Some(Opened { text, file }))
    }

    /// Cuts off the beginning of a line at the end, which would be joined to the next line. Everything else stays, and a
    /// line break comes first when a line is added ([`LastLine::line_break`]). If the file can't be changed, the next
    /// line will be reported as damaged.
    fn mended<A: Account>(file: File, path: &Path, text: &JournalText<A>) -> io::Result<Self> {
        let end = text.end();
        if end == LastLine::Torn {
            let _ = file.set_len(text.kept_bytes());
        }
        let length = file.metadata()?.len();
        Ok(Self { file, path: path.into(), length, end, damage: text.damage() })
    }

    /// What the journal at `path` says, and whether its owner lives. `None`: it is closed.
    pub(super) fn peek<A: Account>(path: &Path) -> io::Result<Option<(JournalText<A>, bool)>> {
        let Some(mut file) = open_own(path)? else { return Ok(None) };
        // Shared, so that two processes that look at the same time don't mistake each other for the owner.
        let alive = match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(rustix::io::Errno::WOULDBLOCK) => true,
            other => other.map(|()| false)?,
        };
        // Nor does a process that takes the journal over mistake this one for the owner.
        let _ = flock(&file, FlockOperation::Unlock);
        let text = read(&mut file)?;
        let closed = file.metadata()?.nlink() == 0;
        Ok((!closed).then_some((text, alive)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, whole or not at all.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn append(&mut self, line: &impl Serialize, durable: Durable) -> io::Result<()> {
        #[cfg(test)]
        crate::testing::step();
        let text = [self.end.line_break(), &seal(line)?].concat();
        let written = self.file.write_all(&text).and_then(|()| match durable {
            Durable::Yes => self.file.sync_all(),
            Durable::No => Ok(()),
        });
        match written {
            Ok(()) => {
                self.length += text.len() as u64;
                self.end = self.end.followed();
            }
            // A partial line in front of the next one would spoil both. Shrinking needs no
            // space; if it still fails, the line is reported as unreadable.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }

    /// Closes the journal: nothing is left to put back. A damaged one is set aside.
    ///
    /// # Errors
    /// If the file can't be removed or renamed.
    pub fn close(&self) -> io::Result<()> {
        close(&self.path, self.damage.is_some())
    }

    /// What a person should know about it once it was used: how it is damaged, and where a damaged one is once it is
    /// closed. Then what its end was.
    pub fn notes(&self) -> Vec<String> {
        let damage = self.damage.as_ref().map(|damage| match set_aside(&self.path) {
            Some(aside) => format!("it is damaged, set aside as {}: {damage}", aside.display()),
            None => format!("it is damaged: {damage}"),
        });
        damage.into_iter().chain(self.note_of_end()).collect()
    }

    /// What a person should know about its end, if that was mended.
    pub(super) fn note_of_end(&self) -> Option<String> {
        self.end.note().map(Into::into)
    }

    /// Makes every further line fail as on a full disk (full(4)).
    #[cfg(test)]
    pub(super) fn fill_disk(&mut self) {
        self.file = OpenOptions::new().append(true).open("/dev/full").unwrap();
    }
}

impl Drop for SealedFile {
    fn drop(&mut self) {
        // Closing alone would leave the lock with a child between its fork and its exec.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Whether a journal without a name is ours, and its writer is gone.
fn is_left(unnamed: &Path) -> bool {
    let opened = open_own(unnamed).ok().flatten();
    opened.is_some_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Removes files that writers left when they died before the first line of their journal was on disk. The folder is
/// locked, so that nobody is writing such a line. A journal's name ends with `suffix` once it has its first line. Others'
/// files stay, and so does what can't be removed: it does no harm.
pub(super) fn remove_unnamed(folder: &Path, suffix: &str) -> io::Result<()> {
    let unnamed = Path::new(suffix).with_extension(UNNAMED);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_unnamed = path.to_str().zip(unnamed.to_str()).is_some_and(|(p, u)| p.ends_with(u));
        if is_unnamed && is_left(&path) {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
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

fn read<A: Account>(file: &mut File) -> io::Result<JournalText<A>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(JournalText::read(&bytes))
}

/// Whether a line must be on disk before going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// It must survive a power cut.
    Yes,
    /// It must survive the death of this process; for this, writing is enough.
    No,
}

/// Makes names unique within one process. Their order also shows people which came first.
fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::super::contents::{Contents, Line};
    use super::super::last_line::lines;
    use super::*;

    #[test]
    fn only_the_beginning_of_a_line_is_cut_off_and_the_next_line_is_whole() {
        let settled = Line::Settled { setting: "offload.tso@eth0".parse().unwrap() };
        let whole = seal(&settled).unwrap();
        let begun = [&whole[..], &whole[..9]].concat();
        let unbroken = [&whole[..], &whole[..whole.len() - 1]].concat();
        let damaged = [&whole[..], b"x"].concat();
        for (bytes, end, mended) in [
            (&begun, LastLine::Torn, &whole),
            (&unbroken, LastLine::Unbroken, &unbroken),
            (&damaged, LastLine::Damaged, &damaged),
            (&whole, LastLine::Ended, &whole),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("1");
            fs::write(&path, bytes).unwrap();
            let opened = SealedFile::open::<Contents>(&path).unwrap().unwrap();
            let mut file = opened.file.unwrap();
            assert_eq!(opened.text.end(), end);
            assert_eq!(&fs::read(&path).unwrap(), mended);
            file.append(&settled, Durable::No).unwrap();
            let longer = fs::read(&path).unwrap();
            assert_eq!(longer, [&mended[..], end.line_break(), &whole].concat());
            let (all, rest) = lines(&longer);
            assert!(rest.is_empty() && all.last() == Some(&whole[..whole.len() - 1]));
            assert_eq!(
                file.notes().iter().any(|n| n.contains("incomplete")),
                end == LastLine::Torn
            );
        }
    }
}
