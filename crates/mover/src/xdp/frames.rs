//! Outgoing datagrams as frames: numbered, written in place, and handed over in batches.

use goodput_framing::{Closing, Datagrams, Sent};
use rustix::io::{Errno, Result as SysResult};
use rustix::net::sockopt;

use super::headers::{Addressing, Headers};
use super::socket::XdpSocket;
use crate::clock::{now_ns, ns_by};
use crate::error::MoveError;
use crate::flow::Flow;
use crate::payload;
use crate::stop::Phase;
use crate::udp::sender::{DatagramSender, DepartureTimes};

/// Most frames in one call: what one call sends in copy mode (`TX_BATCH_SIZE`, net/xdp/xsk.c).
const BATCH: usize = 32;

/// Pause if no frame is free, nanoseconds: nothing wakes a thread when frames have left (`xsk_poll`, net/xdp/xsk.c,
/// only looks at the other rings).
const FULL_NS: u64 = 50_000;

/// How long the last frames may take to leave, nanoseconds: as many as the memory holds, at 12 Mbit/s and more.
const SETTLE_NS: u64 = 500_000_000;

/// How often to look whether the receiver's host refuses the datagrams, nanoseconds.
const LOOK_NS: u64 = 10_000_000;

/// Numbers the datagrams of one flow and sends them.
pub(super) struct Frames {
    datagrams: Box<dyn Datagrams>,
    addressing: Addressing,
    /// Those of full-size datagrams.
    headers: Headers,
    socket: XdpSocket,
    next: u64,
    /// Where the markers after the payload are written.
    room: Vec<u8>,
    look_ns: u64,
}

impl Frames {
    /// For datagrams of up to `size` bytes, at least the framing's minimum.
    pub(super) fn new(
        datagrams: Box<dyn Datagrams>,
        size: usize,
        addressing: Addressing,
        mut socket: XdpSocket,
    ) -> Self {
        let headers = addressing.headers(size);
        socket.prepare(|number, frame| {
            let datagram = &mut frame[headers.len()..][..size];
            payload::fill(u64::from(number) * size as u64, datagram);
            datagrams.prepare(datagram);
        });
        let mut room = vec![0; size];
        payload::fill(0, &mut room);
        datagrams.prepare(&mut room);
        Self { datagrams, addressing, headers, socket, next: 0, room, look_ns: 0 }
    }

    /// The frames bypass the flow's socket, which alone hears what the path and the receiver's host refuse (ICMP).
    fn check_refusal(&mut self, flow: &Flow) -> SysResult<()> {
        let now = now_ns();
        if now < self.look_ns {
            return Ok(());
        }
        self.look_ns = now + LOOK_NS;
        sockopt::socket_error(&flow.socket)?
    }

    /// Adds up to `count` datagrams to the ring, of the full size or of that of `other` headers; returns how many.
    fn add(&mut self, count: usize, other: Option<&Headers>) -> usize {
        let headers = other.unwrap_or(&self.headers);
        let (full, size) = (self.headers.size(), headers.size());
        let at_ns = ns_by(self.datagrams.clock());
        for added in 0..count {
            let number = self.next;
            let sent = Sent { number, bytes: number * full as u64 + size as u64, at_ns };
            let write = |frame: &mut [u8]| {
                self.datagrams.write(&mut frame[headers.len()..][..size], sent);
                headers.seal(frame)
            };
            if !self.socket.add(write) {
                return added;
            }
            self.next += 1;
        }
        count
    }
}

impl DatagramSender for Frames {
    fn datagrams(&self) -> &dyn Datagrams {
        self.datagrams.as_ref()
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn sent(&self) -> u64 {
        self.next
    }

    fn send(
        &mut self,
        flow: &Flow,
        count: usize,
        size: usize,
        _departures: Option<DepartureTimes>,
    ) -> SysResult<usize> {
        self.check_refusal(flow)?;
        // What the kernel did not take the last time comes first.
        self.socket.hand_over()?;
        self.socket.collect();
        let added = if size == self.headers.size() {
            self.add(count, None)
        } else {
            self.add(count.min(1), Some(&self.addressing.headers(size)))
        };
        if added == 0 {
            return Err(Errno::AGAIN);
        }
        match self.socket.hand_over() {
            // They are in the ring.
            Ok(()) | Err(Errno::AGAIN) => Ok(added),
            Err(cause) => Err(cause),
        }
    }

    fn wait(&mut self, flow: &Flow) -> Result<(), MoveError> {
        flow.wait_blocked(FULL_NS)
    }

    fn settle(&mut self, flow: &Flow) -> Result<(), MoveError> {
        let until = now_ns() + SETTLE_NS;
        while now_ns() < until {
            let handed = self.socket.hand_over();
            self.socket.collect();
            match handed {
                Ok(()) if self.socket.is_idle() => break,
                Ok(()) | Err(Errno::AGAIN) => {}
                Err(cause) => return Err(flow.failed("send the last frames", cause)),
            }
            if flow.stop.phase() == Phase::Abort {
                return Err(flow.aborted());
            }
            flow.wait_blocked(FULL_NS)?;
        }
        Ok(())
    }

    fn closing(&mut self, round: u64) -> Option<(&[u8], Closing)> {
        let sent = Sent { number: self.next, bytes: 0, at_ns: ns_by(self.datagrams.clock()) };
        let closing = self.datagrams.closing(round, sent, &mut self.room)?;
        Some((&self.room[..closing.len], closing))
    }
}
