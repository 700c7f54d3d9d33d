//! A server's answer to a TCP header (`client_hdr_ack`): its version, and with trip times the time
//! at which it received the header.

use super::header::{EXTEND, Header, PEER_DETECT, VERSION2};

/// `CLIENTHDRACK` of `enum MsgType`.
const ACK_TYPE: u32 = 2;

/// The version in our answers, as in `include/version.h` of 2.1.8: this server has the features of
/// that version.
pub(super) const ACK_VERSION: (u32, u32) = (0x0002_0001, 0x0008_0003);

/// Bytes of the answer, and of the times that may follow.
const ACK_BYTES: u32 = 28;
const ACK_TIMES_BYTES: u32 = 24;

/// The answer to a header, if it gets one (`Listener::apply_client_settings_tcp`). Only a client
/// with `-X` reads it. `heard_us` is the time of day, in microseconds since 1970.
pub(super) fn answer(header: &Header, heard_us: u64) -> Vec<u8> {
    let flags = header.flags;
    let wanted = flags & VERSION2 == 0 && flags & EXTEND != 0 || flags & PEER_DETECT != 0;
    if !wanted {
        return Vec::new();
    }
    let mut words = vec![ACK_TYPE, ACK_BYTES, 0, ACK_VERSION.0, ACK_VERSION.1, 0, 0];
    if let Some((s, us)) = header.sent {
        let heard = ((heard_us / 1_000_000) as u32, (heard_us % 1_000_000) as u32);
        words[1] += ACK_TIMES_BYTES;
        words.extend([s, us, heard.0, heard.1, heard.0, heard.1]);
    }
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
