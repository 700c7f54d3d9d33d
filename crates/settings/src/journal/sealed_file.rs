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
use super::own_folder::{check_folder, lock_folder, make_own_folder, own, sync_folder};
use super::sealed_line::seal;
use super::text::{JournalContents, JournalText};

/// In place of the end of a journal's name until the first line is on disk. So a journal without a first line is a
/// damaged one, and not one whose writer died early. A file that such a writer leaves has changed nothing.
const UNNAMED: &str = "new";

/// A journal that this process holds. It is locked as long as this value lives.
#[derive(Debug)]
pub struct SealedFile {
    file: File,
    path: PathBuf,
    /// What its end was when it was opened, unless a later line has left something else there.
    end: LastLine,
    /// How it is damaged, if it is.
    damage: Option<String>,
}

/// A journal that was opened.
#[derive(Debug)]
pub struct Opened<C> {
    /// What it says.
    pub text: JournalText<C>,
    /// The journal itself; `None` if another process holds it.
    pub file: Option<SealedFile>,
}

impl SealedFile {
    /// Begins a journal of this process in `folder`, which is created if need be and which only this user can write to.
    /// Its name ends with `suffix`, and is on disk with the `first` line when this returns. Removes what writers left
    /// that died before their first line was on disk.
    ///
    /// # Errors
    /// If it can't be written. Nothing of it is left then.
    pub fn begin_in(folder: &Path, suffix: &str, first: &impl Serialize) -> io::Result<Self> {
        make_own_folder(folder)?;
        let _busy = lock_folder(folder)?;
        remove_unnamed(folder, suffix)?;
        Self::begin(folder, suffix, first)
    }

    /// Removes what writers of journals with this `suffix` left in `folder` when they died before their first line was
    /// on disk.
    ///
    /// # Errors
    /// If the folder can't be read, or others can write to it.
    pub fn remove_unfinished(folder: &Path, suffix: &str) -> io::Result<()> {
        check_folder(folder)?;
        let _busy = lock_folder(folder)?;
        remove_unnamed(folder, suffix)
    }

