//! Recognises the first bytes and first datagrams of an iperf2 client.

use super::bounceback;
use super::header::{BASE_BYTES, Extent, WIDE_NUMBERS, extent, is_plain_base, word};
use crate::session::{First, FirstDatagram};

/// The payload's pattern (`pattern()`, src/util.c): the digits, repeatedly.
const PATTERN: &[u8; 10] = b"0123456789";

/// Bytes of `UDP_datagram` up to 2.0.8: a 32-bit number, seconds, microseconds.
const SHORT_BYTES: usize = 12;
/// The same since 2.0.9, with the higher half of the number.
const LONG_BYTES: usize = 16;

/// Classifies the first bytes of a connection.
pub(super) fn recognises(first: &[u8]) -> First {
    let readings = [extent(first, 0), bounceback::extent(first), without_header(first)];
    let mut needs: Option<usize> = None;
    for reading in readings {
        match reading {
            Extent::None => {}
            Extent::Needs(more) => needs = Some(needs.map_or(more, |least| least.min(more))),
            Extent::Whole(_) => return First::Control,
        }
    }
    needs.map_or(First::Foreign, |needs| First::Short { needs })
}

/// The streams of clients without a header: 2.0.13 overwrites the beginning of the pattern with
/// flags of 0, 2.0.4 with a base whose flags are 0, and `--compatibility` not at all.
fn without_header(first: &[u8]) -> Extent {
    let patterned = |from: usize, bytes: &[u8]| {
        bytes.iter().zip(PATTERN.iter().cycle().skip(from)).all(|(byte, digit)| byte == digit)
    };
    match first {
        [0, ..] if first.iter().take(4).all(|byte| *byte == 0) => match first.get(4..) {
            None | Some([]) => Extent::Needs(8),
            Some(rest @ [b'4', ..]) if patterned(4, &rest[..rest.len().min(4)]) => {
                if rest.len() < 4 { Extent::Needs(8) } else { Extent::Whole(8) }
            }
            Some(_) if first.len() < BASE_BYTES => Extent::Needs(BASE_BYTES),
            Some(_) if is_plain_base(first) => Extent::Whole(BASE_BYTES),
            Some(_) => Extent::None,
        },
        [] => Extent::Needs(4),
        _ if !patterned(0, &first[..first.len().min(8)]) => Extent::None,
        _ if first.len() < 8 => Extent::Needs(8),
        _ => Extent::Whole(8),
    }
}

/// Where a client's settings begin in a datagram of an iperf2 client; the datagram's length if it
/// has none.
pub(super) fn settings_at(datagram: &[u8]) -> Option<usize> {
    let (seconds, microseconds) = (word(datagram, 4)?, word(datagram, 8)?);
    // iperf did not exist before 2001; its timestamps are the time of day.
    if seconds < 1_000_000_000 || microseconds >= 1_000_000 {
        return None;
    }
    let rest = datagram.get(LONG_BYTES..)?;
    if matches!(extent(rest, LONG_BYTES), Extent::Whole(_)) {
        return Some(LONG_BYTES);
    }
    // `-d` and `-r` of 2.0.4 have a header with flags behind a short number.
    let short = &datagram[SHORT_BYTES..];
    if is_plain_base(short) || matches!(extent(short, SHORT_BYTES), Extent::Whole(_)) {
        return Some(SHORT_BYTES);
    }
    // The pattern begins with the datagram; the number and other fields have overwritten its first
    // bytes.
    let rest = datagram.get(20..28)?;
    let follows = |pair: &[u8]| PATTERN.windows(2).any(|w| w == pair) || pair == b"90";
    rest.windows(2).all(follows).then_some(datagram.len())
}

/// Classifies the first datagram of an address. A datagram with a negative number repeats the end
/// of a flow that is already over, because the report was lost.
pub(super) fn recognises_datagram(datagram: &[u8]) -> FirstDatagram {
    let Some(at) = settings_at(datagram) else { return FirstDatagram::Foreign };
    let wide =
        word(datagram, at).is_some_and(|flags| at == LONG_BYTES && flags & WIDE_NUMBERS != 0);
    let highest = if wide { datagram.get(SHORT_BYTES) } else { datagram.first() };
    match highest {
        Some(byte) if byte & 0x80 == 0 => FirstDatagram::Begins,
        _ => FirstDatagram::Foreign,
    }
}
