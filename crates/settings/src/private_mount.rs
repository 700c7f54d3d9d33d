//! Mounts an NFS export again, with other options, where nobody else sees it.
//!
//! The mount is in the mount namespace of one thread, on top of the mount that it repeats. The namespace lives as long
//! as a file in it is open or a thread is in it. So the kernel removes the mount with them, however this process ends,
//! and nothing needs to be noted or put back.

use std::io;
use std::thread;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// An existing mount, as in /proc/self/mountinfo, to be repeated with other options.
#[derive(Debug, Clone)]
pub struct MountAgain {
    /// `SERVER:/EXPORT`, with the folder of the export that is seen at the mount point.
    pub source: String,
    /// Mount point.
    pub point: String,
    /// "nfs" or "nfs4".
    pub kind: String,
    /// Its options.
    pub options: Vec<String>,
    /// Options to change, as name and value.
    pub changes: Vec<(&'static str, String)>,
}

/// Why an export can't be mounted again.
#[derive(Debug, thiserror::Error)]
pub enum PrivateMountError {
    /// It requires a privilege.
    #[error("can't mount {0} once more, with other options: that takes root (CAP_SYS_ADMIN)")]
    NotPermitted(String),
    /// A step failed.
    #[error("can't {operation}: {cause}{}", advice(cause))]
    Failed {
        /// What was tried on what.
        operation: String,
        /// The system's error.
        cause: io::Error,
    },
}

impl PrivateMountError {
    /// Whether a missing privilege is the reason.
    pub fn not_permitted(&self) -> bool {
        matches!(self, Self::NotPermitted(_))
    }
}

fn advice(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EINVAL) => "; the kernel does not take one of the options, `dmesg` says which",
        Some(libc::ENODEV) => "; this kernel has no NFS client (modprobe nfs)",
        _ => "",
    }
}

/// Options that the kernel reports but does not accept in this form (`nfs_mount_option_tokens`,
/// fs/nfs/super.c before Linux 5.6): they are flags of mount(2).
const FLAGS: [&str; 2] = ["rw", "ro"];

/// The option that separates caches, options and counts of two mounts of one export.
const APART: &str = "nosharecache";

impl MountAgain {
    /// Mounts the export in a mount namespace of a new thread, and does `work` there. Files that `work` opens below the
    /// mount point are on the new mount, and keep it alive.
    pub fn with<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, PrivateMountError> {
        thread::scope(|scope| {
            let made =
                thread::Builder::new().name("private-mount".into()).spawn_scoped(scope, || {
                    self.mount()?;
                    Ok(work())
                });
            let thread = made.map_err(|cause| self.failed("start a thread to mount", cause))?;
            let gone = || Err(self.failed("mount", io::Error::other("its thread panicked")));
            thread.join().unwrap_or_else(|_| gone())
        })
    }

    /// Leaves the namespace that the calling thread shares with all others, and mounts in a new one.
    #[expect(
        unsafe_code,
        reason = "rustix leaves it to the caller that no descriptors are unshared"
    )]
    fn mount(&self) -> Result<(), PrivateMountError> {
        // SAFETY: only the mount namespace, and with it the working directory, become private to the thread;
        // descriptors stay shared.
        let left = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
        left.map_err(|cause| self.failed("make a mount namespace for", cause.into()))?;
        // Mounts here must not appear in the namespace that this one was copied from.
        let alone = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
        mount_change("/", alone)
            .map_err(|cause| self.failed("keep apart the mount of", cause.into()))?;
        let mut flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        if self.options.iter().any(|option| option == "ro") {
            flags |= MountFlags::RDONLY;
        }
        let data = std::ffi::CString::new(self.data());
        let data = data.map_err(|cause| self.failed("mount", cause.into()))?;
        mount(self.source.as_str(), self.point.as_str(), self.kind.as_str(), flags, data.as_c_str())
            .map_err(|cause| self.failed("mount", cause.into()))
    }

    /// The options as mount(2) takes them, the changed ones last. A mount that shares its caches with another one also
    /// shares its options and counts, and can't be on top of it (nfs(5), `sharecache`).
    fn data(&self) -> String {
        let is_changed = |option: &str| {
            let name = option.split('=').next().unwrap_or(option);
            self.changes.iter().any(|(changed, _)| *changed == name)
        };
        let is_ours = |option: &str| FLAGS.contains(&option) || option == APART;
        let kept = self.options.iter().filter(|option| !is_ours(option) && !is_changed(option));
        let changed = self.changes.iter().map(|(name, value)| format!("{name}={value}"));
        let apart = std::iter::once(APART.to_string());
        kept.cloned().chain(changed).chain(apart).collect::<Vec<_>>().join(",")
    }

    fn failed(&self, what: &str, cause: io::Error) -> PrivateMountError {
        let source = &self.source;
        match cause.raw_os_error() {
            Some(libc::EPERM) => PrivateMountError::NotPermitted(source.clone()),
            _ => {
                let changes: Vec<_> =
                    self.changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let operation = format!("{what} {source} with {}", changes.join(","));
                PrivateMountError::Failed { operation, cause }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(options: &str, changes: &[(&'static str, &str)]) -> MountAgain {
        MountAgain {
            source: "nas:/export".into(),
            point: "/proc".into(),
            kind: "nfs4".into(),
            options: options.split(',').map(Into::into).collect(),
            changes: changes.iter().map(|(name, value)| (*name, (*value).into())).collect(),
        }
    }

    #[test]
    fn changed_options_replace_the_old_ones() {
        let options = "rw,vers=4.2,rsize=1048576,wsize=4096,addr=192.0.2.7";
        let again = again(options, &[("rsize", "8192"), ("nconnect", "4")]);
        assert_eq!(
            again.data(),
            "vers=4.2,wsize=4096,addr=192.0.2.7,rsize=8192,nconnect=4,nosharecache"
        );
    }

    /// The kernel has no such type. It reports this only after the namespace was left and made private; a caller
    /// without that right gets the privilege error.
    #[test]
    fn what_fails_leaves_this_namespace_alone() {
        let before = std::fs::read_link("/proc/self/ns/mnt").unwrap();
        let again = MountAgain { kind: "no-such-type".into(), ..again("rw", &[("rsize", "8192")]) };
        let why = again.with(|| ()).unwrap_err();
        let text = why.to_string();
        assert!(why.not_permitted() || text.contains("nas:/export with rsize=8192"), "{text}");
        assert_eq!(std::fs::read_link("/proc/self/ns/mnt").unwrap(), before);
    }
}
