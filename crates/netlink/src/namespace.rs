//! Network namespaces of threads: finding the present one, and entering another.
//!
//! A namespace belongs to the thread, not to the process (setns(2), unshare(2)): code that changes it uses a
//! thread of its own. Child processes of that thread inherit it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketType};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::NetlinkError;

/// The network namespace of the calling thread. It lives at least as long as the returned descriptor.
pub fn current() -> Result<OwnedFd, NetlinkError> {
    open(Path::new("/proc/thread-self/ns/net"))
}

/// The network namespace that `path` names: `/proc/PID/ns/net` or `/run/netns/NAME`.
pub fn open(path: &Path) -> Result<OwnedFd, NetlinkError> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|cause| {
        NetlinkError::refused(format!("open the network namespace {}", path.display()), cause)
    })
}

/// Moves the calling thread into `namespace`. Needs CAP_SYS_ADMIN over both.
pub fn enter(namespace: BorrowedFd<'_>) -> Result<(), NetlinkError> {
    let network = Some(LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(namespace, network)
        .map_err(|cause| NetlinkError::refused("enter a network namespace", cause))
}

/// Moves the calling thread into a new, empty network namespace and returns it. Its loopback
/// device is down. Needs CAP_SYS_ADMIN.
pub fn unshare() -> Result<OwnedFd, NetlinkError> {
    #[expect(unsafe_code, reason = "unshare is unsafe for its FILES flag")]
    // SAFETY: NEWNET leaves the file descriptor table alone, which is all the caller must ensure.
    let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) };
    unshared.map_err(|cause| NetlinkError::refused("make a network namespace", cause))?;
    current()
}

/// The inode number of a namespace: equal for two descriptors of the same one.
pub fn inode(namespace: BorrowedFd<'_>) -> Result<u64, NetlinkError> {
    rustix::fs::fstat(namespace)
        .map(|stat| stat.st_ino)
        .map_err(|cause| NetlinkError::refused("identify a network namespace", cause))
}

/// The cookie of the calling thread's network namespace (`SO_NETNS_COOKIE`, Linux 5.14). No other
/// namespace of this boot has it, while inode numbers are reused. `None` on older kernels.
pub fn cookie() -> Option<u64> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::DGRAM, None).ok()?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    #[expect(unsafe_code, reason = "rustix does not know this socket option")]
    // SAFETY: the kernel writes at most `length` bytes into `cookie` and its own length into
    // `length`; both live through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    (result == 0 && length as usize == size_of::<u64>()).then_some(cookie)
}

/// Runs `work` on its own thread inside `namespace`. A panic there is passed on here.
pub fn inside<T: Send>(
    namespace: BorrowedFd<'_>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, NetlinkError> {
    on_own_thread(|| enter(namespace).map(|()| work()))
}

/// Runs `work` on its own thread inside a new, empty network namespace, which is gone
/// afterwards unless `work` kept a descriptor of it. A panic there is passed on here.
pub fn in_new_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, NetlinkError> {
    on_own_thread(|| unshare().map(|_namespace| work()))
}

/// Makes a namespace without moving the calling thread into it.
pub fn create() -> Result<OwnedFd, NetlinkError> {
    on_own_thread(unshare)
}

fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Whether two descriptors are the same namespace.
pub fn same(one: impl AsFd, other: impl AsFd) -> Result<bool, NetlinkError> {
    Ok(inode(one.as_fd())? == inode(other.as_fd())?)
}

#[cfg(test)]
mod tests {
    use goodput_testing::in_namespace;

    use super::*;

    #[test]
    fn a_namespace_can_be_made_entered_and_distinguished() {
        in_namespace(|| {
            let here = current().unwrap();
            let other = create().unwrap();
            assert!(!same(&here, &other).unwrap());
            let seen = inside(other.as_fd(), || inode(current().unwrap().as_fd()).unwrap());
            assert_eq!(seen.unwrap(), inode(other.as_fd()).unwrap());
            assert!(same(&here, current().unwrap()).unwrap());
        });
    }

    #[test]
    fn a_cookie_is_not_used_again_as_inodes_are() {
        in_namespace(|| {
            let seen: Vec<_> = (0..6).map(|_| in_new_namespace(cookie).unwrap()).collect();
            if seen[0].is_some() {
                assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
            }
            assert_eq!(cookie(), cookie());
        });
    }

    #[test]
    fn a_name_that_is_not_there_is_not_found() {
        let error = open(Path::new("/run/netns/no-such-namespace")).unwrap_err();
        assert!(error.not_found(), "{error}");
    }
}
