//! Files of ours that change together: all of them, or none.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::place::is_of_drop_ins;
use super::root::below;
use super::{SaveError, SavedFile, boot_unit};
use crate::life;

/// Everyone may read what is saved.
const FILE_MODE: u32 = 0o644;

/// A file of ours as it is to be.
pub(super) struct NewFile {
    pub(super) saved: SavedFile,
    pub(super) text: String,
}

/// What files of ours were before they changed together.
#[derive(Debug)]
pub(super) struct Replaced {
    root: PathBuf,
    files: Vec<OldFile>,
}

/// A file before and after its change.
#[derive(Debug)]
struct OldFile {
    path: PathBuf,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    /// Whether it is the unit, and started at boot.
    is_enabled: bool,
}

/// Writes all of `files` and removes those that are `needless`, or leaves all as they were.
pub(super) fn change_all(
    root: &Path,
    files: &[NewFile],
    needless: &[PathBuf],
) -> Result<Replaced, SaveError> {
    let mut replaced = Replaced { root: root.into(), files: Vec::new() };
    let done = replaced.write(files).and_then(|()| replaced.remove(needless));
    match done {
        Ok(()) => Ok(replaced),
        Err(failure) => {
            // Only the first failure is reported.
            for file in replaced.files.iter().rev() {
                let _ = file.put_back(root);
            }
            Err(failure)
        }
    }
}

