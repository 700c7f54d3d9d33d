//! The kernel's facts about an MPTCP connection (`MPTCP_INFO`, Linux 5.16 and later; include/uapi/linux/mptcp.h).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use goodput_model::{Known, Missing};
use rustix::net::sockopt;

/// Protocol of an MPTCP socket, and the level of its options (`SOL_MPTCP`, include/linux/socket.h).
const IPPROTO_MPTCP: u32 = 262;
const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;

/// Offsets in `struct mptcp_info`: the subflows beside the first, the flags, and the subflows including the first,
/// which Linux 6.5 added.
const SUBFLOWS_AT: usize = 0;
const FLAGS_AT: usize = 8;
const TOTAL_SUBFLOWS_AT: usize = 80;
/// `MPTCP_INFO_FLAG_FALLBACK`.
const FALLBACK_BIT: u32 = 1;
/// Room for the part that is read here.
const INFO_BYTES: usize = 96;

/// How many subflows an MPTCP connection has; missing if it fell back to TCP. `None` if it is not an MPTCP socket.
pub fn mptcp_subflows(socket: BorrowedFd<'_>) -> Option<Known<u64>> {
    let protocol = sockopt::socket_protocol(socket).ok().flatten()?;
    if protocol.as_raw().get() != IPPROTO_MPTCP {
        return None;
    }
    let mut info = [0; INFO_BYTES];
    Some(match read(socket, &mut info) {
        Ok(length) => subflows(&info[..length.min(INFO_BYTES)]).into(),
        // After a fallback, a socket has only TCP's options (net/mptcp/sockopt.c, `mptcp_getsockopt`).
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => fell_back().into(),
        Err(error) => Known::missing(format!("no MPTCP_INFO: {error}")),
    })
}

fn fell_back() -> Result<u64, Missing> {
    let why =
        "the connection fell back to TCP: the other end, or something on the path, has no MPTCP";
    Err(Missing::because(why))
}

fn subflows(info: &[u8]) -> Result<u64, Missing> {
    let short = || Missing::because(format!("MPTCP_INFO has only {} bytes", info.len()));
    let flags = info.get(FLAGS_AT..FLAGS_AT + 4).and_then(|bytes| bytes.try_into().ok());
    if u32::from_ne_bytes(flags.ok_or_else(short)?) & FALLBACK_BIT != 0 {
        return fell_back();
    }
    let further = *info.get(SUBFLOWS_AT).ok_or_else(short)?;
    Ok(info.get(TOTAL_SUBFLOWS_AT).map_or(u64::from(further) + 1, |total| u64::from(*total)))
}

#[expect(unsafe_code, reason = "no library covers MPTCP_INFO")]
fn read(socket: BorrowedFd<'_>, info: &mut [u8; INFO_BYTES]) -> io::Result<usize> {
    let mut length = INFO_BYTES as libc::socklen_t;
    // SAFETY: `info` is writable for `length` bytes, and the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            SOL_MPTCP,
            MPTCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    #[test]
    fn subflows_are_counted_as_the_kernel_reports_them() {
        let mut info = [0; INFO_BYTES];
        (info[SUBFLOWS_AT], info[TOTAL_SUBFLOWS_AT]) = (2, 3);
        assert_eq!(subflows(&info), Ok(3));
        assert_eq!(
            subflows(&info[..TOTAL_SUBFLOWS_AT]),
            Ok(3),
            "before 6.5 the first one is not counted"
        );
        assert!(subflows(&info[..FLAGS_AT]).is_err() && subflows(&[]).is_err());
        info[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&FALLBACK_BIT.to_ne_bytes());
        assert!(subflows(&info).unwrap_err().to_string().contains("fell back"));
    }

    #[test]
    fn a_tcp_socket_has_none() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(mptcp_subflows(socket.as_fd()), None);
    }
}
