//! What Ethernet puts around an IP packet (IEEE 802.3).

/// Header of a frame, bytes. Cards read and write it with the IP packet, and queueing disciplines count it.
pub const ETHERNET_HEADER_BYTES: u32 = 14;
/// Checksum at the end of a frame, bytes.
pub const ETHERNET_CHECKSUM_BYTES: u32 = 4;
/// Bytes for which the wire is occupied between two frames: preamble 8, gap 12.
pub const ETHERNET_PAUSE_BYTES: u32 = 8 + 12;
