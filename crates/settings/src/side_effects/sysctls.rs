//! Kernel parameters. Read-only parameters change on their own or never; parameters that not
//! everyone may read are keys, and stay out of the journal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Cells;
use super::devices::Part;
use super::host::{Host, Trouble};
pub(super) use crate::sysctl_cell::ID;
use crate::sysctl_cell::{ROOT, name};

pub(super) fn capture(_: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    part.files.iter().for_each(|file| add_file(file, cells));
    part.folders.iter().for_each(|folder| add(folder, false, cells));
    part.trees.iter().for_each(|tree| add(tree, true, cells));
    Ok(())
}

fn add(folder: &Path, deep: bool, cells: &mut Cells) {
    // A host without IPv6 has no such directory; a file disappears with its device.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if !kind.is_dir() => add_file(&entry.path(), cells),
            Ok(_) if deep => add(&entry.path(), deep, cells),
            _ => {}
        }
    }
}

fn add_file(file: &Path, cells: &mut Cells) {
    let open = fs::metadata(file).is_ok_and(|status| status.permissions().mode() & 0o204 == 0o204);
    if let Some(name) = name(file).filter(|_| open)
        && let Ok(text) = fs::read_to_string(file)
    {
        cells.insert(name, text.trim_end().into());
    }
}

pub(super) fn write(
    _: &mut Host,
    path: &str,
    _now: Option<&str>,
    wanted: &str,
) -> Result<(), Trouble> {
    if path.split('/').any(|part| part.is_empty() || part == "..") {
        return Err(Trouble::Unreadable);
    }
    let file: PathBuf = [ROOT, path].iter().collect();
    Ok(fs::write(file, format!("{wanted}\n"))?)
}
