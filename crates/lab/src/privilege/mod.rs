//! The right to create network namespaces: the process's own right, or that of a user namespace, in which any user is
//! root over whatever is created inside (user_namespaces(7)).

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::thread::UnshareFlags;

use crate::error::LabError;

mod obstacle;

/// How the process may create network namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// With its own capabilities, over the whole machine.
    Own,
    /// As root of its own user namespace.
    UserNamespace,
}

/// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN` (include/uapi/linux/capability.h).
const NEEDED_CAPABILITIES: u64 = 1 << 12 | 1 << 21;

/// Makes sure that this process may create network namespaces; if it has no right of its own, moves it into its own
/// user and network namespace, as root there.
///
/// Must be called before any thread is started. Moves the whole process, and everything that it starts later; it gains
/// no power over the machine outside.
pub fn enter() -> Result<Privilege, LabError> {
    if may_already()? {
        return Ok(Privilege::Own);
    }
    only_one_thread()?;
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    unshare().map_err(|errno| obstacle::of_unshare(errno, &obstacle::Switches::read()))?;
    become_root(uid.as_raw(), gid.as_raw())
        .map_err(|error| obstacle::of_mapping(&error, &obstacle::Switches::read()))?;
    Ok(Privilege::UserNamespace)
}

#[expect(unsafe_code, reason = "unshare is marked unsafe for what it can do to threads")]
fn unshare() -> Result<(), Errno> {
    // SAFETY: neither flag separates memory or file descriptors from other threads, and this is the only thread.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }
}

/// Maps root inside to the user outside. Group lists must be given up first, or the kernel refuses
/// an unprivileged group map (user_namespaces(7), since Linux 3.19).
fn become_root(uid: u32, gid: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
}

fn may_already() -> Result<bool, LabError> {
    Ok(effective_capabilities(&status()?)
        .is_some_and(|has| has & NEEDED_CAPABILITIES == NEEDED_CAPABILITIES))
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

fn only_one_thread() -> Result<(), LabError> {
    let status = status()?;
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    match threads.and_then(|number| number.trim().parse().ok()) {
        Some(1) | None => Ok(()),
        Some(threads) => Err(LabError::Threads { threads }),
    }
}

fn status() -> Result<String, LabError> {
    const PATH: &str = "/proc/self/status";
    fs::read_to_string(PATH).map_err(|source| LabError::Io {
        what: "read",
        object: PATH.into(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status() {
        let status = "Name:\tx\nCapEff:\t0000000000201000\nThreads:\t1\n";
        assert_eq!(effective_capabilities(status), Some(NEEDED_CAPABILITIES));
        assert_eq!(effective_capabilities("CapEff:\tnonsense"), None);
    }
}
