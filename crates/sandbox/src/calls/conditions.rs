//! Calls that are allowed only with certain arguments.

use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq};
use seccompiler::{BackendError, SeccompCondition, SeccompRule};

use crate::Keep;

/// New namespaces, in which a process would be root (clone(2)).
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// Uses of sockets: payload and control, and the kernel's facts.
const FAMILIES: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Non-blocking mode, queue lengths (tcp(7)), and whether a descriptor is a terminal. Not TIOCSTI, which types into the
/// terminal from which root started us.
const REQUESTS: [libc::Ioctl; 4] = [libc::FIONBIO, libc::FIONREAD, libc::TIOCOUTQ, libc::TCGETS];

/// Facts of devices (include/uapi/linux/sockios.h).
const DEVICE_REQUEST: u64 = libc::SIOCETHTOOL;

/// Raw mode and the size of a terminal, by those who draw on it (ioctl_tty(2)): with the newer form of the calls, which
/// every kernel of today has.
const TERMINAL_REQUESTS: [libc::Ioctl; 3] = [libc::TCGETS2, libc::TCSETS2, libc::TIOCGWINSZ];

/// Names of threads and of the allocator's mappings, and timer slack (prctl(2)).
const OPTIONS: [i32; 5] = [
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_VMA,
    libc::PR_SET_TIMERSLACK,
    libc::PR_GET_TIMERSLACK,
];

/// Each call with its rules, of which one must match.
pub(super) fn all(keep: &Keep) -> Result<Vec<(i64, Vec<SeccompRule>)>, BackendError> {
    let is_one_of = |argument, values: &[u64]| -> Result<Vec<SeccompRule>, BackendError> {
        let each = values.iter().map(|value| SeccompCondition::new(argument, Dword, Eq, *value));
        each.map(|condition| SeccompRule::new(vec![condition?])).collect()
    };
    let lacks = |argument, bits: u64| -> Result<Vec<SeccompRule>, BackendError> {
        let condition = SeccompCondition::new(argument, Qword, MaskedEq(bits), 0)?;
        Ok(vec![SeccompRule::new(vec![condition])?])
    };
    let numbers = |values: &[i32]| -> Vec<u64> { values.iter().map(|v| *v as u64).collect() };
    // A name service is a library, which is loaded on first use, and may ask a daemon of this host.
    let executable = if keep.resolves_names { 0 } else { libc::PROT_EXEC as u64 };
    let mut families = FAMILIES.to_vec();
    families.extend(keep.resolves_names.then_some(libc::AF_UNIX));
    let terminal = TERMINAL_REQUESTS.iter().filter(|_| keep.terminal);
    // The type depends on the C library; only 32 bits of a request count.
    let mut requests: Vec<u64> =
        REQUESTS.iter().chain(terminal).map(|r| *r as u32 as u64).collect();
    requests.push(DEVICE_REQUEST);
    Ok(vec![
        (libc::SYS_clone, lacks(0, NAMESPACES)?),
        (libc::SYS_socket, is_one_of(0, &numbers(&families))?),
        (libc::SYS_ioctl, is_one_of(1, &requests)?),
        (libc::SYS_prctl, is_one_of(0, &numbers(&OPTIONS))?),
        (libc::SYS_mmap, lacks(2, executable)?),
        (libc::SYS_mprotect, lacks(2, executable)?),
    ])
}
