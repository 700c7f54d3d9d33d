//! Incoming datagrams: one system call for a batch, each datagram with the kernel's arrival time.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::{Errno, Result as SysResult};

use super::control::{self, Control};
use crate::clock::wall_ns;

/// Most datagrams in one call.
pub(crate) const BATCH_DATAGRAMS: usize = 32;

/// Most memory for one batch, bytes: with large datagrams a batch holds fewer.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// One datagram of a batch.
pub(crate) struct Arrival<'a> {
    /// What was received.
    pub(crate) datagram: &'a [u8],
    /// When the kernel received it, nanoseconds since 1970.
    pub(crate) received_ns: u64,
    /// Whether it is the first datagram of its packet, as every single one is.
    pub(crate) is_first: bool,
}

/// Room for a batch, reused for each.
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    size: usize,
    control: Vec<Control>,
    /// Where the kernel finds the room of each message; written before each call, and of no use after it.
    parts: Vec<libc::iovec>,
    /// The messages of a call, and their lengths after it.
    messages: Vec<libc::mmsghdr>,
}

impl Inbox {
    /// For messages of up to `size` bytes; longer ones are cut. For a socket that has [`stamp_arrivals`] and perhaps
    /// [`join_arrivals`].
    #[expect(unsafe_code, reason = "rustix has no recvmmsg, so its structures are those of libc")]
    pub(crate) fn new(size: usize, batch: usize) -> Self {
        let size = size.max(1);
        let batch = batch.min(BATCH_BYTES / size).clamp(1, BATCH_DATAGRAMS);
        // SAFETY: both structures are plain data for which all zeros are valid: null pointers with
        // lengths of zero.
        let (part, message): (libc::iovec, libc::mmsghdr) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        Self {
            buffer: vec![0; size * batch],
            size,
            control: vec![Control::EMPTY; batch],
            parts: vec![part; batch],
            messages: vec![message; batch],
        }
    }

    /// Reads the available datagrams, up to a batch, without waiting; passes each to `take`, in order. Returns whether the
    /// batch was full, so that more may be there.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        mut take: impl FnMut(Arrival<'_>),
    ) -> SysResult<bool> {
        let count = self.receive_batch(socket)?;
        let mut now = None;
        let came = self.buffer.chunks_exact(self.size).zip(&self.messages).zip(&self.control);
        for ((room, message), control) in came.take(count) {
            let message = &room[..(message.msg_len as usize).min(self.size)];
            let notes = control.notes();
            // The kernel never leaves the timestamp out; if it did, the time of reading is the best substitute.
            let read = || *now.get_or_insert_with(wall_ns);
            let received_ns = notes.received_ns.unwrap_or_else(read);
            let mut is_first = true;
            for datagram in message.chunks(notes.segment.unwrap_or(self.size)) {
                take(Arrival { datagram, received_ns, is_first });
                is_first = false;
            }
        }
        Ok(count == self.messages.len())
    }

    /// How many datagrams were read.
    #[expect(unsafe_code, reason = "rustix has no recvmmsg")]
    fn receive_batch(&mut self, socket: BorrowedFd<'_>) -> SysResult<usize> {
        let buffers = self.buffer.chunks_exact_mut(self.size).zip(&mut self.control);
        for ((message, part), (buffer, control)) in
            self.messages.iter_mut().zip(&mut self.parts).zip(buffers)
        {
            *control = Control::EMPTY;
            part.iov_base = buffer.as_mut_ptr().cast();
            part.iov_len = buffer.len();
            message.msg_hdr.msg_iov = ptr::from_mut(part);
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = control::CONTROL_BYTES as _;
        }
        // SAFETY: each message points to a buffer, a control buffer and a part of the lengths given, all of which live
        // longer than the call and are used by nothing else.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                self.messages.len() as _,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        usize::try_from(count).map_err(|_| last_error())
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Makes the kernel report each datagram's arrival time (`SO_TIMESTAMPNS`, socket(7)).
///
/// A sample of the datagrams would cost as much: with and without it, CPU time of sender and receiver together was 0.99 to
/// 1.01 times as much, at 64 and 1448 bytes, one and 32 datagrams per call (loopback, Linux 6.18, medians of 45
/// interleaved rounds with quartiles 4 % apart). Joined datagrams share one.
pub(crate) fn stamp_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    crate::socket::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32.to_ne_bytes())
}

