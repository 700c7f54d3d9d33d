//! Compressed messages: a report of 50 kB then takes three segments. This matters if each segment costs a time-out, or
//! if the path carries 0.1 Mbit/s.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::error::WireError;
use crate::frame::TooLong;

/// A shorter body fits one segment uncompressed, bytes.
const MIN_COMPRESSED_BYTES: usize = 1024;

/// Bytes that a short stream may expand to, and each byte of a longer one. zlib reaches 1032 (RFC 1951 section 3.2.5:
/// 258 bytes in two bits); the counters of a thousand idle flows, the most repetitive of all messages, reach about 90.
const FREE_BYTES: usize = 64 * 1024;
const MAX_RATIO: usize = 200;

/// First byte of a zlib stream with the usual window of 32 KiB (RFC 1950 section 2.2). No JSON begins with it.
const ZLIB_FIRST_BYTE: u8 = 0x78;

/// The body as a zlib stream if this is worthwhile, else unchanged.
pub(super) fn deflated(body: Vec<u8>) -> Vec<u8> {
    if body.len() < MIN_COMPRESSED_BYTES {
        return body;
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    // A Vec takes every byte; if it ever failed, the body would be sent unchanged.
    match encoder.write_all(&body).and_then(|()| encoder.finish()) {
        Ok(smaller) => smaller,
        Err(_) => body,
    }
}

/// Whether a body is a zlib stream.
pub(super) fn is_deflated(body: &[u8]) -> bool {
    body.first() == Some(&ZLIB_FIRST_BYTE)
}

/// The body of a zlib stream. A body of more than `limit` bytes, or far longer than the stream, is an error before
/// more memory is allocated.
pub(super) fn inflated(stream: &[u8], limit: usize) -> Result<Vec<u8>, WireError> {
    let limit = limit.min(FREE_BYTES + MAX_RATIO * stream.len());
    let mut body = Vec::new();
    let mut taken = ZlibDecoder::new(stream).take(limit as u64 + 1);
    taken.read_to_end(&mut body).map_err(WireError::broken)?;
    if body.len() > limit {
        return Err(WireError::broken(TooLong { length: body.len(), limit }));
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_report_shrinks_and_a_short_message_stays() {
        let report = br#"{"at_s":0.1,"flow":0,"bytes":131072},"#.repeat(1000);
        let smaller = deflated(report.clone());
        assert!(is_deflated(&smaller) && smaller.len() * 10 < report.len(), "{}", smaller.len());
        assert_eq!(inflated(&smaller, report.len()).unwrap(), report);
        let short = br#"{"ping":{}}"#.to_vec();
        assert_eq!(deflated(short.clone()), short);
        assert!(!is_deflated(&short));
    }

    #[test]
    fn a_bomb_takes_no_more_than_the_limit() {
        let bomb = deflated(vec![b' '; 64 << 20]);
        assert!(bomb.len() < 1 << 20);
        let refused = inflated(&bomb, 4096).unwrap_err();
        assert!(refused.to_string().contains("at most 4096"), "{refused}");
    }

    #[test]
    fn a_short_stream_does_not_become_a_long_body() {
        let bomb = deflated(vec![b' '; 8 << 20]);
        assert!(bomb.len() * MAX_RATIO + FREE_BYTES < 8 << 20, "{}", bomb.len());
        assert!(inflated(&bomb, 8 << 20).is_err());
    }

    proptest! {
        #[test]
        fn what_was_deflated_comes_back(body in prop::collection::vec(any::<u8>(), 0..5000)) {
            let stream = deflated(body.clone());
            if body.len() >= MIN_COMPRESSED_BYTES {
                prop_assert_eq!(inflated(&stream, body.len()).unwrap(), body);
            }
        }

        #[test]
        fn garbage_is_an_error_and_nothing_worse(rest in prop::collection::vec(any::<u8>(), 0..500)) {
            let stream = [&[ZLIB_FIRST_BYTE][..], &rest].concat();
            let _ = inflated(&stream, 4096);
        }
    }
}
