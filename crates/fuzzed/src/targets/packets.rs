//! Untrusted packets, as a capture has them, the blocks in which the kernel hands them over, and what a server and its
//! capture helper say to each other.

use goodput_capture::{Packet, block, helper};

/// Takes any bytes.
pub fn run(data: &[u8]) {
    helper::any_packet(data);
    let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    if let Some(packet) = Packet::read(data, bytes, 0) {
        assert!(packet.payload <= packet.bytes);
    }
    for frame in block::frames(data).take(data.len()) {
        let _ = Packet::read(frame.head, frame.bytes, frame.at_ns);
    }
}