/// Lets the kernel deliver several datagrams of one size as one message (`UDP_GRO`, udp(7)).
pub(crate) fn join_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    crate::socket::set_option(socket, libc::SOL_UDP, libc::UDP_GRO, &1i32.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::outbox::split_departures;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn datagrams_come_in_order_with_their_times() {
        let (near, far) = pair();
        stamp_arrivals(far.as_fd()).unwrap();
        let mut inbox = Inbox::new(32, BATCH_DATAGRAMS);
        until_stamped(&near, &far, &mut inbox);
        let before = wall_ns();
        for len in [1, 9, 40] {
            near.send(&[7; 40][..len]).unwrap();
        }
        let seen = received(3, &far, &mut inbox, |a| (a.datagram.len(), a.received_ns));
        let lengths: Vec<_> = seen.iter().map(|(len, _)| *len).collect();
        assert_eq!(lengths, [1, 9, 32], "the last one is cut");
        assert!(seen.windows(2).all(|two| two[0].1 <= two[1].1), "{seen:?}");
        assert!(seen[0].1 >= before && seen[2].1 <= wall_ns(), "{before} {seen:?}");
        assert_eq!(inbox.receive(far.as_fd(), |_| ()), Err(Errno::AGAIN));
    }

    #[test]
    fn a_batch_that_is_not_full_leaves_nothing() {
        let (near, far) = pair();
        near.send(&[7]).unwrap();
        near.send(&[7]).unwrap();
        far.peek(&mut [0]).unwrap();
        let mut inbox = Inbox::new(32, 1);
        assert_eq!(inbox.receive(far.as_fd(), |_| ()), Ok(true), "there may be more");
        far.peek(&mut [0]).unwrap();
        assert_eq!(Inbox::new(32, 2).receive(far.as_fd(), |_| ()), Ok(false));
    }

    /// The kernel starts to timestamp a while after the request (`net_enable_timestamp`, net/core/dev.c); until then
    /// the time of reading replaces the arrival time.
    fn until_stamped(near: &UdpSocket, far: &UdpSocket, inbox: &mut Inbox) {
        loop {
            near.send(&[7]).unwrap();
            let sent = wall_ns();
            if received(1, far, inbox, |a| a.received_ns)[0] <= sent {
                return;
            }
        }
    }

    /// The results of `take` for this many datagrams, which come soon.
    fn received<T>(
        count: usize,
        far: &UdpSocket,
        inbox: &mut Inbox,
        take: impl Fn(Arrival<'_>) -> T,
    ) -> Vec<T> {
        let mut seen = Vec::new();
        while seen.len() < count {
            far.peek(&mut [0]).unwrap();
            inbox.receive(far.as_fd(), |arrival| seen.push(take(arrival))).unwrap();
        }
        seen
    }

    #[test]
    fn what_came_as_one_is_given_one_by_one() {
        let (near, far) = pair();
        join_arrivals(far.as_fd()).unwrap();
        stamp_arrivals(far.as_fd()).unwrap();
        split_departures(near.as_fd(), 10).unwrap();
        near.send(&[7; 34]).unwrap();
        near.send(&[7; 4]).unwrap();
        let take = |a: Arrival<'_>| (a.datagram.len(), a.is_first);
        let seen = received(5, &far, &mut Inbox::new(100, BATCH_DATAGRAMS), take);
        assert_eq!(seen, [(10, true), (10, false), (10, false), (4, false), (4, true)]);
    }

    fn pair() -> (UdpSocket, UdpSocket) {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        (near, far)
    }
}
