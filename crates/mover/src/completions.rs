//! What a socket's error queue reports about zero-copy sends: which sends the kernel has finished, and whether it
//! copied them after all (Documentation/networking/msg_zerocopy.rst).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

/// `SO_EE_ORIGIN_ZEROCOPY` (include/uapi/linux/errqueue.h).
const ORIGIN_ZEROCOPY: u8 = 5;
/// `SO_EE_CODE_ZEROCOPY_COPIED` (include/uapi/linux/errqueue.h).
const CODE_COPIED: u8 = 1;

/// How many sends are done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletedSends {
    /// Sends that the kernel has finished, copied ones included.
    pub(crate) sends: u64,
    /// Sends that the kernel copied after all.
    pub(crate) copied: u64,
}

/// Reads the whole queue, without waiting.
pub(crate) fn drain(socket: BorrowedFd<'_>) -> io::Result<CompletedSends> {
    let mut done = CompletedSends::default();
    let mut control = nix::cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    loop {
        match recvmsg::<()>(socket.as_raw_fd(), &mut [], Some(&mut control), flags) {
            Ok(message) => message.cmsgs()?.for_each(|control| done.add(&control)),
            Err(Errno::EAGAIN) => return Ok(done),
            Err(Errno::EINTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
}

impl CompletedSends {
    fn add(&mut self, control: &ControlMessageOwned) {
        let (ControlMessageOwned::Ipv4RecvErr(report, _)
        | ControlMessageOwned::Ipv6RecvErr(report, _)) = control
        else {
            return;
        };
        if report.ee_origin != ORIGIN_ZEROCOPY {
            return;
        }
        // The numbers of the first and the last send of a range; they wrap around.
        let count = u64::from(report.ee_data.wrapping_sub(report.ee_info)) + 1;
        self.sends += count;
        if report.ee_code & CODE_COPIED != 0 {
            self.copied += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(origin: u8, code: u8, first: u32, last: u32) -> CompletedSends {
        let report = libc::sock_extended_err {
            ee_errno: 0,
            ee_origin: origin,
            ee_type: 0,
            ee_code: code,
            ee_pad: 0,
            ee_info: first,
            ee_data: last,
        };
        let mut done = CompletedSends::default();
        done.add(&ControlMessageOwned::Ipv4RecvErr(report, None));
        done
    }

    #[test]
    fn a_row_counts_each_send_across_the_end_of_the_numbers() {
        assert_eq!(after(ORIGIN_ZEROCOPY, 0, 7, 7), CompletedSends { sends: 1, copied: 0 });
        let copied = after(ORIGIN_ZEROCOPY, CODE_COPIED, u32::MAX, 1);
        assert_eq!(copied, CompletedSends { sends: 3, copied: 3 });
    }

    #[test]
    fn other_reports_are_not_ours() {
        assert_eq!(after(2, 0, 0, 9), CompletedSends::default());
    }
}
