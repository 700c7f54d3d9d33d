//! goodput: the first 32 bytes of every datagram (`docs/protocol.md`). Numbers are big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | `gpdg`, the mark of a goodput datagram, version 1 |
//! | 4-5 | number of the flow |
//! | 6-7 | flags; bit 0: end marker, no payload; the others are zero and ignored |
//! | 8-15 | sequence number from 0; in an end marker: how many datagrams were sent |
//! | 16-23 | time of sending, nanoseconds since 1970 by the sender's clock |
//! | 24-31 | zero, ignored |

use super::Kind;
use crate::{Closing, Datagrams, Framing, Layout, NUMBER_BOUND, Read, Sent};

/// Bytes of the header, which are also the smallest datagram.
const HEADER_BYTES: usize = 32;

const MAGIC: [u8; 4] = *b"gpdg";
const END_FLAG: u16 = 1;

/// End markers of a flow: several, because any of them may be lost, spread over `END_MARKERS * END_GAP_NS`, which stays
/// well below the 100 ms in which a sender must stop.
const END_MARKERS: u64 = 5;
/// Time between two end markers, nanoseconds.
const END_GAP_NS: u64 = 10_000_000;

/// The registry's entry.
pub const KIND: Kind = Kind { id: "goodput", examples: || vec![goodput()] };

/// goodput's own header and end markers (`docs/protocol.md`).
pub fn goodput() -> Framing {
    Framing::new(GoodputDatagrams)
}

#[derive(Debug)]
struct GoodputDatagrams;

impl Layout for GoodputDatagrams {
    fn datagrams(&self, flow: u16, _chunk: usize) -> Box<dyn Datagrams> {
        Box::new(Goodput::new(flow))
    }

    /// The control connection reports the end too.
    fn ends_unheard(&self) -> bool {
        false
    }

    fn ends_by_control(&self) -> bool {
        true
    }
}

/// The datagrams of one flow.
#[derive(Debug, Clone)]
struct Goodput {
    flow: u16,
}

impl Goodput {
    /// For the flow with this number.
    fn new(flow: u16) -> Self {
        Self { flow }
    }
}

impl Datagrams for Goodput {
    fn least(&self) -> usize {
        HEADER_BYTES
    }

    fn write(&self, datagram: &mut [u8], sent: Sent) {
        let (sequence, sent_ns) = (sent.number, sent.at_ns);
        let header = Header { flow: self.flow, end: false, sequence, sent_ns };
        datagram[..HEADER_BYTES].copy_from_slice(&header.encode());
    }

    fn read(&mut self, datagram: &[u8]) -> Read {
        match Header::decode(datagram) {
            Some(header) if header.flow != self.flow => Read::Foreign,
            Some(header) if header.end => {
                Read::End { sent: Some(header.sequence), is_payload: false, ago_ns: 0 }
            }
            Some(header) => {
                Read::Payload { number: Some(header.sequence), sent_ns: Some(header.sent_ns) }
            }
            None => Read::Foreign,
        }
    }

    fn closing(&self, round: u64, sent: Sent, room: &mut [u8]) -> Option<Closing> {
        let (sequence, sent_ns) = (sent.number, sent.at_ns);
        let header = Header { flow: self.flow, end: true, sequence, sent_ns };
        room[..HEADER_BYTES].copy_from_slice(&header.encode());
        let closing = Closing { len: HEADER_BYTES, pause_ns: END_GAP_NS, is_payload: false };
        (round < END_MARKERS).then_some(closing)
    }
}

/// The fields of a datagram's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    /// Number of the flow.
    flow: u16,
    /// Whether it ends the flow.
    end: bool,
    /// Sequence number, or in an end marker the number of datagrams sent.
    sequence: u64,
    /// Nanoseconds since 1970 by the sender's clock.
    sent_ns: u64,
}

impl Header {
    /// As bytes on the wire.
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.flow.to_be_bytes());
        bytes[6..8].copy_from_slice(&if self.end { END_FLAG } else { 0 }.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.sent_ns.to_be_bytes());
        bytes
    }

    /// From a datagram; `None` if it is not goodput's.
    fn decode(datagram: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = datagram.first_chunk()?;
        let number = |at: usize| {
            bytes[at..at + 8].iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte))
        };
        let header = Self {
            flow: u16::from_be_bytes([bytes[4], bytes[5]]),
            end: u16::from_be_bytes([bytes[6], bytes[7]]) & END_FLAG != 0,
            sequence: number(8),
            sent_ns: number(16),
        };
        (bytes[..4] == MAGIC && header.sequence < NUMBER_BOUND).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_what_the_table_says() {
        let header = Header { flow: 0x0102, end: true, sequence: 3, sent_ns: 0x0405 };
        let mut bytes =
            *b"gpdg\x01\x02\x00\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\x04\x05\0\0\0\0\0\0\0\0";
        assert_eq!(header.encode(), bytes);
        bytes[0] = b'G';
        assert_eq!(Header::decode(&bytes), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(flow: u16, end: bool, sequence in 0..NUMBER_BOUND,
                                   sent_ns: u64, tail in proptest::collection::vec(any::<u8>(), 0..9)) {
            let header = Header { flow, end, sequence, sent_ns };
            let datagram = [header.encode().as_slice(), &tail].concat();
            prop_assert_eq!(Header::decode(&datagram), Some(header));
        }

        #[test]
        fn anything_else_is_refused_quietly(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(header) = Header::decode(&bytes) {
                prop_assert!(header.sequence < NUMBER_BOUND);
            }
        }
    }
}
