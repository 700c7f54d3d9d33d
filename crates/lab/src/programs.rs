//! Programs of administrators that faults run in a host. Ordinary users do not have their folders in their search path.

use std::path::PathBuf;

/// Path of a program, if it is installed.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/usr/local/sbin"];
    folders.iter().map(|folder| PathBuf::from(folder).join(name)).find(|path| path.exists())
}

/// Why a program of a Debian package is missing, in words; `None` if it is installed.
pub(crate) fn missing(name: &str, package: &str) -> Option<String> {
    find(name).is_none().then(|| format!("{name} is not installed: apt-get install {package}"))
}
