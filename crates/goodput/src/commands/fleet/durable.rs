//! Files that survive a power cut whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The name of a file that is being written, in the folder of its place. One is written at a time in each folder.
pub(super) const DRAFT: &str = "new";

/// Puts `bytes` in the place of `file` in `folder`. On return, they are on disk, and so is the file's name; after an error,
/// the file is as it was.
pub(super) fn replace(folder: &Path, file: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = folder.join(DRAFT);
    let mut written = File::create(&draft)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    fs::rename(&draft, file)?;
    // The name, too.
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_old_one_or_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(folder.path().join(DRAFT), "half of what a dead writer had").unwrap();
        for text in ["one", "two"] {
            replace(folder.path(), &file, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert!(!folder.path().join(DRAFT).exists());
        fs::create_dir(folder.path().join(DRAFT)).unwrap();
        assert!(replace(folder.path(), &file, b"three").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    }
}
