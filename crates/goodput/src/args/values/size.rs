//! Numbers of bytes, with the bounds that an option sets.

use std::fmt;
use std::ops::RangeInclusive;

use goodput_model::{Bytes, CeilingInputs, NfsPlan};

use super::unfit;

const LIKE: &str = "it like 64K, 125KB or 1500";

/// The largest window that TCP can announce: 65535 bytes scaled by 14 bits (RFC 7323 section 2.3).
const MAX_WINDOW_BYTES: u64 = 1 << 30;

/// The largest socket buffer that the kernel gives: `sk_setsockopt` (net/core/sock.c) limits it to half of what an
/// `int` holds.
const MAX_BUFFER_BYTES: u64 = 1 << 30;

/// At least one byte.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn positive(text: &str) -> Result<Bytes, String> {
    let size = text.parse().ok().filter(|Bytes(bytes)| *bytes > 0);
    size.ok_or_else(|| unfit(text, "a size of at least 1 byte", LIKE))
}

/// Payload of one datagram: what IPv4 leaves of 65535 bytes.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn datagram(text: &str) -> Result<Bytes, String> {
    within(text, "the payload of a datagram", 1..=CeilingInputs::MAX_DATAGRAM_BYTES)
}

/// Bytes that one READ or WRITE of an NFS server may have.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn nfs_read(text: &str) -> Result<Bytes, String> {
    within(text, "the size of an NFS request", 1..=NfsPlan::MOST_RSIZE_BYTES)
}

/// A window that TCP can announce.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn window(text: &str) -> Result<Bytes, String> {
    within(text, "a TCP window", 1..=MAX_WINDOW_BYTES)
}

/// A socket buffer that the kernel gives.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn socket_buffer(text: &str) -> Result<Bytes, String> {
    within(text, "a socket buffer", 0..=MAX_BUFFER_BYTES)
}

fn within(text: &str, noun: &str, range: RangeInclusive<u64>) -> Result<Bytes, String> {
    let size = text.parse().ok().filter(|Bytes(bytes)| range.contains(bytes));
    let (least, most) = (range.start(), Typed(*range.end()));
    size.ok_or_else(|| unfit(text, &format!("{noun} of {least} to {most} bytes"), LIKE))
}

/// A number of bytes as short as it can be typed.
struct Typed(u64);

impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
        match units.iter().find(|(unit, _)| self.0 > 0 && self.0.is_multiple_of(*unit)) {
            Some((unit, letter)) => write!(f, "{}{letter}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_size_comes_with_its_bounds() {
        assert_eq!(datagram("65507"), Ok(Bytes(65507)));
        assert!(datagram("64K").unwrap_err().contains("of 1 to 65507 bytes"));
        assert!(window("2G").unwrap_err().contains("of 1 to 1G bytes"));
        assert!(nfs_read("0").unwrap_err().contains("of 1 to 64M bytes"));
        assert_eq!(socket_buffer("0"), Ok(Bytes(0)));
        assert!(positive("much").unwrap_err().contains("at least 1 byte; write it like 64K"));
    }
}
