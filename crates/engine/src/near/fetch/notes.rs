//! What is stored at servers of files, on disk before the first byte of it leaves, so that a later run finds it.
//!
//! One file for each run, one URL a line; none has a password. Its owner holds a lock (flock(2)) on it while alive. A file
//! that is gone has nothing left to remove.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use goodput_files::Place;
use goodput_settings::make_own_folder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// How the names of notes end.
const SUFFIX: &str = ".upload";
/// Bytes of a note that are read: it has a line for each flow.
const MAX_NOTE_BYTES: u64 = 64 << 20;

/// A note, which nobody else settles as long as this lives.
#[derive(Debug)]
pub struct Note {
    _lock: File,
    path: PathBuf,
    /// What is stored, or was about to be.
    pub places: Vec<Place>,
}

impl Note {
    /// Brings a note to the disk, in a folder that only this user can write to.
    pub fn write(folder: &Path, id: &str, places: Vec<Place>) -> io::Result<Self> {
        make_own_folder(folder)?;
        let (draft, path) =
            (folder.join(format!("{id}.new")), folder.join(format!("{id}{SUFFIX}")));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let text: String = places.iter().map(|place| format!("{place}\n")).collect();
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            // Locked before anyone can see it by its name.
            .and_then(|()| Ok(flock(&file, FlockOperation::LockExclusive)?))
            .and_then(|()| fs::rename(&draft, &path))
            .and_then(|()| File::open(folder)?.sync_all());
        if let Err(cause) = written {
            // The first error is the one to report.
            let _ = fs::remove_file(&draft).or_else(|_| fs::remove_file(&path));
            return Err(cause);
        }
        Ok(Self { _lock: file, path, places })
    }

    /// Nothing of it is left.
    pub fn settle(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// The notes of runs that are dead.
    pub fn left(folder: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(folder) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        make_own_folder(folder)?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let notes = paths.filter(|path| path.to_string_lossy().ends_with(SUFFIX));
        Ok(notes.filter_map(|path| Self::open_left(path).ok().flatten()).collect())
    }

    /// One note, unless its owner lives or it is settled.
    fn open_left(path: PathBuf) -> io::Result<Option<Self>> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        let status = file.metadata()?;
        let own = status.uid() == rustix::process::geteuid().as_raw();
        if status.nlink() == 0 || !status.is_file() || !own {
            return Ok(None);
        }
        let mut text = String::new();
        (&file).take(MAX_NOTE_BYTES).read_to_string(&mut text)?;
        let places = text.lines().filter_map(|line| Place::parse(line).ok()).collect();
        Ok(Some(Self { _lock: file, path, places }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_found_once_its_owner_is_dead_and_gone_once_it_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("uploads");
        assert!(Note::left(&folder).unwrap().is_empty(), "no folder is no note");
        let place = Place::parse("http://me@nas/a/.goodput-write-1-0").unwrap();
        let note = Note::write(&folder, "1", vec![place.clone()]).unwrap();
        assert!(Note::left(&folder).unwrap().is_empty(), "its owner lives");
        drop(note);
        let mode = fs::metadata(folder.join("1.upload")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let left = Note::left(&folder).unwrap();
        assert_eq!(left[0].places, [place]);
        left.into_iter().for_each(|note| note.settle().unwrap());
        assert!(Note::left(&folder).unwrap().is_empty());
    }
}
