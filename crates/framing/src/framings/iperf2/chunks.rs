//! The header of each chunk of a byte stream (`--trip-times`), from which a client measures latency.
//!
//! ```text
//!  0 flags 0        4 type, length 0   12 start, s    16 µs      20 time of writing, s    24 µs
//! 28 reserved 0    40 period 0         44 number      48 length of the chunk
//! 52 bytes until the chunk's end, low  56 high        60 reserved 0, up to byte 92
//! ```
//!
//! This is `struct TCP_burst_payload` (include/payloads.h of 2.1.8), all integers big-endian.

use crate::times::time_bytes;
use crate::{Chunk, ChunkHeader};

/// The header of each chunk.
pub const HEADER: ChunkHeader = ChunkHeader { len: 92, write };

fn write(header: &mut [u8], chunk: Chunk) {
    let until = (u64::from(chunk.number) + 1).wrapping_mul(chunk.len);
    header.fill(0);
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(12, &time_bytes(chunk.began_ns));
    put(20, &time_bytes(chunk.at_ns));
    put(44, &chunk.number.to_be_bytes());
    put(48, &(chunk.len as u32).to_be_bytes());
    put(52, &(until as u32).to_be_bytes());
    put(56, &((until >> 32) as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21, from a capture of 2.1.8.
    const AT_NS: u64 = 0x6b01_ed8f * 1_000_000_000 + 0x000d_0af8 * 1000;

    #[test]
    fn it_is_written_as_it_was_captured() {
        let mut header = [7; 92];
        let (len, at_ns) = (1000, AT_NS + 1_000_000_000);
        write(&mut header, Chunk { number: 3, len, began_ns: AT_NS, at_ns });
        assert_eq!(header[12..20], *b"\x6b\x01\xed\x8f\0\x0d\x0a\xf8");
        assert_eq!(header[20..28], *b"\x6b\x01\xed\x90\0\x0d\x0a\xf8");
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!([0, 44, 48, 52, 56, 88].map(word), [0, 3, 1000, 4000, 0, 0]);
    }
}
