//! Datagrams on their way in: one system call for a batch, each with the kernel's time of arrival.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::{Errno, Result as SysResult};

use crate::clock::wall_ns;

/// Datagrams of one call at most.
pub(crate) const BATCH: usize = 32;

/// Memory for one batch at most, bytes: with large datagrams a batch holds fewer.
const ROOM: usize = 1 << 20;

/// `CMSG_SPACE` of one `struct timespec`: header and content of 16 bytes each on 64-bit Linux.
const CONTROL: usize = 32;

/// Room for one control message, aligned as `struct cmsghdr` wants it.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Control([u8; CONTROL]);

/// One datagram of a batch.
pub(crate) struct Arrival<'a> {
    /// What was received.
    pub(crate) datagram: &'a [u8],
    /// When the kernel received it, nanoseconds since 1970.
    pub(crate) received_ns: u64,
}

/// Room for a batch, used again for each.
pub(crate) struct Inbox {
    room: Vec<u8>,
    size: usize,
    control: [Control; BATCH],
    batch: usize,
}

impl Inbox {
    /// For datagrams of up to `size` bytes; longer ones are cut. Of a socket that was given
    /// [`stamp_arrivals`].
    pub(crate) fn new(size: usize, batch: usize) -> Self {
        let size = size.max(1);
        let batch = batch.min(ROOM / size).clamp(1, BATCH);
        let control = [Control([0; CONTROL]); BATCH];
        Self { room: vec![0; size * batch], size, control, batch }
    }

    /// Reads what has come, up to a batch, without waiting; gives each to `take`, in order.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        mut take: impl FnMut(Arrival<'_>),
    ) -> SysResult<()> {
        let lengths = self.receive_batch(socket)?;
        let mut now = None;
        for (i, len) in lengths.iter().take_while(|len| **len != usize::MAX).enumerate() {
            let datagram = &self.room[i * self.size..][..(*len).min(self.size)];
            // Without a stamp, which the kernel never leaves out, the time of reading is the best.
            let read = || *now.get_or_insert_with(wall_ns);
            let received_ns = stamp(&self.control[i]).unwrap_or_else(read);
            take(Arrival { datagram, received_ns });
        }
        Ok(())
    }

    /// The lengths of the datagrams read; `usize::MAX` behind the last.
    #[expect(unsafe_code, reason = "rustix has no recvmmsg")]
    fn receive_batch(&mut self, socket: BorrowedFd<'_>) -> SysResult<[usize; BATCH]> {
        // SAFETY: both structures are plain data for which all zeros are valid: null pointers with
        // lengths of zero.
        let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let rooms = self.room.chunks_exact_mut(self.size).zip(self.control.iter_mut());
        for ((message, part), (room, control)) in messages.iter_mut().zip(&mut parts).zip(rooms) {
            control.0.fill(0);
            part.iov_base = room.as_mut_ptr().cast();
            part.iov_len = room.len();
            message.msg_hdr.msg_iov = ptr::from_mut(part);
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL as _;
        }
        // SAFETY: the first `batch` messages point to rooms, control buffers and parts of the
        // lengths given, all of which live longer than the call and are used by nothing else.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                self.batch as _,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| last_error())?;
        let mut lengths = [usize::MAX; BATCH];
        for (len, message) in lengths.iter_mut().zip(&messages[..count]) {
            *len = message.msg_len as usize;
        }
        Ok(lengths)
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Asks the kernel for the time of arrival of each datagram (`SO_TIMESTAMPNS`, socket(7)).
pub(crate) fn stamp_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    crate::socket::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32.to_ne_bytes())
}

/// The time in a control message: `struct cmsghdr` (length, level, type), then `struct timespec`.
fn stamp(control: &Control) -> Option<u64> {
    let (header, time) = control.0.split_at(16);
    let level = i32::from_ne_bytes(header[8..12].try_into().ok()?);
    let kind = i32::from_ne_bytes(header[12..16].try_into().ok()?);
    let seconds = i64::from_ne_bytes(time[..8].try_into().ok()?);
    let nanoseconds = i64::from_ne_bytes(time[8..].try_into().ok()?);
    let is_time = level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS;
    is_time.then_some(seconds as u64 * 1_000_000_000 + nanoseconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn datagrams_come_in_order_with_their_times() {
        let (near, far) = pair();
        let before = wall_ns();
        stamp_arrivals(far.as_fd()).unwrap();
        for len in [1, 9, 40] {
            near.send(&[7; 40][..len]).unwrap();
        }
        let mut inbox = Inbox::new(32, BATCH);
        let mut seen = Vec::new();
        inbox.receive(far.as_fd(), |a| seen.push((a.datagram.len(), a.received_ns))).unwrap();
        let lengths: Vec<_> = seen.iter().map(|(len, _)| *len).collect();
        assert_eq!(lengths, [1, 9, 32], "the last one is cut");
        assert!(seen.windows(2).all(|two| two[0].1 <= two[1].1), "{seen:?}");
        assert!(seen[0].1 >= before && seen[2].1 <= wall_ns(), "{before} {seen:?}");
        assert_eq!(inbox.receive(far.as_fd(), |_| ()), Err(Errno::AGAIN));
    }

    fn pair() -> (UdpSocket, UdpSocket) {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        (near, far)
    }
}
