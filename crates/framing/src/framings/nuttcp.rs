//! nuttcp: datagrams without a header between markers of four bytes (nuttcp-8.2.2.c: start at line
//! 7273, receiving at 7664, end at 8051).
//!
//! | datagram | what |
//! |---|---|
//! | `BOD0`, after a pause `BOD1` | the receiver's clock begins, anew with each |
//! | longer than 4 bytes | payload |
//! | `EOD0`, `EOD1` to `EOD4` about 500 ms apart | the clock ends at the first; the receiver after the second
//! |
//!
//! If both ends agreed to count, bytes 24 to 31 of payload hold the number of payload bytes sent up to and including
//! this datagram, in the sender's byte order.

use super::Kind;
use crate::{
    Closing, Datagrams, Framing, Layout, MIN_DATAGRAM_BYTES, Marker, NUMBER_BOUND, Read, Sent,
};

/// The position of the byte count.
const COUNT_RANGE: std::ops::Range<usize> = 24..32;
/// The real program pauses for 250 ms, in case the first marker is lost while the receiver's link address is resolved.
/// A receiver of 6.1.2 that reports intervals gives up if one passes without payload, and counts from before the first
/// (nuttcp-6.1.2.c, lines 1040 and 4247).
const BEGIN_PAUSE_NS: u64 = 100_000_000;
const BEGIN: [Marker; 2] = [
    Marker { datagram: b"BOD0", pause_ns: BEGIN_PAUSE_NS },
    Marker { datagram: b"BOD1", pause_ns: 0 },
];
/// Markers at the end, and the time between two, nanoseconds.
const END_COUNT: u64 = 5;
const END_GAP_NS: u64 = 500_000_000;
/// How much earlier goodput's sender sends `EOD1`, for the same receivers, with intervals of half a second: the time of
/// a receiver that missed `EOD0` is off by this.
const EARLY_NS: u64 = 100_000_000;

/// The registry's entry.
pub const KIND: Kind = Kind { id: "nuttcp", examples: || vec![nuttcp(false), nuttcp(true)] };

/// nuttcp: datagrams between two begin and five end markers of four bytes. `counted`: bytes 24 to 31 of each hold the
/// number of payload bytes sent so far, in the sender's byte order.
pub fn nuttcp(counted: bool) -> Framing {
    Framing::new(Marked { counted })
}

#[derive(Debug)]
struct Marked {
    counted: bool,
}

impl Layout for Marked {
    fn datagrams(&self, _flow: u16, chunk: usize) -> Box<dyn Datagrams> {
        Box::new(Nuttcp::new(self.counted, chunk))
    }

    /// A receiver looks for its own counters at bytes 24 to 31 behind a marker.
    fn lead(&self) -> &'static [u8] {
        b" !\"#$%&'\0\0\0\0\0\0\0\x0001234567\0\0\0\0\0\0\0\0"
    }

    /// nuttcp-8.2.2.c, line 8285.
    fn is_read_in_turn(&self) -> bool {
        true
    }

    fn announces_its_beginning(&self) -> bool {
        true
    }

    fn numbers_datagrams(&self) -> bool {
        self.counted
    }

    fn times_datagrams(&self) -> bool {
        false
    }

    /// A sender's end markers go only to the first streams of several (nuttcp-6.1.2.c, lines 4529 and 4710 to 4731).
    fn ends_together(&self) -> bool {
        true
    }

    /// OK comes before listen (nuttcp-8.2.2.c, line 4891).
    fn listens_late(&self) -> bool {
        true
    }
}

/// The datagrams of one flow.
#[derive(Debug, Clone)]
struct Nuttcp {
    counted: bool,
    /// Bytes of a full datagram.
    size: u64,
    /// Whether the sender's byte order differs from this host's; `None` while unknown.
    swapped: Option<bool>,
}

impl Nuttcp {
    /// For datagrams of `size` bytes, the last perhaps shorter.
    fn new(counted: bool, size: usize) -> Self {
        Self { counted, size: size.max(1) as u64, swapped: None }
    }

    /// The number of a datagram, from the bytes sent before it. `None` if its count is invalid.
    fn number(&mut self, datagram: &[u8]) -> Option<u64> {
        let count: &[u8; 8] = datagram.get(COUNT_RANGE)?.first_chunk()?;
        let (own, other) = (u64::from_ne_bytes(*count), u64::from_ne_bytes(*count).swap_bytes());
        // In the wrong byte order, any count below 2^32 would exceed 2^32. The first count is below, unless 4 GiB were
        // lost before.
        if self.swapped.is_none() && own != other {
            self.swapped = Some(other < own);
        }
        let sent = if self.swapped == Some(true) { other } else { own };
        let before = sent.checked_sub(datagram.len() as u64)?;
        Some(before / self.size).filter(|number| *number < NUMBER_BOUND)
    }
}

impl Datagrams for Nuttcp {
    fn least(&self) -> usize {
        if self.counted { COUNT_RANGE.end } else { MIN_DATAGRAM_BYTES }
    }