    /// The same as [`Self::begin_in`] in a folder that is there, and that the caller has locked.
    pub(super) fn begin(folder: &Path, suffix: &str, first: &impl Serialize) -> io::Result<Self> {
        let number = next_number(folder, suffix, now_ns());
        let path = folder.join(format!("{number:0DIGITS$}-{}{suffix}", std::process::id()));
        // Nobody looks there.
        let unnamed = path.with_extension(UNNAMED);
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create_new(true).mode(0o600).open(&unnamed)?;
        let mut journal = Self { file, path, end: LastLine::Ended, damage: None };
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
    pub fn open<C: JournalContents>(path: &Path) -> io::Result<Option<Opened<C>>> {
        Self::open_with(path, FlockOperation::NonBlockingLockExclusive)
    }

    /// The same, but waits until nobody else holds it.
    pub(super) fn take_over<C: JournalContents>(path: &Path) -> io::Result<Option<Opened<C>>> {
        Self::open_with(path, FlockOperation::LockExclusive)
    }

    fn open_with<C: JournalContents>(
        path: &Path,
        lock: FlockOperation,
    ) -> io::Result<Option<Opened<C>>> {
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
        let file = is_free.then(|| Self::mended(file, path, &text));
        Ok(Some(Opened { text, file }))
    }

    /// Cuts off the beginning of a line at the end, which would be joined to the next line. Everything else stays, and a
    /// line break comes first when a line is added ([`LastLine::line_break`]).
    fn mended<C: JournalContents>(file: File, path: &Path, text: &JournalText<C>) -> Self {
        let mut journal = Self { file, path: path.into(), end: text.end(), damage: text.damage() };
        if journal.end == LastLine::Torn {
            journal.cut_to(text.kept_bytes());
        }
        journal
    }

    /// Cuts off what is behind the first `length` bytes: the beginning of a line. Shrinking needs no space. If it fails
    /// and something is there, a line break comes in front of the next line, and what is between will be reported as
    /// damaged.
    fn cut_to(&mut self, length: u64) {
        let is_longer = || self.file.metadata().map_or(true, |now| now.len() > length);
        if self.file.set_len(length).is_err() && is_longer() {
            self.end = LastLine::Damaged;
        }
    }

    /// What the journal at `path` says, and whether its owner lives. `None`: it is closed.
    pub(super) fn peek<C: JournalContents>(
        path: &Path,
    ) -> io::Result<Option<(JournalText<C>, bool)>> {
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
        // Whatever earlier lines have left: a length that was remembered could be that of fewer lines.
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(&text).and_then(|()| match durable {
            Durable::Yes => self.file.sync_all(),
            Durable::No => Ok(()),
        });
        match written {
            Ok(()) => self.end = self.end.followed(),
            // A partial line in front of the next one would spoil both.
            Err(_) => self.cut_to(before),
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

fn read<C: JournalContents>(file: &mut File) -> io::Result<JournalText<C>> {
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

/// Digits of the number in a journal's name: with the same number of digits, names have the order of their numbers.
const DIGITS: usize = 19;

/// The number in the name of the next journal: the time, for people, but more than the number of every other journal there.
/// So the names have the order in which the journals began, and differ, even if the clock was set back meanwhile.
fn next_number(folder: &Path, suffix: &str, now_ns: u128) -> u128 {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number =
        |name: &str| -> Option<u128> { name.strip_suffix(suffix)?.split_once('-')?.0.parse().ok() };
    let latest = names.filter_map(|name| number(name.to_str()?)).max();
    latest.map_or(now_ns, |latest| now_ns.max(latest.saturating_add(1)))
}

/// Nanoseconds since 1970 by this host's clock, which may be set back.
fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::super::contents::{Contents, Line};
    use super::super::last_line::lines;
    use super::*;
    use crate::testing::Tmpfs;
    use goodput_testing::skip;

    fn settled() -> Line {
        Line::Settled { setting: "offload.tso@eth0".parse().unwrap() }
    }

    #[test]
    fn a_line_that_does_not_fit_takes_no_other_line_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let Some(disk) = Tmpfs::mount(folder.path()) else {
            return skip("root to mount a file system");
        };
        let line = seal(&settled()).unwrap();
        let mut journal = SealedFile::begin(folder.path(), ".x", &settled()).unwrap();
        // A line of which the journal does not know, as one that could be neither written nor cut off.
        let mut other = OpenOptions::new().append(true).open(journal.path()).unwrap();
        other.write_all(&line).unwrap();
        disk.fill("filler");
        let mut whole = 2;
        // The last page of the file has room for some lines.
        while journal.append(&settled(), Durable::No).is_ok() {
            whole += 1;
        }
        assert_eq!(fs::read(journal.path()).unwrap(), line.repeat(whole));
    }

    #[test]
    fn what_can_be_neither_written_nor_cut_off_spoils_no_other_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1");
        let line = seal(&settled()).unwrap();
        fs::write(&path, [&line[..], &line[..9]].concat()).unwrap();
        // A file that is open for reading can't be cut.
        let (file, path) = (File::open(&path).unwrap(), path);
        let mut journal = SealedFile { file, path, end: LastLine::Ended, damage: None };
        journal.cut_to(line.len() as u64 + 9);
        assert_eq!(journal.end, LastLine::Ended, "nothing was left");
        journal.cut_to(line.len() as u64);
        journal.file = OpenOptions::new().append(true).open(&journal.path).unwrap();
        journal.append(&settled(), Durable::No).unwrap();
        let bytes = fs::read(&journal.path).unwrap();
        let (all, rest) = lines(&bytes);
        let whole = &line[..line.len() - 1];
        assert_eq!(all.collect::<Vec<_>>(), [whole, &line[..9], whole]);
        assert!(rest.is_empty());
    }

    #[test]
    fn names_have_the_order_in_which_journals_began_whatever_the_clock_does() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(next_number(folder.path(), ".x", 7), 7);
        let mut names = vec![format!("{:0DIGITS$}-1.x", 5), "9000000000000000000-1.x".to_owned()];
        for name in &names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::write(folder.path().join("9100000000000000000-1.y"), "of another kind").unwrap();
        // In 2255 the clock was set back.
        for _ in 0..2 {
            let journal = SealedFile::begin(folder.path(), ".x", &settled()).unwrap();
            names.push(journal.path().file_name().unwrap().to_str().unwrap().to_owned());
        }
        assert!(names.is_sorted() && names[2] != names[3], "{names:?}");
    }

    #[test]
    fn only_the_beginning_of_a_line_is_cut_off_and_the_next_line_is_whole() {
        let settled = settled();
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
