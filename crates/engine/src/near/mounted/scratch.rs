//! The files that a measurement writes on a mount: noted, created, and removed after every kind of end.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use goodput_files::{path_of_url, url_of_path};

use super::place::cannot;
use crate::error::EngineError;
use crate::near::storage_notes::{Meeting, Noted, StorageNote};

/// Bytes of the file that each flow writes repeatedly: the same as of an upload to a server.
const FILE_BYTES: u64 = 64 << 20;
/// Prefix of the names of such files.
const NAME: &str = ".goodput-write-";
/// How long their removal may take: the person who ended the measurement waits, and a dead mount never answers.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);

impl Noted for PathBuf {
    const SUFFIX: &'static str = ".written";

    fn line(&self) -> String {
        // Only relative paths have no URL, and no relative path is noted.
        url_of_path(self).unwrap_or_default()
    }

    fn of_line(line: &str) -> Option<Self> {
        path_of_url(line).ok().filter(|path| is_scratch(path))
    }
}

/// Whether a measurement made the file at this path.
fn is_scratch(path: &Path) -> bool {
    path.is_absolute()
        && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME))
}

/// Files of a measurement; dropping it removes them.
pub struct ScratchFiles {
    note: Option<StorageNote<PathBuf>>,
}

impl ScratchFiles {
    /// Creates a file for each of this many flows, in a folder whose path has no links. Blocks.
    pub fn make(folder: &Path, flows: usize, notes: Option<&Path>) -> Result<Self, EngineError> {
        let notes = notes.ok_or_else(|| {
            EngineError::Flow(
                "there is no place for the note of what is written: name one by --state-dir".into(),
            )
        })?;
        let id = format!("{:016x}", rand::random::<u64>());
        let path = |flow| folder.join(format!("{NAME}{id}-{flow}"));
        let noted =
            StorageNote::write(notes, &id, Meeting::default(), (0..flows).map(path).collect());
        let noted = noted.map_err(EngineError::io(format!(
            "note in {} what is about to be written",
            notes.display()
        )))?;
        let scratch = Self { note: Some(noted) };
        for path in scratch.paths() {
            make(path).map_err(|cause| cannot("write", path, &cause))?;
        }
        Ok(scratch)
    }

    /// The file of each flow.
    pub fn paths(&self) -> &[PathBuf] {
        self.note.as_ref().map_or(&[], |note| &note.places)
    }

    /// Removes the files. Returns in words what could not be removed.
    pub fn remove(mut self) -> Vec<String> {
        self.clean_up()
    }

    fn clean_up(&mut self) -> Vec<String> {
        let Some(note) = self.note.take() else { return Vec::new() };
        let unanswered: Vec<_> =
            note.places.iter().map(|path| kept(path, "the file system does not answer")).collect();
        remove_in_time(note).map_or(unanswered, |removal| removal.trouble().collect())
    }
}

impl Drop for ScratchFiles {
    fn drop(&mut self) {
        for words in self.clean_up() {
            tracing::warn!("{words}");
        }
    }
}

fn make(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_len(FILE_BYTES)
}

/// The outcome for files: whether each was there, or why it may still be; and whether the note was updated.
struct RemovedFiles {
    files: Vec<(PathBuf, Result<bool, String>)>,
    noted: io::Result<()>,
}

/// Removes what a note names, which forgets each file that is gone.
fn remove_noted(note: &mut StorageNote<PathBuf>) -> RemovedFiles {
    let mut removal = RemovedFiles { files: Vec::new(), noted: Ok(()) };
    for path in note.places.clone() {
        let outcome = remove(&path).map_err(|cause| cause.to_string());
        if outcome.is_ok() {
            removal.noted = removal.noted.and(note.is_gone(&path));
        }
        removal.files.push((path, outcome));
    }
    removal
}

