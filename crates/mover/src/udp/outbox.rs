//! Datagrams on their way out: one system call for a batch, one copy of the payload for all.

use std::array;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use rustix::io::Result as SysResult;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};

use super::header::{Header, LEN};
use crate::clock::wall_ns;
use crate::payload;

/// Datagrams of one call at most. With 1400 bytes each, a call for more saves nothing measurable.
pub(crate) const BATCH: usize = 32;

/// Numbers the datagrams of one flow and sends them.
pub(crate) struct Outbox {
    flow: u16,
    /// What follows the header, the same in each datagram.
    tail: Vec<u8>,
    next: u64,
}

impl Outbox {
    /// For datagrams of up to `size` bytes, header included.
    pub(crate) fn new(flow: u16, size: usize) -> Self {
        Self { flow, tail: payload::random(size.saturating_sub(LEN)), next: 0 }
    }

    /// Datagrams sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Sends up to `count` datagrams of `size` bytes, at least a header; returns how many the
    /// kernel took. Those of one call carry one time of sending.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        count: usize,
        size: usize,
    ) -> SysResult<usize> {
        let sent_ns = wall_ns();
        let tail = &self.tail[..(size.saturating_sub(LEN)).min(self.tail.len())];
        let header = |sequence| Header { flow: self.flow, end: false, sequence, sent_ns }.encode();
        let headers: [_; BATCH] = array::from_fn(|i| header(self.next + i as u64));
        let sent = send_batch(socket, &headers[..count.min(BATCH)], tail)?;
        self.next += sent as u64;
        Ok(sent)
    }

    /// Sends one end marker.
    pub(crate) fn send_end(&self, socket: BorrowedFd<'_>) -> SysResult<()> {
        let end = Header { flow: self.flow, end: true, sequence: self.next, sent_ns: wall_ns() };
        rustix::net::send(socket, &end.encode(), SendFlags::empty()).map(|_| ())
    }
}

fn send_batch(socket: BorrowedFd<'_>, headers: &[[u8; LEN]], tail: &[u8]) -> SysResult<usize> {
    let header = |i: usize| headers.get(i).map_or(&[][..], |header| header);
    let parts: [_; BATCH] = array::from_fn(|i| [IoSlice::new(header(i)), IoSlice::new(tail)]);
    let mut control: [_; BATCH] = array::from_fn(|_| SendAncillaryBuffer::default());
    let mut pairs = parts.iter().zip(control.iter_mut());
    let mut messages: [_; BATCH] = array::from_fn(|_| {
        let (parts, control) = pairs.next().expect("both arrays have as many entries");
        MMsgHdr::new(parts, control)
    });
    sendmmsg(socket, &mut messages[..headers.len()], SendFlags::empty())
}