impl Replaced {
    fn write(&mut self, files: &[NewFile]) -> Result<(), SaveError> {
        for NewFile { saved, text } in files {
            let new = Some(text.as_bytes().to_vec());
            self.files.push(OldFile::found(&self.root, &saved.path, new));
            place(&self.root, &saved.path, text.as_bytes())?;
            if saved.path == below(&self.root, boot_unit::FILE) {
                enable(&self.root)?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, needless: &[PathBuf]) -> Result<(), SaveError> {
        for path in needless {
            self.files.push(OldFile::found(&self.root, path, None));
            let failed = |cause| SaveError::Io { operation: "remove", path: path.clone(), cause };
            remove(&self.root, path).map_err(failed)?;
        }
        Ok(())
    }

    /// Makes all files as they were before, the last one first. Whatever fails, the rest is taken back.
    ///
    /// # Errors
    /// The first failure. A file that someone has changed since is left alone.
    pub(super) fn take_back(self) -> Result<(), SaveError> {
        let Self { root, files } = self;
        let back = files.iter().rev().map(|file| match file.is_ours() {
            true => file.put_back(&root),
            false => Err(SaveError::Edited(file.path.clone())),
        });
        // All of them, before the first failure is looked for.
        back.collect::<Vec<_>>().into_iter().collect()
    }
}

impl OldFile {
    /// What is at `path` before it becomes `new`.
    fn found(root: &Path, path: &Path, new: Option<Vec<u8>>) -> Self {
        let old = fs::read(path).ok();
        let is_enabled = path == below(root, boot_unit::FILE) && is_enabled(root);
        Self { path: path.into(), old, new, is_enabled }
    }

    /// Whether the file is as we made it.
    fn is_ours(&self) -> bool {
        fs::read(&self.path).ok() == self.new
    }

    fn put_back(&self, root: &Path) -> Result<(), SaveError> {
        let Self { path, old, is_enabled, .. } = self;
        match old {
            // What was not written yet is not touched: on a full disk that would lose it.
            Some(old) if fs::read(path).is_ok_and(|now| now == *old) => {}
            Some(old) => place(root, path, old)?,
            None => remove(root, path).or_else(|cause| match cause.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(SaveError::Io { operation: "remove", path: path.clone(), cause }),
            })?,
        }
        if *is_enabled { enable(root) } else { Ok(()) }
    }
}

/// Puts a file at its place, in a folder that is made if it is missing.
fn place(root: &Path, path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    let failed = |operation| move |cause| SaveError::Io { operation, path: path.into(), cause };
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
    replace(path, bytes).map_err(failed("write"))
}

/// Replaces a file in one step, so that nobody ever reads half of it, and a full disk leaves the old one.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.");
    remove_left(folder, &prefix);
    let draft = folder.join(format!("{prefix}{}", std::process::id()));
    let written = (|| {
        let mut out = fs::File::create(&draft)?;
        out.write_all(bytes)?;
        out.set_permissions(fs::Permissions::from_mode(FILE_MODE))?;
        out.sync_all()?;
        fs::rename(&draft, path)?;
        fs::File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Removes drafts whose writers were killed: their names are the `prefix` and the number of a process that is gone. What
/// can't be removed does no harm.
fn remove_left(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse().ok());
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && writer.is_some_and(|writer: u32| !life::runs(writer)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Makes the unit start at boot.
fn enable(root: &Path) -> Result<(), SaveError> {
    let path = below(root, boot_unit::WANTED);
    let failed = |cause| SaveError::Io { operation: "enable", path: path.clone(), cause };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    match symlink(boot_unit::FILE, &path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => match fs::read_link(&path) {
            Ok(to) if to == Path::new(boot_unit::FILE) => Ok(()),
            Ok(to) => Err(SaveError::Link { path: path.clone(), to }),
            // A file that is no link.
            Err(_) => Err(failed(cause)),
        },
        made => made.map_err(failed),
    }
}

/// Whether the link of ours is there that starts the unit at boot.
fn is_enabled(root: &Path) -> bool {
    fs::read_link(below(root, boot_unit::WANTED)).is_ok_and(|to| to == Path::new(boot_unit::FILE))
}

/// Removes a file of ours, with all that was made for it.
pub(super) fn remove(root: &Path, path: &Path) -> io::Result<()> {
    if path == below(root, boot_unit::FILE) && is_enabled(root) {
        fs::remove_file(below(root, boot_unit::WANTED))?;
    }
    fs::remove_file(path)?;
    // An otherwise empty drop-in folder was made for our file.
    let folder = path.parent().filter(|folder| is_of_drop_ins(folder));
    let _ = folder.map(fs::remove_dir);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_file(path: &Path, text: &str) -> NewFile {
        let (path, keeps, overruled) = (path.into(), Vec::new(), Vec::new());
        let saved = SavedFile { path, keeps, intact: true, overruled };
        NewFile { saved, text: text.into() }
    }

    /// What is at each of these paths.
    fn texts<const N: usize>(paths: &[&PathBuf; N]) -> [Option<String>; N] {
        paths.map(|path| fs::read_to_string(path).ok())
    }

    /// A unit that starts at boot, beside the path of a file that is not there.
    fn with_unit(root: &Path) -> [PathBuf; 2] {
        let [unit, other] =
            [boot_unit::FILE, "/etc/sysctl.d/90-goodput.conf"].map(|path| below(root, path));
        let _ = change_all(root, &[new_file(&unit, "unit")], &[]).unwrap();
        [unit, other]
    }

    #[test]
    fn what_can_not_all_be_removed_leaves_everything_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let [unit, other] = with_unit(root);
        let missing = below(root, "/etc/systemd/network/98-goodput-eth0.link");
        let needless = [unit.clone(), missing];
        let failed = change_all(root, &[new_file(&other, "new")], &needless).unwrap_err();
        assert!(failed.to_string().starts_with("can't remove "), "{failed}");
        assert_eq!(texts(&[&unit, &other]), [Some("unit".into()), None]);
        assert!(is_enabled(root), "it still starts at boot");
    }

    #[test]
    fn what_is_taken_back_is_as_before_unless_someone_has_changed_it_since() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let [unit, other] = with_unit(root);
        let change =
            || change_all(root, &[new_file(&other, "new")], std::slice::from_ref(&unit)).unwrap();
        let replaced = change();
        assert_eq!(texts(&[&unit, &other]), [None, Some("new".into())]);
        replaced.take_back().unwrap();
        assert_eq!(texts(&[&unit, &other]), [Some("unit".into()), None]);
        assert!(is_enabled(root));
        let replaced = change();
        fs::write(&other, "theirs").unwrap();
        let refused = replaced.take_back();
        assert!(matches!(refused, Err(SaveError::Edited(ref path)) if *path == other));
        assert_eq!(texts(&[&unit, &other]), [Some("unit".into()), Some("theirs".into())]);
    }
}
