//! ttcp: datagrams without a header between markers of at most four bytes (ttcp-minshall.c, lines
//! 395 to 436).
//!
//! The receiver's clock begins at the first marker and ends at the second. Five markers stand at the end, so that the
//! first of them can replace one that was lost at the beginning. No marker shows what a receiver misses at the end.

use super::Kind;
use crate::{
    Closing, Datagrams, Framing, Layout, MAX_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES, Marker, Read, Sent,
};

/// The start of the real program's payload, from which its markers are cut.
const BEGIN: [Marker; 1] = [Marker { datagram: b" !\"#", pause_ns: 0 }];
/// Markers at the end.
const END_COUNT: u64 = 5;
/// Time between two of them, nanoseconds. The real program has none; with a short one, fewer of them share the fate of
/// the first.
const END_GAP_NS: u64 = 1_000_000;
/// After this time without a datagram, nanoseconds, the receiver gives the sender up: if all end markers are lost,
/// nothing else marks the end, and a real receiver would wait for ever.
const IDLE_NS: u64 = 10_000_000_000;
/// How long a receiver may turn datagrams away, nanoseconds: its user starts it first.
const SETTLING_NS: u64 = 1_000_000_000;

/// The registry's entry.
pub const KIND: Kind = Kind { id: "ttcp", examples: || vec![ttcp()] };

/// ttcp: datagrams without a number between markers of four bytes.
pub fn ttcp() -> Framing {
    Framing::new(TtcpDatagrams)
}

#[derive(Debug)]
struct TtcpDatagrams;

impl Layout for TtcpDatagrams {
    fn datagrams(&self, _flow: u16, _chunk: usize) -> Box<dyn Datagrams> {
        Box::new(Ttcp::default())
    }

    /// The real sender's first bytes, which are nobody's header.
    fn lead(&self) -> &'static [u8] {
        b" !\"#$%&'()*+,-./0123456789:;<=>?"
    }

    fn announces_its_beginning(&self) -> bool {
        true
    }

    fn numbers_datagrams(&self) -> bool {
        false
    }

    fn times_datagrams(&self) -> bool {
        false
    }

    fn counts_proof(&self) -> bool {
        true
    }
}

/// The datagrams of one flow.
#[derive(Debug, Clone, Default)]
struct Ttcp {
    begun: bool,
}

impl Datagrams for Ttcp {
    fn least(&self) -> usize {
        MIN_DATAGRAM_BYTES
    }

    fn longest(&self, _chunk: usize) -> usize {
        // The receiver does not learn the datagram length.
        MAX_DATAGRAM_BYTES
    }

    fn settling_ns(&self) -> Option<u64> {
        Some(SETTLING_NS)
    }

    fn write(&self, _datagram: &mut [u8], _sent: Sent) {}

    fn read(&mut self, datagram: &[u8]) -> Read {
        if datagram.len() >= MIN_DATAGRAM_BYTES {
            return Read::Payload { number: None, sent_ns: None };
        }
        if std::mem::replace(&mut self.begun, true) {
            Read::End { sent: None, is_payload: false, ago_ns: 0 }
        } else {
            Read::Begin
        }
    }

    fn opening(&self) -> &'static [Marker] {
        &BEGIN
    }

    fn closing(&self, round: u64, _sent: Sent, room: &mut [u8]) -> Option<Closing> {
        room[..4].copy_from_slice(BEGIN[0].datagram);
        let closing = Closing { len: 4, pause_ns: END_GAP_NS, is_payload: false };
        (round < END_COUNT).then_some(closing)
    }

    fn stragglers_ns(&self) -> u64 {
        0
    }

    fn idle_ns(&self) -> Option<u64> {
        Some(IDLE_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_marker_begins_and_the_second_ends() {
        let mut format = Ttcp::default();
        let marker = format.opening()[0].datagram;
        assert_eq!(marker, b"\x20\x21\x22\x23");
        assert_eq!(format.read(marker), Read::Begin);
        let payload = Read::Payload { number: None, sent_ns: None };
        assert_eq!(format.read(&[0; 5]), payload);
        let end = Read::End { sent: None, is_payload: false, ago_ns: 0 };
        assert_eq!(format.read(&[]), end);
    }

    #[test]
    fn five_markers_end_it() {
        let (mut room, sent) = ([0; 5], Sent { number: 9, bytes: 0, at_ns: 0 });
        let format = Ttcp::default();
        assert!((0..5).all(|round| format.closing(round, sent, &mut room).is_some()));
        assert_eq!((format.closing(5, sent, &mut room), &room), (None, b" !\"#\0"));
    }
}
