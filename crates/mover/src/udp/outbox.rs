//! Outgoing datagrams: one system call for a batch of messages, each of one datagram or of several that the kernel or
//! the device splits.

use std::array;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use goodput_framing::{Closing, Datagrams, Sent};
use rustix::cmsg_space;
use rustix::io::{Errno, Result as SysResult};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmmsg};

use super::sender::{DatagramSender, DepartureTimes};
use crate::clock::{now_ns, ns_by};
use crate::flow::Flow;
use crate::payload;

/// Most messages in one call.
pub(crate) const MAX_MESSAGES: usize = 32;

/// Numbers the datagrams of one flow and sends them.
pub(crate) struct Outbox {
    datagrams: Box<dyn Datagrams>,
    /// A batch of datagrams side by side: the header of each is rewritten every time, the rest stays. A datagram's slot
    /// is its number modulo the batch size.
    buffer: Vec<u8>,
    size: usize,
    /// Datagrams in one message.
    joined: usize,
    next: u64,
    /// If set, the kernel holds datagrams until these times. Needs `SO_TXTIME`, and one datagram per message.
    departures: Option<DepartureTimes>,
    /// Whether joined datagrams go one by one once the path does not take them.
    may_part: bool,
}

impl Outbox {
    /// For datagrams of up to `size` bytes, at least the framing's minimum; `joined` of them make a message and up to
    /// `messages` a batch. More than one per message requires [`split_departures`].
    pub(crate) fn new(
        datagrams: Box<dyn Datagrams>,
        size: usize,
        joined: usize,
        messages: usize,
    ) -> Self {
        let mut buffer = vec![0; size * joined * messages.min(MAX_MESSAGES)];
        payload::fill(0, &mut buffer);
        buffer.chunks_exact_mut(size).for_each(|datagram| datagrams.prepare(datagram));
        Self { datagrams, buffer, size, joined, next: 0, departures: None, may_part: false }
    }

    /// The same, but datagrams that the path does not take joined go one by one.
    pub(crate) fn if_taken(self) -> Self {
        Self { may_part: true, ..self }
    }

    /// Sends up to `count` datagrams of `size` bytes, only one if `size` is less than the full size; returns how many
    /// the kernel took. The datagrams of one call carry the same sending time, unless each has its own departure.
    fn send_by(&mut self, socket: BorrowedFd<'_>, count: usize, size: usize) -> SysResult<usize> {
        debug_assert!(size == self.size || count == 1);
        let first = (self.next % self.batch() as u64) as usize;
        let count = self.within_batch(count);
        let (now, departures) = (ns_by(self.datagrams.clock()), self.departures);
        let lead = departures.map(|all| (all, now_ns()));
        let buffer = &mut self.buffer[first * self.size..];
        for (i, datagram) in buffer.chunks_exact_mut(self.size).take(count).enumerate() {
            let number = self.next + i as u64;
            let bytes = number * self.size as u64 + size as u64;
            let held = lead.map_or(0, |(all, from)| all.at_ns(i).saturating_sub(from));
            let at_ns = now + held;
            self.datagrams.write(&mut datagram[..size], Sent { number, bytes, at_ns });
        }
        let filled = &buffer[..(count * size).min(buffer.len())];
        let len = self.joined * self.size;
        let sent = if filled.len() > len || departures.is_some() {
            send_batch(socket, filled, len, departures)
        } else {
            send(socket, filled, SendFlags::empty()).map(|_| 1)
        };
        let messages = match sent.map_err(|cause| self.meaning(cause)) {
            Err(Errno::MSGSIZE | Errno::IO) if self.may_part && self.joined > 1 => {
                self.part(socket)?;
                return self.send_by(socket, count, size);
            }
            sent => sent?,
        };
        let sent = count.min(messages * self.joined);
        self.next += sent as u64;
        Ok(sent)
    }

    /// How many of `count` datagrams one call sends: after one that took only a part of a batch, the next sends the batch's rest.
    fn within_batch(&self, count: usize) -> usize {
        let first = (self.next % self.batch() as u64) as usize;
        count.min(self.batch() - first)
    }

    /// Joins no more datagrams, because the path takes no joined ones: each is so long that it has to be cut (`EMSGSIZE`), or
    /// packets are encrypted, or the device makes no checksums (`EIO`; `udp_send_skb`, net/ipv4/udp.c).
    fn part(&mut self, socket: BorrowedFd<'_>) -> SysResult<()> {
        split_departures(socket, 0)
            .map_err(|cause| cause.raw_os_error().map_or(Errno::INVAL, Errno::from_raw_os_error))?;
        self.joined = 1;
        self.buffer.truncate(self.size * MAX_MESSAGES);
        Ok(())
    }

    /// Before Linux 6.14, the kernel answers `EINVAL` to joined datagrams too large for the path (`udp_send_skb`,
    /// net/ipv4/udp.c).
    fn meaning(&self, cause: Errno) -> Errno {
        if self.joined > 1 && cause == Errno::INVAL { Errno::MSGSIZE } else { cause }
    }
}

impl DatagramSender for Outbox {
    fn datagrams(&self) -> &dyn Datagrams {
        self.datagrams.as_ref()
    }

    fn batch(&self) -> usize {
        self.buffer.len() / self.size
    }

    fn sent(&self) -> u64 {
        self.next
    }

