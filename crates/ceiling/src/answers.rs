//! How many segments an answer to a READ is: a burst that a receive ring has to hold.

/// Bytes of an answer before its payload: the record's mark (RFC 5531 section 11), six words of an accepted reply with
/// an empty verifier (section 9), and status, attributes of 84 bytes with the word that announces them, count, end of
/// file and the payload's length (RFC 1813 section 3.3.6).
pub const READ_ANSWER_HEADER_BYTES: u64 = 4 + 6 * 4 + 4 + (4 + 84) + 4 + 4 + 4;

/// Segments of a whole answer that brings `payload_bytes`, if each has room for `segment_bytes` of it; `None` if none
/// has. XDR pads payload to words (RFC 4506 section 4.10).
pub fn segments_of_read(payload_bytes: u64, segment_bytes: u64) -> Option<u64> {
    let answer =
        payload_bytes.checked_next_multiple_of(4)?.checked_add(READ_ANSWER_HEADER_BYTES)?;
    (segment_bytes > 0).then(|| answer.div_ceil(segment_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The how-to's figure: 8 kB requests are about six frames back to back on Ethernet.
    #[test]
    fn eight_kilobytes_are_six_frames_of_ethernet() {
        assert_eq!(READ_ANSWER_HEADER_BYTES, 132);
        let frames = |bytes| segments_of_read(bytes, 1448);
        assert_eq!([1024, 2048, 4096, 8192].map(frames), [Some(1), Some(2), Some(3), Some(6)]);
        assert_eq!(frames(1 << 20), Some(725));
    }

    #[test]
    fn payload_is_padded_and_nothing_divides_by_zero() {
        assert_eq!(segments_of_read(1, 136), Some(1));
        assert_eq!(segments_of_read(5, 136), Some(2));
        assert_eq!((segments_of_read(1, 0), segments_of_read(u64::MAX, 9)), (None, None));
    }
}
