//! How a journal ends: it is removed, or set aside if it is damaged.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::own_folder::sync_folder;

/// Closes the journal at `path`: nothing is left to put back. A damaged one is set aside under a name at which nobody
/// looks for a journal, so that what it said can still be read. A power cut does not bring it back: it would take back files
/// that were kept since.
///
/// # Errors
/// If the file can't be removed or renamed, or that can't be made durable. One that is gone is closed.
pub(super) fn close(path: &Path, damaged: bool) -> io::Result<()> {
    let closed = match damaged {
        true => fs::rename(path, aside(path)),
        false => fs::remove_file(path),
    };
    match closed {
        Ok(()) => sync_folder(path.parent().unwrap_or(Path::new("/"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Where a damaged journal is once it is closed. `None`: it is not closed, or nothing of it is left.
pub(super) fn set_aside(path: &Path) -> Option<PathBuf> {
    let aside = aside(path);
    (!path.exists() && aside.exists()).then_some(aside)
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".damaged");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_damaged_journal_can_be_read_once_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.journal.jsonl");
        for damaged in [false, true] {
            fs::write(&path, "what it said").unwrap();
            assert_eq!(set_aside(&path), None, "it is open");
            close(&path, damaged).unwrap();
            close(&path, damaged).unwrap();
            assert!(!path.exists());
            let kept = set_aside(&path).map(|aside| fs::read_to_string(aside).unwrap());
            assert_eq!(kept.is_some(), damaged, "{kept:?}");
        }
    }
}
