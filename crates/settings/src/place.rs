//! Where we are: this boot, this network namespace, and the directories of the journals.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use goodput_netlink::namespace;

use crate::error::SettingError;

/// What distinguishes one running kernel and network namespace from another.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Place {
    /// Random for each boot (random(4)).
    pub(crate) boot_id: String,
    /// Inode number of the calling thread's network namespace (namespaces(7)). The kernel reuses the number
    /// for later namespaces.
    pub(crate) netns: u64,
    /// The namespace's cookie, which is never used again in one boot (`SO_NETNS_COOKIE`); `None`
    /// on kernels before 5.14 and in journals of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) netns_cookie: Option<u64>,
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const NETNS: &str = "/proc/thread-self/ns/net";

impl Place {
    /// Where the calling thread is.
    pub(crate) fn here() -> Result<Self, SettingError> {
        let boot_id = fs::read_to_string(BOOT_ID)
            .map_err(|cause| SettingError::Identity { path: BOOT_ID, cause })?;
        let netns = fs::metadata(NETNS)
            .map_err(|cause| SettingError::Identity { path: NETNS, cause })?
            .ino();
        Ok(Self { boot_id: boot_id.trim().into(), netns, netns_cookie: namespace::cookie() })
    }

    /// Whether both are the same running kernel. No setting survives a reboot.
    pub(crate) fn same_boot(&self, other: &Self) -> bool {
        self.boot_id == other.boot_id
    }

    /// Whether both are the same network namespace of the same running kernel: by the cookie if
    /// both have it, else by the inode.
    pub(crate) fn same_namespace(&self, other: &Self) -> bool {
        self.same_boot(other)
            && match (self.netns_cookie, other.netns_cookie) {
                (Some(one), Some(other)) => one == other,
                _ => self.netns == other.netns,
            }
    }
}

/// What a session by SSH at this host's network namespace would read as its identity: the boot, and the namespace as
/// `/proc/self/ns/net` names it.
///
/// # Errors
/// If the kernel does not tell.
pub fn identity_here() -> Result<[String; 2], SettingError> {
    let Place { boot_id, netns, .. } = Place::here()?;
    Ok([boot_id, format!("net:[{netns}]")])
}

/// Default directory of the journals: `/var/lib/goodput` for root, else
/// `$XDG_STATE_HOME/goodput` or `~/.local/state/goodput` (XDG Base Directory Specification 0.8).
/// Root of a user namespace has only its owner's rights on disk and counts as that user.
pub fn default_state_dir() -> Result<PathBuf, SettingError> {
    let uid_map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let root = rustix::process::geteuid().is_root() && is_initial(&uid_map);
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    choose(root, variable("XDG_STATE_HOME").as_deref(), variable("HOME").as_deref())
}

/// The directory that lists all open journals of this user, whatever directory they are in, so that runs
/// with different directories see each other: below `/run` for root, else in
/// `$XDG_RUNTIME_DIR`, else beside the user's usual journals. Nobody else can write there. Abstract socket
/// names would not do, because anyone may take one first.
pub(crate) fn list_dir() -> Result<PathBuf, SettingError> {
    let uid_map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if rustix::process::geteuid().is_root() && is_initial(&uid_map) {
        return Ok("/run/goodput/journals".into());
    }
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute()) {
        Some(runtime) => Ok(runtime.join("goodput/journals")),
        None => Ok(default_state_dir()?.join("open")),
    }
}

/// Whether `uid_map` is that of the initial user namespace, which maps every uid to itself
/// (user_namespaces(7)).
fn is_initial(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn choose(root: bool, xdg: Option<&Path>, home: Option<&Path>) -> Result<PathBuf, SettingError> {
    if root {
        return Ok("/var/lib/goodput".into());
    }
    // The specification says to ignore relative paths.
    match (xdg.filter(|p| p.is_absolute()), home.filter(|p| p.is_absolute())) {
        (Some(xdg), _) => Ok(xdg.join("goodput")),
        (None, Some(home)) => Ok(home.join(".local/state/goodput")),
        (None, None) => Err(SettingError::NoStateDir("neither variable is set")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_users_have_their_own_places() {
        let (xdg, home) = (Some(Path::new("/x")), Some(Path::new("/h")));
        assert_eq!(choose(true, xdg, home).unwrap(), Path::new("/var/lib/goodput"));
        assert_eq!(choose(false, xdg, home).unwrap(), Path::new("/x/goodput"));
        let relative = Some(Path::new("x"));
        assert_eq!(choose(false, relative, home).unwrap(), Path::new("/h/.local/state/goodput"));
        assert!(choose(false, None, None).is_err());
    }

    #[test]
    fn root_of_a_user_namespace_is_distinguished_from_the_real_one() {
        assert!(is_initial("         0          0 4294967295\n"));
        assert!(!is_initial("         0       1000          1\n"));
    }

    #[test]
    fn a_namespace_is_recognised_by_its_cookie_and_without_one_by_its_inode() {
        let place = |boot_id: &str, netns, netns_cookie| Place {
            boot_id: boot_id.into(),
            netns,
            netns_cookie,
        };
        let here = place("b", 7, Some(1));
        assert!(here.same_namespace(&place("b", 8, Some(1))));
        assert!(!here.same_namespace(&place("b", 7, Some(2))), "the inode was used again");
        assert!(here.same_namespace(&place("b", 7, None)), "an old journal has no cookie");
        assert!(!here.same_namespace(&place("c", 7, Some(1))), "another boot");
        let old: Place = serde_json::from_str(r#"{"boot_id":"b","netns":7}"#).unwrap();
        assert_eq!(old, place("b", 7, None));
    }

    #[test]
    fn the_place_is_the_same_twice() {
        assert_eq!(Place::here().unwrap(), Place::here().unwrap());
    }
}
