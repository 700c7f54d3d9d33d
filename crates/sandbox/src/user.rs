//! The user that the process becomes.

use std::fs;
use std::path::Path;

use nix::unistd::{self, Uid};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use crate::error::SandboxError;

/// The default users for answering untrusted clients: the server's own user if a package made one, else the user that every
/// system has.
const USUAL_NAMES: [&str; 2] = ["goodput", "nobody"];

/// A user of this host, with its group in /etc/passwd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: u32,
    gid: u32,
}

impl User {
    /// The user that a server becomes: the named user, otherwise a default one. `None`: the user stays, because it is
    /// not root and nobody was named.
    ///
    /// # Errors
    /// When there is no such user, or only root could become it.
    pub fn choose(named: Option<&str>) -> Result<Option<Self>, SandboxError> {
        let now = Uid::effective();
        match named {
            None if !now.is_root() => Ok(None),
            None => {
                let usual = USUAL_NAMES.iter().find_map(|name| Self::find(name).transpose());
                usual.unwrap_or_else(|| Err(SandboxError::NoUser(USUAL_NAMES[1].into()))).map(Some)
            }
            Some(name) => {
                let user = Self::find(name)?.ok_or_else(|| SandboxError::NoUser(name.into()))?;
                if !now.is_root() && user.uid != now.as_raw() {
                    return Err(SandboxError::NotRoot(name.into()));
                }
                Ok(now.is_root().then_some(user))
            }
        }
    }

    /// Why this process can't become the user, if it can't: its user namespace does not have the user, or it is root
    /// without the capabilities to change its user, as in many containers.
    pub fn obstacle(&self) -> Option<String> {
        let name = &self.name;
        if self.missing_id().is_some() {
            return Some(format!("this user namespace has no user {name}"));
        }
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
        let has = |sets: CapabilitySets| sets.effective.contains(needed);
        let lacks = !capabilities(None).is_ok_and(has);
        lacks.then(|| format!("becoming user {name} takes CAP_SETUID and CAP_SETGID"))
    }

    fn find(name: &str) -> Result<Option<Self>, SandboxError> {
        let found = unistd::User::from_name(name)
            .map_err(SandboxError::of(format!("look up the user {name}")))?;
        let of = |user: unistd::User| Self {
            name: name.into(),
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        };
        Ok(found.map(of))
    }

    /// The first of its numbers that is missing in this user namespace (user_namespaces(7)).
    fn missing_id(&self) -> Option<u32> {
        // A kernel without user namespaces has no such file, and all users exist.
        let lacks = |file: &str, id: u32| {
            fs::read_to_string(file).is_ok_and(|map| !has_id(&map, id)).then_some(id)
        };
        lacks("/proc/self/uid_map", self.uid).or_else(|| lacks("/proc/self/gid_map", self.gid))
    }

    /// Becomes the user. Returns a message if something could not be dropped.
    pub(crate) fn enter(&self) -> Result<Option<String>, SandboxError> {
        if let Some(id) = self.missing_id() {
            return Err(SandboxError::NotMapped { name: self.name.clone(), id });
        }
        let become_it = || SandboxError::of(format!("become user {}", self.name));
        let (uid, gid) =
            (rustix::process::Uid::from_raw(self.uid), rustix::process::Gid::from_raw(self.gid));
        let mut kept = None;
        match set_thread_groups(&[]) {
            Ok(()) => {}
            // A user namespace made by an ordinary user denies this (user_namespaces(7)).
            Err(rustix::io::Errno::PERM) => {
                kept = Some("this user namespace does not let go of supplementary groups".into());
            }
            Err(cause) => return Err(become_it()(cause)),
        }
        set_thread_res_gid(gid, gid, gid).map_err(become_it())?;
        set_thread_res_uid(uid, uid, uid).map_err(become_it())?;
        Ok(kept)
    }
}

/// Refuses a directory that this process, as its present user, can't use for the purpose. A server calls this when it
/// starts, so that its operator gets the error instead of the first client.
pub fn check_open(directory: &Path, writes: bool) -> Result<(), SandboxError> {
    let (purpose, access) = match writes {
        true => ("write", Access::WRITE_OK | Access::EXEC_OK),
        false => ("read", Access::READ_OK | Access::EXEC_OK),
    };
    accessat(CWD, directory, access, AtFlags::EACCESS).map_err(|cause| SandboxError::Closed {
        user: unistd::User::from_uid(Uid::effective())
            .ok()
            .flatten()
            .map_or_else(|| Uid::effective().to_string(), |user| user.name),
        purpose,
        directory: directory.display().to_string(),
        cause: cause.into(),
    })
}

/// Whether a user namespace's map contains `id`: lines of first number inside, first outside, count
/// (user_namespaces(7)).
fn has_id(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let inside =
            |first: u64, count: u64| (first..first.saturating_add(count)).contains(&id.into());
        matches!(numbers[..], [first, _, count] if inside(first, count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_map_are_those_of_its_ranges() {
        let whole = "         0          0 4294967295\n";
        assert!(has_id(whole, 0) && has_id(whole, 65534));
        let one = "0 1000 1\n";
        assert!(has_id(one, 0) && !has_id(one, 65534));
        let two = "0 1000 1\n1 100000 65536\n";
        assert!(has_id(two, 65534) && !has_id(two, 65537));
        assert!(!has_id("", 0) && !has_id("0 0", 0) && !has_id("x y z", 0));
    }

    #[test]
    fn a_user_that_is_not_there_is_named() {
        let refused = User::choose(Some("no-such-user-here")).expect_err("nobody has that name");
        assert!(refused.to_string().contains("no-such-user-here"), "{refused}");
    }

    #[test]
    fn root_becomes_somebody_and_others_stay_who_they_are() {
        let chosen = User::choose(None).expect("every system has nobody");
        assert_eq!(chosen.is_some(), Uid::effective().is_root());
        assert!(chosen.is_none_or(|user| user.uid != 0));
    }
}
