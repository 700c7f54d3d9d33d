//! What Ethernet puts around an IP packet (IEEE 802.3).

/// Header of a frame, bytes: what a card reads and writes, and a queueing discipline counts, beside the IP packet.
pub const ETHERNET_HEADER_BYTES: u32 = 14;
/// Checksum at the end of a frame, bytes.
pub const ETHERNET_CHECKSUM_BYTES: u32 = 4;
/// What the wire is occupied for between two frames, bytes: preamble 8, gap 12.
pub const ETHERNET_PAUSE_BYTES: u32 = 8 + 12;
