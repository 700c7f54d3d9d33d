//! Echoes: probes of the round-trip time that a server answers while a measurement is in progress.
//!
//! ```text
//! client → server   echo    "goodpute" cookie(16) nonce(16) number(8) zeros to 64 bytes
//! server → client   echoed  "goodputr" cookie(16) number(8) received(8) answered(8) zeros to 64 bytes
//! ```
//!
//! The server gave the session this cookie for echoes. The nonce comes from the challenge to a hello with this cookie,
//! so it proves the address, and the server keeps no state for it. Each request gets one reply of the same length.
//!
//! The two times are nanoseconds of the server's `CLOCK_MONOTONIC`: when its kernel received the request, and just
//! before the reply left. Both are zero if the server does not report its clock.

use super::{HEADER_BYTES, Nonce, TYPE_ECHO, TYPE_ECHOED, datagram_of, kind_of, padded};
use crate::session::Cookie;

/// Where the number of an echo is.
const NUMBER_RANGE: std::ops::Range<usize> = HEADER_BYTES + 32..HEADER_BYTES + 40;

/// Where the times of a reply are.
const TIMES_RANGE: std::ops::Range<usize> = HEADER_BYTES + 24..HEADER_BYTES + 40;

/// Client: probe number `number`.
pub fn echo(cookie: &Cookie, nonce: &Nonce, number: u64) -> Vec<u8> {
    padded(datagram_of(TYPE_ECHO, &[&cookie.0, &nonce.0, &number.to_be_bytes()]))
}

/// What a server reports when it echoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echoed {
    /// Number of the probe.
    pub number: u64,
    /// When the server received the probe and when it answered, nanoseconds of its monotonic clock; `None` if the
    /// server doesn't report.
    pub times_ns: Option<(u64, u64)>,
}

/// Client: parses the reply to one of its probes; `None` for any other datagram.
pub fn echoed(cookie: &Cookie, datagram: &[u8]) -> Option<Echoed> {
    let (kind, rest) = kind_of(datagram)?;
    let (given, rest) = rest.split_first_chunk::<16>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    // Servers that predate the times sent zeros here, or nothing in a shorter reply.
    let time = |at: usize| Some(u64::from_be_bytes(*rest.get(at..)?.first_chunk()?));
    let are_set = |(received, answered): &(u64, u64)| *received != 0 && *received <= *answered;
    let times_ns = time(0).zip(time(8)).filter(are_set);
    let number = u64::from_be_bytes(*number);
    (kind == TYPE_ECHOED && *given == cookie.0).then_some(Echoed { number, times_ns })
}

/// Server: writes into a reply when its request was received and when the reply leaves, nanoseconds of the server's
/// monotonic clock.
pub fn write_times(reply: &mut [u8], received_ns: u64, answered_ns: u64) {
    let times = [received_ns.to_be_bytes(), answered_ns.to_be_bytes()].concat();
    if let Some(room) = reply.get_mut(TIMES_RANGE) {
        room.copy_from_slice(&times);
    }
}

/// Server: the answer to a probe of at least [`super::REQUEST_BYTES`].
pub(super) fn reply(cookie: &Cookie, request: &[u8]) -> Vec<u8> {
    padded(datagram_of(TYPE_ECHOED, &[&cookie.0, &request[NUMBER_RANGE]]))
}

#[cfg(test)]
mod tests {
    use super::super::{Challenger, DatagramReply, ServerReply, from_server, hello};
    use super::*;
    use std::net::SocketAddr;

    const COOKIE: Cookie = Cookie([3; 16]);

    fn nonce(challenger: &Challenger, from: SocketAddr) -> Nonce {
        let DatagramReply::Challenge(bytes) = challenger.answer(from, &hello(&COOKIE)) else {
            panic!("a hello is challenged");
        };
        let Some(ServerReply::Challenge(nonce)) = from_server(&bytes) else { panic!("{bytes:?}") };
        nonce
    }

    #[test]
    fn an_echo_comes_back_as_long_as_it_went_and_with_its_number() {
        let (challenger, from) = (Challenger::new([9; 32]), "192.0.2.7:4000".parse().unwrap());
        let request = echo(&COOKIE, &nonce(&challenger, from), 77);
        let DatagramReply::Echo(cookie, mut reply) = challenger.answer(from, &request) else {
            panic!("an echo of a proven address is answered");
        };
        assert_eq!((cookie, reply.len()), (COOKIE, request.len()));
        let untimed = Echoed { number: 77, times_ns: None };
        assert_eq!(echoed(&COOKIE, &reply), Some(untimed));
        write_times(&mut reply, 5, 7);
        assert_eq!(reply.len(), request.len());
        assert_eq!(echoed(&COOKIE, &reply), Some(Echoed { times_ns: Some((5, 7)), ..untimed }));
        write_times(&mut reply, 8, 7);
        assert_eq!(echoed(&COOKIE, &reply), Some(untimed), "an answer before the question");
        assert_eq!(echoed(&Cookie([4; 16]), &reply), None);
        assert_eq!(echoed(&COOKIE, &request), None);
        assert_eq!(echoed(&COOKIE, &reply[..30]), None);
    }

    #[test]
    fn another_address_or_a_cut_echo_gets_nothing() {
        let (challenger, from) = (Challenger::new([9; 32]), "192.0.2.7:4000".parse().unwrap());
        let request = echo(&COOKIE, &nonce(&challenger, from), 1);
        let other = "192.0.2.8:4000".parse().unwrap();
        assert_eq!(challenger.answer(other, &request), DatagramReply::Nothing);
        assert_eq!(challenger.answer(from, &request[..63]), DatagramReply::Nothing);
    }
}
