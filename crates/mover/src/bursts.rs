//! A byte stream of iperf2 whose chunks begin with the time of their sending (`--trip-times`): what a
//! client measures latency by.
//!
//! ```text
//!  0 flags 0        4 type, length 0   12 start, s    16 µs      20 time of writing, s    24 µs
//! 28 reserved 0    40 period 0         44 number      48 length of the chunk
//! 52 bytes until the chunk's end, low  56 high        60 reserved 0, up to byte 92
//! ```
//!
//! That is `struct TCP_burst_payload` (include/payloads.h of 2.1.8), all integers big-endian.

use std::ops::Range;

use rustix::io::Result as SysResult;
use rustix::net::{self, SendFlags};

use crate::clock::wall_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::{payload, stream};

/// Bytes of the header.
const HEADER: usize = 92;

/// Writes such a stream until the limit or the stop.
pub(crate) fn send(flow: &Flow) -> Result<(), MoveError> {
    let mut bursts = Bursts::new(flow.config.chunk, wall_ns());
    stream::send(flow, |_at, want: usize| bursts.send(flow, want))
}

/// The chunk that is on its way.
struct Bursts {
    chunk: Vec<u8>,
    began_ns: u64,
    number: u32,
    /// Bytes of it that were sent.
    sent: usize,
}

impl Bursts {
    fn new(chunk: usize, began_ns: u64) -> Self {
        Self { chunk: payload::random(chunk.max(HEADER)), began_ns, number: 0, sent: 0 }
    }

    fn send(&mut self, flow: &Flow, want: usize) -> SysResult<usize> {
        let part = self.part(want, wall_ns);
        let written = net::send(&flow.socket, &self.chunk[part], SendFlags::NOSIGNAL)?;
        self.moved(written);
        Ok(written)
    }

    /// What comes next, up to `want` bytes; a chunk that begins has the time `now`.
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

    fn stamp(&mut self, now_ns: u64) {
        let length = self.chunk.len() as u64;
        let until = (u64::from(self.number) + 1).wrapping_mul(length);
        let header = &mut self.chunk[..HEADER];
        header.fill(0);
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(12, &time(self.began_ns));
        put(20, &time(now_ns));
        put(44, &self.number.to_be_bytes());
        put(48, &(length as u32).to_be_bytes());
        put(52, &(until as u32).to_be_bytes());
        put(56, &((until >> 32) as u32).to_be_bytes());
    }
}

/// Seconds and microseconds since 1970, a word each.
fn time(at_ns: u64) -> [u8; 8] {
    crate::udp::formats::time_bytes(at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21, as a capture of 2.1.8 has it.
    const AT_NS: u64 = 0x6b01_ed8f * 1_000_000_000 + 0x000d_0af8 * 1000;

    #[test]
    fn each_chunk_begins_with_its_own_header_however_it_is_cut() {
        let mut bursts = Bursts::new(1000, AT_NS);
        let mut stream = Vec::new();
        for want in [1000, 10, 990, 400, 400, 400] {
            let part = bursts.part(want, || AT_NS + 1_000_000_000);
            let length = part.len();
            stream.extend_from_slice(&bursts.chunk[part]);
            bursts.moved(length);
        }
        for (number, chunk) in stream.chunks(1000).enumerate() {
            let word = |at: usize| u32::from_be_bytes(chunk[at..at + 4].try_into().unwrap());
            assert_eq!(chunk[12..20], *b"\x6b\x01\xed\x8f\0\x0d\x0a\xf8");
            assert_eq!(chunk[20..28], *b"\x6b\x01\xed\x90\0\x0d\x0a\xf8");
            assert_eq!((word(0), word(44), word(48)), (0, number as u32, 1000));
            assert_eq!(word(52), 1000 * (number as u32 + 1));
        }
        assert_eq!(stream.len(), 3000);
    }

    #[test]
    fn a_chunk_that_is_too_short_for_the_header_is_made_longer() {
        let mut bursts = Bursts::new(1, AT_NS);
        assert_eq!(bursts.part(usize::MAX, || AT_NS), 0..HEADER);
    }
}