/// The same, within bounds. `None`: it took too long, or there is no thread for it.
fn remove_in_time(mut note: StorageNote<PathBuf>) -> Option<RemovedFiles> {
    let (say, said) = channel();
    let remove = move || {
        // Nobody waits any more if it took too long.
        let _ = say.send(remove_noted(&mut note));
    };
    std::thread::Builder::new().name("removal".into()).spawn(remove).ok()?;
    said.recv_timeout(REMOVAL_TIMEOUT).ok()
}

impl RemovedFiles {
    /// What went wrong, in words.
    fn trouble(&self) -> impl Iterator<Item = String> {
        let left = self.files.iter();
        let left = left.filter_map(|(path, outcome)| Some(kept(path, outcome.as_ref().err()?)));
        let noted = self.noted.as_ref().err();
        left.chain(
            noted.map(|cause| format!("the note of what was written can't be changed: {cause}")),
        )
    }
}

/// Removes a file. Returns whether it was there.
fn remove(path: &Path) -> io::Result<bool> {
    // A read-only file system also refuses to remove a file that is not there.
    match fs::symlink_metadata(path).and_then(|_| fs::remove_file(path)) {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cause),
    }
}

fn kept(path: &Path, why: &str) -> String {
    format!(
        "{} may be left there: {why}; the next test there removes it, and so does goodput settings undo",
        path.display()
    )
}

/// Removes what dead runs have left in a folder. Returns in words what was done.
pub fn settle(folder: &Path, notes: &Path) -> Vec<String> {
    let Ok(left) = StorageNote::<PathBuf>::left(notes) else { return Vec::new() };
    let is_here =
        |note: &StorageNote<PathBuf>| note.places.iter().any(|p| p.parent() == Some(folder));
    let done = |note: StorageNote<PathBuf>| match remove_in_time(note) {
        Some(removal) => {
            let removed = removal.files.iter().filter(|(_, outcome)| *outcome == Ok(true));
            let removed = removed.map(|(path, _)| {
                format!("removed {}, which an interrupted run had left", path.display())
            });
            removed.chain(removal.trouble()).collect()
        }
        None => vec![format!("what an interrupted run left in {} stays", folder.display())],
    };
    left.into_iter().filter(is_here).flat_map(done).collect()
}

/// Removes what dead runs have left anywhere. Returns each file: whether it was there, or why it could not be removed.
/// With `forget`, a file that can't be removed is no longer noted.
pub fn undo(notes: &Path, forget: bool) -> io::Result<Vec<(PathBuf, Result<bool, String>)>> {
    let mut all = Vec::new();
    for mut note in StorageNote::<PathBuf>::left(notes)? {
        let removal = remove_noted(&mut note);
        // A run that died before it had named anything left an empty note.
        let is_empty = removal.files.is_empty();
        let is_noted = !note.places.is_empty();
        if is_empty || is_noted && forget { note.forget() } else { removal.noted }?;
        all.extend(removal.files);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_and_gone_at_the_end_with_their_note() {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let notes = state.path().join("uploads");
        let count = |path: &Path| fs::read_dir(path).map_or(0, Iterator::count);
        let scratch = ScratchFiles::make(folder.path(), 3, Some(&notes)).unwrap();
        assert_eq!((count(folder.path()), count(&notes)), (3, 1));
        assert!(settle(folder.path(), &notes).is_empty(), "its owner lives");
        assert!(scratch.remove().is_empty());
        assert_eq!((count(folder.path()), count(&notes)), (0, 0));
        assert!(ScratchFiles::make(Path::new("/proc"), 1, Some(&notes)).is_err());
        assert_eq!(count(&notes), 0, "nothing was made, so nothing is noted");
    }

    #[test]
    fn a_note_removes_nothing_that_no_measurement_made() {
        assert_eq!(PathBuf::of_line("file:///etc/passwd"), None);
        let path = PathBuf::from("/mnt/a b\n/.goodput-write-1-0");
        assert!(!path.line().contains('\n'));
        assert_eq!(PathBuf::of_line(&path.line()), Some(path));
    }
}
