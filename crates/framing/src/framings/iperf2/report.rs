//! The report of iperf 2's server over UDP: `server_hdr` in include/payloads.h of 2.1.8, written by
//! `reporter_handle_packet_server_udp` and `write_UDP_AckFIN`. Pure.
//!
//! | behind the header | what |
//! |---|---|
//! | 0-3 | flags: a report, its numbers have 64 bits |
//! | 4-11 | payload bytes |
//! | 12-19 | how long they took, seconds and microseconds |
//! | 20-23 | datagrams lost |
//! | 24-27 | datagrams out of order |
//! | 28-31 | datagrams in all |
//! | 32-39 | jitter, seconds and microseconds |
//! | 40-99 | statistics of the transit time, valid with a flag |
//! | 100-111 | upper halves of lost, out of order, in all |

use goodput_model::{FlowTotals, Known, Role};

use crate::Summary;
use crate::times::word_at;

/// Bytes of the whole answer, as from the real server.
const ANSWER_BYTES: usize = 128;
/// Bytes of a report without the additions of later versions, after a header of 16.
const SHORT_REPORT_BYTES: usize = 56;
/// There is a report (`HEADER_VERSION1`).
const REPORT_FLAG: u32 = 0x8000_0000;
/// The upper halves are there (`HEADER_SEQNO64B`).
const WIDE_FLAG: u32 = 0x0800_0000;
/// First word and lengths of a different answer, to the settings in the first datagram.
const ACK_TYPE: u32 = 2;
const ACK_LENGTHS: [usize; 3] = [24, 28, 52];

/// The report after `header`. The statistics of the transit time are left out, because they would require synchronized
/// clocks; the flag that would declare them valid is not set.
pub fn write(header: &[u8], wide: bool, summary: &Summary) -> Vec<u8> {
    let mut answer = vec![0; ANSWER_BYTES];
    let at = header.len();
    answer[..at].copy_from_slice(header);
    let mut put = |place: usize, word: u64| {
        answer[at + place..][..4].copy_from_slice(&(word as u32).to_be_bytes());
    };
    put(0, u64::from(if wide { REPORT_FLAG | WIDE_FLAG } else { REPORT_FLAG }));
    put(4, summary.bytes >> 32);
    put(8, summary.bytes);
    put(12, summary.took_ns / 1_000_000_000);
    put(16, summary.took_ns % 1_000_000_000 / 1000);
    let jitter_us = summary.jitter_us.round() as u64;
    put(32, jitter_us / 1_000_000);
    put(36, jitter_us % 1_000_000);
    for (place, count) in [summary.lost, summary.reordered, summary.datagrams].iter().enumerate() {
        put(20 + 4 * place, *count);
        if wide {
            put(100 + 4 * place, *count >> 32);
        }
    }
    answer
}