    fn write(&self, datagram: &mut [u8], sent: Sent) {
        if self.counted {
            datagram[COUNT_RANGE].copy_from_slice(&sent.bytes.to_ne_bytes());
        }
    }

    fn read(&mut self, datagram: &[u8]) -> Read {
        match datagram {
            [b'B', b'O', b'D', b'0'..=b'9'] => Read::Begin,
            b"EOD0" => Read::Over,
            [b'E', b'O', b'D', round @ b'1'..=b'9'] => {
                let ago_ns = u64::from(round - b'0') * END_GAP_NS;
                Read::End { sent: None, is_payload: false, ago_ns }
            }
            [_, _, _, _, _, ..] if self.counted => match self.number(datagram) {
                None => Read::Foreign,
                number => Read::Payload { number, sent_ns: None },
            },
            [_, _, _, _, _, ..] => Read::Payload { number: None, sent_ns: None },
            _ => Read::Foreign,
        }
    }

    fn opening(&self) -> &'static [Marker] {
        &BEGIN
    }

    fn closing(&self, round: u64, _sent: Sent, room: &mut [u8]) -> Option<Closing> {
        room[..4].copy_from_slice(b"EOD0");
        room[3] += round.min(END_COUNT) as u8;
        let pause_ns = match round {
            0 => END_GAP_NS - EARLY_NS,
            1 => END_GAP_NS + EARLY_NS,
            _ if round + 1 < END_COUNT => END_GAP_NS,
            _ => 0,
        };
        (round < END_COUNT).then_some(Closing { len: 4, pause_ns, is_payload: false })
    }

    fn stragglers_ns(&self) -> u64 {
        // The time between the first two markers was theirs.
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(count: [u8; 8], len: usize) -> Vec<u8> {
        let mut datagram = vec![b' '; len];
        datagram[COUNT_RANGE].copy_from_slice(&count);
        datagram
    }

    fn numbered(number: u64) -> Read {
        Read::Payload { number: Some(number), sent_ns: None }
    }

    #[test]
    fn markers_are_those_that_were_captured() {
        let mut format = Nuttcp::new(false, 1024);
        let begin: Vec<_> = format.opening().iter().map(|marker| marker.datagram).collect();
        assert_eq!(begin, [b"\x42\x4f\x44\x30", b"\x42\x4f\x44\x31"]);
        let (mut room, sent) = ([0; 1024], Sent { number: 4, bytes: 0, at_ns: 0 });
        for (round, byte) in (0..5).zip(0x30..) {
            let pause_ns = [4, 6, 5, 5, 0][round as usize] * 100_000_000;
            let closing = Closing { len: 4, pause_ns, is_payload: false };
            assert_eq!(format.closing(round, sent, &mut room), Some(closing));
            assert_eq!(room[..4], [0x45, 0x4f, 0x44, byte]);
        }
        assert_eq!(format.closing(5, sent, &mut room), None);
        assert_eq!(
            [&b"BOD1"[..], b"EOD0", b"BODY", b"EO"].map(|d| format.read(d)),
            [Read::Begin, Read::Over, Read::Foreign, Read::Foreign]
        );
        let end = Read::End { sent: None, is_payload: false, ago_ns: 2 * END_GAP_NS };
        assert_eq!(format.read(b"EOD2"), end);
        assert_eq!(format.read(b"EOD2+"), Read::Payload { number: None, sent_ns: None });
    }

    #[test]
    fn counts_are_read_in_either_byte_order() {
        // As captured with `-i`, from a little-endian host: 1024, then 2048.
        for swap in [false, true] {
            let mut format = Nuttcp::new(true, 1024);
            for (number, mut count) in
                [[0, 4, 0, 0, 0, 0, 0, 0], [0, 8, 0, 0, 0, 0, 0, 0]].into_iter().enumerate()
            {
                if swap {
                    count.reverse();
                }
                assert_eq!(format.read(&counted(count, 1024)), numbered(number as u64));
            }
        }
    }

    #[test]
    fn a_datagram_with_an_impossible_count_is_foreign() {
        let mut format = Nuttcp::new(true, 1024);
        assert_eq!(format.read(&counted(7u64.to_ne_bytes(), 1024)), Read::Foreign);
        assert_eq!(format.read(&[b' '; 20]), Read::Foreign);
        assert_eq!(Nuttcp::new(true, 0).read(&counted([0xff; 8], 40)), Read::Foreign);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            first in 0u64..1 << 21,
            number in 0u64..1 << 40,
            size in 32usize..2000,
            cut in 0usize..2000,
            swap: bool,
        ) {
            let mut format = Nuttcp::new(true, size);
            for (number, len) in [(first, size), (number, size - cut.min(size - 32))] {
                let mut datagram = vec![7; len];
                let bytes = number * size as u64 + len as u64;
                format.write(&mut datagram, Sent { number, bytes, at_ns: 0 });
                if swap {
                    datagram[COUNT_RANGE].reverse();
                }
                prop_assert_eq!(format.read(&datagram), numbered(number));
            }
        }
    }
}
