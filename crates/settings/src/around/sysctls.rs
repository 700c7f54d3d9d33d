//! Kernel parameters. Those that cannot be written move by themselves or never; those that not
//! everybody may read are keys, and stay out of the journal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Cells;
use super::devices::Part;
use super::host::{Host, Trouble};

pub(super) const ID: &str = "sysctl";
const ROOT: &str = "/proc/sys";

pub(super) fn capture(_: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    part.folders.iter().for_each(|folder| add(folder, false, cells));
    part.trees.iter().for_each(|tree| add(tree, true, cells));
    Ok(())
}

fn add(folder: &Path, deep: bool, cells: &mut Cells) {
    // A host without IPv6 has no such directory; a file that goes with its device is gone.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(status) = entry.metadata() else { continue };
        if status.is_dir() {
            if deep {
                add(&path, deep, cells);
            }
        } else if status.permissions().mode() & 0o204 == 0o204
            && let Ok(text) = fs::read_to_string(&path)
        {
            let below = path.strip_prefix(ROOT).unwrap_or(&path).display();
            cells.insert(format!("{ID}/{below}"), text.trim_end().into());
        }
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
