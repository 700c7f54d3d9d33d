//! Files of ours that change together: all of them, or none.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::place::is_of_drop_ins;
use super::root::below;
use super::{SaveError, SavedFile, boot_unit};
use crate::life;
use crate::written::{FileOutcome, TakenBack, Written, WrittenFile};

/// Everyone may read what is saved.
const FILE_MODE: u32 = 0o644;

/// A file of ours as it is to be.
pub(super) struct NewFile {
    pub(super) saved: SavedFile,
    pub(super) text: String,
}

impl Written {
    /// What it means to write all of `files` and to remove those that are `needless`. Nothing is changed yet.
    pub(super) fn planned(root: &Path, files: &[NewFile], needless: &[PathBuf]) -> Self {
        let written = files.iter().map(|file| (&file.saved.path, Some(file.text.clone())));
        let removed = needless.iter().map(|path| (path, None));
        let all = written.chain(removed);
        let files = all.map(|(path, new)| WrittenFile::found(root, path, new)).collect();
        Self { root: root.into(), files }
    }

    /// Changes all of them, or leaves all as they were.
    pub(super) fn carry_out(&self) -> Result<(), SaveError> {
        let done = self.files.iter().try_for_each(|file| file.carry_out(&self.root));
        if done.is_err() {
            // Only the first failure is reported.
            for file in self.files.iter().rev() {
                let _ = file.put_back(&self.root);
            }
        }
        done
    }

    /// Makes all of them as they were before, the last one first. Whatever fails, the rest is put back. What someone has
    /// changed since is left alone.
    pub(crate) fn take_back(&self) -> Vec<TakenBack> {
        self.each(|file| file.take_back(&self.root))
    }
}

impl WrittenFile {
    /// What is at `path` before it becomes `new`.
    fn found(root: &Path, path: &Path, new: Option<String>) -> Self {
        let old = text(path);
        let is_enabled = path == below(root, boot_unit::FILE) && is_enabled(root);
        Self { path: path.into(), old, new, is_enabled }
    }

    /// Whether it is as before.
    pub(crate) fn is_back(&self) -> bool {
        text(&self.path) == self.old
    }

    fn carry_out(&self, root: &Path) -> Result<(), SaveError> {
        let Self { path, new, .. } = self;
        let Some(new) = new else {
            let failed = |cause| SaveError::Io { operation: "remove", path: path.clone(), cause };
            return remove(root, path).map_err(failed);
        };
        place(root, path, new.as_bytes())?;
        if *path == below(root, boot_unit::FILE) { enable(root) } else { Ok(()) }
    }

    fn take_back(&self, root: &Path) -> FileOutcome {
        let now = text(&self.path);
        let is_back = now == self.old;
        if !is_back && now != self.new {
            return FileOutcome::ChangedByOther;
        }
        match self.put_back(root) {
            Ok(()) if is_back => FileOutcome::AlreadyBack,
            Ok(()) => FileOutcome::PutBack,
            Err(why) => FileOutcome::Failed(why.to_string()),
        }
    }

    fn put_back(&self, root: &Path) -> Result<(), SaveError> {
        let Self { path, old, is_enabled, .. } = self;
        match old {
            // What was not written yet is not touched: on a full disk that would lose it.
            Some(old) if text(path).is_some_and(|now| now == *old) => remove_drafts(path),
            Some(old) => place(root, path, old.as_bytes())?,
            None => {
                remove_drafts(path);
                remove(root, path).or_else(|cause| match cause.kind() {
                    io::ErrorKind::NotFound => Ok(()),
                    _ => Err(SaveError::Io { operation: "remove", path: path.clone(), cause }),
                })?;
            }
        }
        match *path == below(root, boot_unit::FILE) {
            true if *is_enabled => enable(root),
            true => disable(root),
            false => Ok(()),
        }
    }
}

/// The text of a file of ours; `None` if it is not there, or can't be read.
fn text(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
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
    let (folder, prefix) = drafts(path);
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

/// The folder of a file's drafts, and how their names begin.
fn drafts(path: &Path) -> (&Path, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (path.parent().unwrap_or(Path::new("/")), format!(".{name}."))
}

/// Removes what writers of a file that were killed have left beside it.
fn remove_drafts(path: &Path) {
    let (folder, prefix) = drafts(path);
    remove_left(folder, &prefix);
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

/// Makes the unit start no more at boot. A link of others stays.
fn disable(root: &Path) -> Result<(), SaveError> {
    let path = below(root, boot_unit::WANTED);
    if !is_enabled(root) {
        return Ok(());
    }
    fs::remove_file(&path).map_err(|cause| SaveError::Io { operation: "disable", path, cause })
}

/// Whether the link of ours is there that starts the unit at boot.
pub(super) fn is_enabled(root: &Path) -> bool {
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

    fn change_all(
        root: &Path,
        files: &[NewFile],
        needless: &[PathBuf],
    ) -> Result<Written, SaveError> {
        let written = Written::planned(root, files, needless);
        written.carry_out().map(|()| written)
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
        let outcomes = |written: &Written| -> Vec<_> {
            written.take_back().into_iter().map(|file| file.outcome).collect()
        };
        let written = change();
        assert_eq!(texts(&[&unit, &other]), [None, Some("new".into())]);
        assert_eq!(outcomes(&written), [FileOutcome::PutBack, FileOutcome::PutBack]);
        assert_eq!(texts(&[&unit, &other]), [Some("unit".into()), None]);
        assert!(is_enabled(root));
        assert_eq!(outcomes(&written), [FileOutcome::AlreadyBack, FileOutcome::AlreadyBack]);
        // Someone had switched the unit off.
        fs::remove_file(below(root, boot_unit::WANTED)).unwrap();
        let other_unit = change_all(root, &[new_file(&unit, "more")], &[]).unwrap();
        assert!(is_enabled(root));
        assert_eq!(outcomes(&other_unit), [FileOutcome::PutBack]);
        assert!(!is_enabled(root) && texts(&[&unit]) == [Some("unit".into())]);
        enable(root).unwrap();
        let written = change();
        fs::write(&other, "theirs").unwrap();
        assert_eq!(outcomes(&written), [FileOutcome::PutBack, FileOutcome::ChangedByOther]);
        assert_eq!(texts(&[&unit, &other]), [Some("unit".into()), Some("theirs".into())]);
    }
}