    fn send(
        &mut self,
        flow: &Flow,
        count: usize,
        size: usize,
        departures: Option<DepartureTimes>,
    ) -> SysResult<usize> {
        self.departures = departures;
        self.send_by(flow.socket.as_fd(), count, size)
    }

    fn lose(&mut self, count: usize) -> usize {
        let lost = self.within_batch(count).min(self.joined);
        self.next += lost as u64;
        lost
    }

    fn closing(&mut self, round: u64) -> Option<(&[u8], Closing)> {
        let sent = Sent { number: self.next, bytes: 0, at_ns: ns_by(self.datagrams.clock()) };
        let buffer = &mut self.buffer[..self.size];
        let closing = self.datagrams.closing(round, sent, buffer)?;
        Some((&self.buffer[..closing.len], closing))
    }
}

/// Sends messages of `len` bytes, the last perhaps shorter; returns how many the kernel took.
fn send_batch(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    len: usize,
    departures: Option<DepartureTimes>,
) -> SysResult<usize> {
    let mut spaces = [[MaybeUninit::<u8>::uninit(); cmsg_space!(TxTime(1))]; MAX_MESSAGES];
    let mut pieces = bytes.chunks(len);
    let parts: [_; MAX_MESSAGES] =
        array::from_fn(|_| [IoSlice::new(pieces.next().unwrap_or_default())]);
    let mut free = spaces.iter_mut();
    let mut control: [_; MAX_MESSAGES] = array::from_fn(|number| {
        let Some(departures) = departures else { return SendAncillaryBuffer::default() };
        let space = free.next().expect("both arrays have as many entries");
        let mut control = SendAncillaryBuffer::new(space);
        control.push(SendAncillaryMessage::TxTime(departures.at_ns(number)));
        control
    });
    let mut pairs = parts.iter().zip(control.iter_mut());
    let mut messages: [_; MAX_MESSAGES] = array::from_fn(|_| {
        let (parts, control) = pairs.next().expect("both arrays have as many entries");
        MMsgHdr::new(parts, control)
    });
    sendmmsg(socket, &mut messages[..bytes.len().div_ceil(len)], SendFlags::empty())
}

/// Lets the kernel or the device split each message into datagrams of `size` bytes (`UDP_SEGMENT`, udp(7)).
pub(crate) fn split_departures(socket: BorrowedFd<'_>, size: u16) -> io::Result<()> {
    let size = i32::from(size).to_ne_bytes();
    crate::socket::set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::inbox::{BATCH_DATAGRAMS, Inbox};
    use goodput_testing::in_namespace;
    use rustix::net::TxTimeFlags;
    use rustix::net::sockopt::set_txtime;
    use rustix::time::ClockId;
    use std::net::UdpSocket;

    /// As over IPv6, or through a tunnel: datagrams that the host has to cut.
    #[test]
    fn datagrams_that_the_path_does_not_take_joined_go_one_by_one() {
        in_namespace(|| {
            let short = ["link", "set", "lo", "mtu", "1500", "up"];
            assert!(std::process::Command::new("ip").args(short).status().unwrap().success());
            let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            near.connect(far.local_addr().unwrap()).unwrap();
            const SIZE: usize = 2000;
            let outbox = || {
                split_departures(near.as_fd(), SIZE as u16).unwrap();
                Outbox::new(goodput_framing::goodput().datagrams(1, SIZE), SIZE, 32, 2)
            };
            assert_eq!(outbox().send_by(near.as_fd(), 3, SIZE), Err(Errno::MSGSIZE));
            let mut parted = outbox().if_taken();
            assert_eq!(parted.send_by(near.as_fd(), 5, SIZE), Ok(5));
            assert_eq!(parted.send_by(near.as_fd(), 1, SIZE), Ok(1));
            assert_eq!(parted.batch(), MAX_MESSAGES, "as many as a call takes");
            far.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
            let mut room = [0; 4000];
            (0..6).for_each(|_| assert_eq!(far.recv(&mut room).unwrap(), SIZE));
        });
    }

    #[test]
    fn no_more_are_lost_than_a_call_sends() {
        let mut outbox = Outbox::new(goodput_framing::goodput().datagrams(1, 100), 100, 4, 1);
        outbox.next = 3;
        assert_eq!((outbox.lose(4), outbox.next), (1, 4), "the rest of a batch");
        assert_eq!((outbox.lose(4), outbox.next), (4, 8));
    }

    #[test]
    fn each_datagram_says_when_it_was_to_leave() {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        set_txtime(near.as_fd(), ClockId::Monotonic, TxTimeFlags::empty()).unwrap();
        let mut outbox = Outbox::new(goodput_framing::goodput().datagrams(1, 100), 100, 1, 4);
        let departures = DepartureTimes { first_ns: now_ns() + 1_000_000_000, gap_ns: 1000.5 };
        outbox.departures = Some(departures);
        assert_eq!(outbox.send_by(near.as_fd(), 3, 100), Ok(3));
        let mut times = Vec::new();
        let take = |datagram: &[u8]| u64::from_be_bytes(datagram[16..24].try_into().unwrap());
        let mut inbox = Inbox::new(100, BATCH_DATAGRAMS);
        while times.len() < 3 {
            far.peek(&mut [0]).unwrap();
            inbox.receive(far.as_fd(), |arrival| times.push(take(arrival.datagram))).unwrap();
        }
        assert_eq!([times[1] - times[0], times[2] - times[0]], [1000, 2001]);
    }
}
