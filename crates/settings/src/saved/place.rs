//! Which file keeps a value: one that is ours alone by its name, or else the unit that sets it at boot.

use std::path::{Path, PathBuf};

use goodput_model::Permanent;

/// Stands behind the path of a script.
const EXECUTABLE: &str = " (executable)";
/// Folders whose files are read only where the program is installed that reads them.
const READERS: [(&str, &str); 1] = [("/etc/networkd-dispatcher/", "/etc/networkd-dispatcher")];
/// Where files of ours may stand.
pub const FOLDERS: [&str; 6] = [
    "/etc/sysctl.d",
    "/etc/systemd/network",
    "/etc/udev/rules.d",
    "/etc/networkd-dispatcher/routable.d",
    "/etc/modprobe.d",
    "/etc/systemd/system",
];

/// A file that goodput may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its path.
    pub path: String,
    /// Whether it is a script.
    pub executable: bool,
}

impl Place {
    /// Where `form` belongs, if that is a file of ours which this system reads.
    pub fn of(form: &Permanent, root: &Path) -> Option<Self> {
        let (path, executable) = match form.file.strip_suffix(EXECUTABLE) {
            Some(path) => (path, true),
            None => (form.file.as_str(), false),
        };
        let (folder, name) = path.rsplit_once('/')?;
        let is_plain = !path.contains(['*', ',', ' ']);
        let is_read = READERS
            .iter()
            .all(|(files, reader)| !path.starts_with(files) || below(root, reader).is_dir());
        (is_plain && FOLDERS.contains(&folder) && is_ours(name) && is_read)
            .then(|| Self { path: path.into(), executable })
    }
}

/// Whether a file is ours by its name.
pub fn is_ours(name: &str) -> bool {
    name.contains("goodput")
}

/// An absolute path below another root than `/`.
pub fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_ours_by_name_are_written() {
        let root = tempfile::tempdir().unwrap();
        let at = |file: &str| {
            Place::of(&Permanent { file: file.into(), lines: String::new() }, root.path())
        };
        let sysctl = at("/etc/sysctl.d/90-goodput.conf").unwrap();
        assert!(!sysctl.executable);
        for others in [
            "/etc/fstab",
            "the application",
            "FreeBSD /etc/goodput.conf",
            "/etc/sysctl.d/50-default.conf",
            "/etc/systemd/network/*.network, the one of goodput0",
            "/etc/sysctl.d/../goodput",
        ] {
            assert_eq!(at(others), None, "{others}");
        }
        let script = "/etc/networkd-dispatcher/routable.d/90-goodput (executable)";
        assert_eq!(at(script), None, "nothing reads it");
        std::fs::create_dir_all(below(root.path(), "/etc/networkd-dispatcher")).unwrap();
        assert!(at(script).unwrap().executable);
    }
}
