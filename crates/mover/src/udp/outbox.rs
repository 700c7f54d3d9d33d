//! Datagrams on their way out: one system call for a batch of messages, each of one datagram or of
//! several that the kernel or the device takes apart.

use std::array;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result as SysResult};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, send, sendmmsg};

use super::formats::{Closing, Format, Sent};
use crate::payload;

/// Messages of one call at most.
const MESSAGES: usize = 32;

/// Numbers the datagrams of one flow and sends them.
pub(crate) struct Outbox<F> {
    format: F,
    /// A batch of datagrams side by side: in each the header is new every time, the rest random.
    room: Vec<u8>,
    size: usize,
    /// Datagrams in one message.
    joined: usize,
    next: u64,
}

impl<F: Format> Outbox<F> {
    /// For datagrams of up to `size` bytes, at least the format's least, of which `joined` make a message and
    /// up to `messages` a batch. More than one in a message needs [`split_departures`].
    pub(crate) fn new(format: F, size: usize, joined: usize, messages: usize) -> Self {
        let mut room = payload::random(size * joined * messages.min(MESSAGES));
        room.chunks_exact_mut(size).for_each(|datagram| format.prepare(datagram));
        Self { format, room, size, joined, next: 0 }
    }

    /// Datagrams of one call at most.
    pub(crate) fn batch(&self) -> usize {
        self.room.len() / self.size
    }

    /// Datagrams sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Sends up to `count` datagrams of `size` bytes, only one where that is less than the full
    /// size; returns how many the kernel took. Those of one call carry one time of sending.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        count: usize,
        size: usize,
    ) -> SysResult<usize> {
        debug_assert!(size == self.size || count == 1);
        let at_ns = self.format.now_ns();
        for (datagram, number) in self.room.chunks_exact_mut(self.size).take(count).zip(self.next..)
        {
            let bytes = number * self.size as u64 + size as u64;
            self.format.write(&mut datagram[..size], Sent { number, bytes, at_ns });
        }
        let filled = &self.room[..(count * size).min(self.room.len())];
        let len = self.joined * self.size;
        let sent = if filled.len() > len {
            send_batch(socket, filled, len)
        } else {
            send(socket, filled, SendFlags::empty()).map(|_| 1)
        };
        let messages = sent.map_err(|cause| self.meaning(cause))?;
        let sent = count.min(messages * self.joined);
        self.next += sent as u64;
        Ok(sent)
    }

    /// Before Linux 6.14, `EINVAL` is the answer to joined datagrams too large for the path
    /// (`udp_send_skb`, net/ipv4/udp.c).
    fn meaning(&self, cause: Errno) -> Errno {
        if self.joined > 1 && cause == Errno::INVAL { Errno::MSGSIZE } else { cause }
    }

    /// The format, for what surrounds the payload.
    pub(crate) fn format(&self) -> &F {
        &self.format
    }

    /// What is to be sent for the time `round` to say that this was all.
    pub(crate) fn closing(&mut self, round: u64) -> Option<(&[u8], Closing)> {
        let sent = Sent { number: self.next, bytes: 0, at_ns: self.format.now_ns() };
        let room = &mut self.room[..self.size];
        let closing = self.format.closing(round, sent, room)?;
        Some((&self.room[..closing.len], closing))
    }
}

/// Sends messages of `len` bytes, the last perhaps shorter; returns how many the kernel took.
fn send_batch(socket: BorrowedFd<'_>, bytes: &[u8], len: usize) -> SysResult<usize> {
    let mut pieces = bytes.chunks(len);
    let parts: [_; MESSAGES] =
        array::from_fn(|_| [IoSlice::new(pieces.next().unwrap_or_default())]);
    let mut control: [_; MESSAGES] = array::from_fn(|_| SendAncillaryBuffer::default());
    let mut pairs = parts.iter().zip(control.iter_mut());
    let mut messages: [_; MESSAGES] = array::from_fn(|_| {
        let (parts, control) = pairs.next().expect("both arrays have as many entries");
        MMsgHdr::new(parts, control)
    });
    sendmmsg(socket, &mut messages[..bytes.len().div_ceil(len)], SendFlags::empty())
}

/// Lets the kernel or the device take each message apart into datagrams of `size` bytes
/// (`UDP_SEGMENT`, udp(7)).
pub(crate) fn split_departures(socket: BorrowedFd<'_>, size: u16) -> io::Result<()> {
    let size = i32::from(size).to_ne_bytes();
    crate::socket::set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &size)
}
