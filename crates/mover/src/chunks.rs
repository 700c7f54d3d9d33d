//! A byte stream whose chunks begin with a header that differs from chunk to chunk.

use std::ops::Range;

use goodput_framing::{Chunk, ChunkHeader};
use rustix::io::Result as SysResult;
use rustix::net::{self, SendFlags};

use crate::clock::wall_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::{payload, stream};

/// Writes such a stream until the limit or the stop.
pub(crate) fn send(flow: &Flow, header: ChunkHeader) -> Result<(), MoveError> {
    let mut chunks = Chunks::new(header, flow.config.chunk, wall_ns());
    stream::send(flow, |_at, want: usize| chunks.send(flow, want))
}

/// The chunk being sent.
struct Chunks {
    header: ChunkHeader,
    chunk: Vec<u8>,
    began_ns: u64,
    number: u32,
    /// Bytes of it sent so far.
    sent: usize,
}

impl Chunks {
    fn new(header: ChunkHeader, chunk: usize, began_ns: u64) -> Self {
        let chunk = payload::random(chunk.max(header.len));
        Self { header, chunk, began_ns, number: 0, sent: 0 }
    }

    fn send(&mut self, flow: &Flow, want: usize) -> SysResult<usize> {
        let part = self.part(want, wall_ns);
        let written = net::send(&flow.socket, &self.chunk[part], SendFlags::NOSIGNAL)?;
        self.moved(written);
        Ok(written)
    }

    /// The next bytes, up to `want`; a new chunk gets the time `now`.
    fn part(&mut self, want: usize, now: impl Fn() -> u64) -> Range<usize> {
        if self.sent == 0 {
            self.stamp(now());
        }
        self.sent..self.chunk.len().min(self.sent + want)
    }

    fn moved(&mut self, written: usize) {
        self.sent += written;
        if self.sent == self.chunk.len() {
            self.sent = 0;
            self.number = self.number.wrapping_add(1);
        }
    }

    fn stamp(&mut self, at_ns: u64) {
        let (number, len) = (self.number, self.chunk.len() as u64);
        let chunk = Chunk { number, len, began_ns: self.began_ns, at_ns };
        (self.header.write)(&mut self.chunk[..self.header.len], chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: ChunkHeader = ChunkHeader {
        len: 12,
        write: |header, chunk| {
            header[..4].copy_from_slice(&chunk.number.to_be_bytes());
            header[4..].copy_from_slice(&(chunk.at_ns - chunk.began_ns + chunk.len).to_be_bytes());
        },
    };

    #[test]
    fn each_chunk_begins_with_its_own_header_however_it_is_cut() {
        let mut chunks = Chunks::new(HEADER, 1000, 5);
        let mut stream = Vec::new();
        for want in [1000, 10, 990, 400, 400, 400] {
            let part = chunks.part(want, || 7);
            let length = part.len();
            stream.extend_from_slice(&chunks.chunk[part]);
            chunks.moved(length);
        }
        for (number, chunk) in (0u32..).zip(stream.chunks(1000)) {
            assert_eq!(chunk[..4], number.to_be_bytes());
            assert_eq!(chunk[4..12], 1002u64.to_be_bytes());
        }
        assert_eq!(stream.len(), 3000);
    }

    #[test]
    fn a_chunk_that_is_too_short_for_the_header_is_made_longer() {
        let mut chunks = Chunks::new(HEADER, 1, 5);
        assert_eq!(chunks.part(usize::MAX, || 7), 0..12);
    }
}
