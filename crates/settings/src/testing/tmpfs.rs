//! Small file systems that are full or read-only.

use std::path::Path;
use std::process::Command;

/// A file system of 64 KiB.
pub(crate) struct Tmpfs<'a>(&'a Path);

impl<'a> Tmpfs<'a> {
    /// Mounts it; `None` without the right to mount.
    pub(crate) fn mount(at: &'a Path) -> Option<Self> {
        let mounted = mount(at, &["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs"]);
        mounted.then_some(Self(at))
    }

    /// Fills it with a file.
    pub(crate) fn fill(&self, name: &str) {
        let error = std::fs::write(self.0.join(name), vec![0; 128 * 1024]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }

    /// Makes it read-only.
    pub(crate) fn make_read_only(&self) {
        assert!(mount(self.0, &["-o", "remount,ro"]));
    }
}

fn mount(at: &Path, options: &[&str]) -> bool {
    let ran = Command::new("mount").args(options).arg(at).status();
    ran.is_ok_and(|status| status.success())
}

impl Drop for Tmpfs<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}
