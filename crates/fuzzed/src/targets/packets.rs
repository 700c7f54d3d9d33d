//! Untrusted packets, as a capture has them, and the blocks in which the kernel hands them over.

use goodput_capture::{Packet, block};

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    if let Some(packet) = Packet::read(data, bytes, 0) {
        assert!(packet.payload <= packet.bytes);
    }
    for frame in block::frames(data).take(data.len()) {
        let _ = Packet::read(frame.head, frame.bytes, frame.at_ns);
    }
}
