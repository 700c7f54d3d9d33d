//! Length-prefixed frames: where one message ends and the next begins in a stream of bytes.
//!
//! A frame is a big-endian length of `WIDTH` bytes, which does not count itself, and a body of
//! that many bytes. Control messages use 4 bytes, encrypted records 2 (`docs/protocol.md`).

/// A length above the receiver's present limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {length} bytes; at most {limit} are accepted")]
pub struct TooLong {
    /// What the peer announced.
    pub length: usize,
    /// The limit.
    pub limit: usize,
}

/// Cuts a stream of bytes into frame bodies.
///
/// It holds only bytes that have arrived: an announced length reserves no memory.
#[derive(Debug)]
pub struct Decoder<const WIDTH: usize> {
    buffer: Vec<u8>,
    limit: usize,
}

/// A larger buffer is freed when it is empty.
const KEPT_CAPACITY_BYTES: usize = 4096;

impl<const WIDTH: usize> Decoder<WIDTH> {
    /// A decoder that takes bodies of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        const { assert!(WIDTH > 0 && WIDTH <= 4) };
        Self { buffer: Vec::new(), limit }
    }

    /// Takes bodies of up to `limit` bytes after this.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Longest body that is taken at present, bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Takes bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole body. `Ok(None)`: more bytes are needed.
    pub fn next_body(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let Some(length) = self.announced() else { return Ok(None) };
        if length > self.limit {
            return Err(TooLong { length, limit: self.limit });
        }
        let end = WIDTH + length;
        if self.buffer.len() < end {
            return Ok(None);
        }
        let body = self.buffer[WIDTH..end].to_vec();
        self.buffer.drain(..end);
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_CAPACITY_BYTES {
            self.buffer = Vec::new();
        }
        Ok(Some(body))
    }

    /// All bytes that have arrived and aren't part of a returned body.
    pub fn into_rest(self) -> Vec<u8> {
        self.buffer
    }

    /// Whether part of a frame has arrived.
    pub fn is_inside(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Bytes of memory held.
    pub fn held(&self) -> usize {
        self.buffer.capacity()
    }

    fn announced(&self) -> Option<usize> {
        let header = self.buffer.get(..WIDTH)?;
        Some(header.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }
}

/// Appends `body` as one frame to `out`.
pub fn encode<const WIDTH: usize>(body: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    const { assert!(WIDTH > 0 && WIDTH <= 4) };
    let limit = (1u64 << (8 * WIDTH)).saturating_sub(1) as usize;
    if body.len() > limit {
        return Err(TooLong { length: body.len(), limit });
    }
    let length = (body.len() as u32).to_be_bytes();
    out.extend_from_slice(&length[4 - WIDTH..]);
    out.extend_from_slice(body);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded<const WIDTH: usize>(bodies: &[Vec<u8>]) -> Vec<u8> {
        let mut stream = Vec::new();
        bodies.iter().for_each(|body| encode::<WIDTH>(body, &mut stream).unwrap());
        stream
    }

    #[test]
    fn an_announced_length_reserves_no_memory() {
        let mut decoder = Decoder::<4>::new(8 << 20);
        decoder.push(&[0, 0x7f, 0xff, 0xff]);
        assert_eq!(decoder.next_body(), Ok(None));
        assert!(decoder.held() < 64);
    }

    #[test]
    fn a_length_beyond_the_limit_is_an_error_before_the_body_comes() {
        let mut decoder = Decoder::<4>::new(100);
        decoder.push(&[0, 0, 0, 101]);
        let error = decoder.next_body().unwrap_err();
        assert_eq!(error, TooLong { length: 101, limit: 100 });
        assert_eq!(error.to_string(), "a message of 101 bytes; at most 100 are accepted");
    }

    #[test]
    fn a_body_too_long_for_its_header_is_not_encoded() {
        assert!(encode::<2>(&vec![0; 65536], &mut Vec::new()).is_err());
        assert!(encode::<2>(&vec![0; 65535], &mut Vec::new()).is_ok());
    }

    #[test]
    fn a_large_buffer_is_given_back() {
        let mut decoder = Decoder::<4>::new(1 << 20);
        decoder.push(&encoded::<4>(&[vec![1; 100_000]]));
        assert_eq!(decoder.next_body().unwrap().unwrap().len(), 100_000);
        assert_eq!(decoder.held(), 0);
    }

    proptest! {
        #[test]
        fn bodies_come_out_as_they_went_in_however_they_are_cut(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..6),
            piece in 1usize..40,
        ) {
            let mut decoder = Decoder::<4>::new(300);
            let mut seen = Vec::new();
            for bytes in encoded::<4>(&bodies).chunks(piece) {
                decoder.push(bytes);
                while let Some(body) = decoder.next_body().unwrap() {
                    seen.push(body);
                }
            }
            prop_assert_eq!(seen, bodies);
            prop_assert!(!decoder.is_inside());
        }

        #[test]
        fn any_bytes_are_bodies_a_wait_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..600), limit in 0usize..70_000,
        ) {
            let mut decoder = Decoder::<2>::new(limit);
            decoder.push(&bytes);
            while let Ok(Some(body)) = decoder.next_body() {
                prop_assert!(body.len() <= limit);
            }
        }
    }
}