/// A server's report on `flow`. `None` if the datagram is not a report.
pub fn read(flow: u16, datagram: &[u8]) -> Option<FlowTotals> {
    let is_ack = ACK_LENGTHS.contains(&datagram.len()) && word_at(datagram, 0) == Some(ACK_TYPE);
    if datagram.len() < SHORT_REPORT_BYTES || is_ack {
        return None;
    }
    // Up to 2.0.8 the report is four bytes earlier, where later versions have nothing or payload.
    let datagram = match (word_at(datagram, 12)?, word_at(datagram, 16)?) {
        (_, flags) if flags & REPORT_FLAG != 0 => datagram,
        (REPORT_FLAG, _) => &[&[0; 4], &datagram[..datagram.len().min(ANSWER_BYTES)]].concat()[..],
        _ => return None,
    };
    let flags = word_at(datagram, 16)?;
    let word = |at: usize| u64::from(word_at(datagram, at).unwrap_or(0));
    let is_wide = flags & WIDE_FLAG != 0 && datagram.len() >= ANSWER_BYTES;
    let count = |low: usize, high: usize| {
        let all = if is_wide { word(high) << 32 | word(low) } else { word(low) };
        let negative = if is_wide { all >> 63 } else { all >> 31 } != 0;
        if negative {
            Known::missing("the peer reported a negative number")
        } else {
            Known::Value(all)
        }
    };
    let seconds = |at: usize| word(at) as f64 + word(at + 4) as f64 / 1e6;
    Some(FlowTotals {
        bytes: Known::Value(word(20) << 32 | word(24)),
        duration_s: Known::Value(seconds(28)),
        lost: count(36, 116),
        reordered: count(40, 120),
        datagrams: count(44, 124),
        jitter_us: Known::Value(seconds(48) * 1e6),
        ..FlowTotals::unreported(flow, Role::Receiver, "iperf2 does not report it over UDP")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SUMMARY: Summary = Summary {
        bytes: 2560,
        took_ns: 11_779_000,
        lost: 0,
        reordered: 0,
        datagrams: 5,
        jitter_us: 4.0,
    };

    /// An answer of 2.1.8, after 16 zeros and without the statistics at 56.
    const CAPTURED: [u8; 40] = *b"\x88\0\0\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\x2e\x03\0\0\0\0\0\0\0\0\
        \0\0\0\x05\0\0\0\0\0\0\0\x04";

    #[test]
    fn it_is_written_as_it_was_captured() {
        let answer = write(&[0; 16], true, &SUMMARY);
        assert_eq!((&answer[..16], &answer[16..56]), (&[0; 16][..], &CAPTURED[..]));
        assert_eq!(answer[56..], [0; 72]);
    }

    #[test]
    fn an_old_client_finds_it_behind_12_bytes() {
        let answer = write(&[9; 12], false, &SUMMARY);
        assert_eq!((&answer[..12], &answer[12..16]), (&[9; 12][..], &b"\x80\0\0\0"[..]));
        assert_eq!(answer[16..52], CAPTURED[4..]);
    }

    #[test]
    fn what_the_real_server_answered_is_read() {
        let mut datagram = [&[0; 16][..], &CAPTURED, &[7; 60], &[0; 12]].concat();
        let totals = read(3, &datagram).unwrap();
        assert_eq!(
            (totals.flow, totals.bytes, totals.lost),
            (3, Known::Value(2560), Known::Value(0))
        );
        assert_eq!(totals.datagrams, Known::Value(5));
        assert_eq!(totals.duration_s, Known::Value(0.011_779));
        assert!(totals.retransmits.get().is_err());
        datagram[36..40].copy_from_slice(&[0xff; 4]);
        datagram[116..120].copy_from_slice(&[0xff; 4]);
        assert!(read(3, &datagram).unwrap().lost.get().is_err(), "negative");
        datagram[16] = 0;
        assert_eq!(read(3, &datagram), None, "no report in it");
    }

    #[test]
    fn an_old_server_has_it_behind_12_bytes() {
        let (short, pattern) = (write(&[9; 12], false, &SUMMARY), [b'7'; 1000]);
        let totals = read(0, &[&short[..60], &pattern].concat()).unwrap();
        assert_eq!((totals.bytes, totals.datagrams), (Known::Value(2560), Known::Value(5)));
        assert_eq!(totals.jitter_us, Known::Value(4.0));
    }

    #[test]
    fn an_acknowledgement_is_no_report() {
        let mut ack = [0xff; 52];
        ack[..4].copy_from_slice(&[0, 0, 0, 2]);
        assert_eq!(read(0, &ack), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes: u64, took_us in 0u64..1 << 40, lost in 0u64..1 << 50,
                                   reordered in 0u64..1 << 50, datagrams in 0u64..1 << 50) {
            let summary = Summary {
                bytes, took_ns: took_us * 1000, lost, reordered, datagrams, jitter_us: 7.0
            };
            let totals = read(0, &write(&[0; 16], true, &summary)).unwrap();
            prop_assert_eq!(totals.bytes, Known::Value(bytes));
            prop_assert_eq!(totals.lost, Known::Value(lost));
            prop_assert_eq!(totals.reordered, Known::Value(reordered));
            prop_assert_eq!(totals.datagrams, Known::Value(datagrams));
        }

        #[test]
        fn nothing_breaks_it(datagram in proptest::collection::vec(any::<u8>(), 0..200)) {
            read(0, &datagram);
        }
    }
}
