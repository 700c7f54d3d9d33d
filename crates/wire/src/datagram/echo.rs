//! Echoes: probes of the round-trip time that a server answers while a measurement is under way.
//!
//! ```text
//! client → server   echo    "goodpute" cookie(16) nonce(16) number(8) zeros to 64 bytes
//! server → client   echoed  "goodputr" cookie(16) number(8) zeros to 64 bytes
//! ```
//!
//! The cookie is the one that the server gave to the session for this; the nonce is that of the
//! challenge to a hello with this cookie, so the address has proven itself, and the server keeps
//! nothing for it. The reply is as long as the request, and there is one for each.

use super::{ECHO, ECHOED, HEADER, Nonce, datagram_of, kind_of, padded};
use crate::session::Cookie;

/// Where the number of an echo is.
const NUMBER: std::ops::Range<usize> = HEADER + 32..HEADER + 40;

/// Client: probe number `number`.
pub fn echo(cookie: &Cookie, nonce: &Nonce, number: u64) -> Vec<u8> {
    padded(datagram_of(ECHO, &[&cookie.0, &nonce.0, &number.to_be_bytes()]))
}

/// Client: the number of the probe that a datagram from the server answers; `None` for anything else.
pub fn echoed(cookie: &Cookie, datagram: &[u8]) -> Option<u64> {
    let (kind, rest) = kind_of(datagram)?;
    let (given, rest) = rest.split_first_chunk::<16>()?;
    let number = rest.first_chunk::<8>()?;
    (kind == ECHOED && *given == cookie.0).then(|| u64::from_be_bytes(*number))
}

/// Server: the answer to a probe of at least [`super::REQUEST_BYTES`].
pub(super) fn reply(cookie: &Cookie, request: &[u8]) -> Vec<u8> {
    padded(datagram_of(ECHOED, &[&cookie.0, &request[NUMBER]]))
}

#[cfg(test)]
mod tests {
    use super::super::{Challenger, DatagramReply, FromServer, from_server, hello};
    use super::*;
    use std::net::SocketAddr;

    const COOKIE: Cookie = Cookie([3; 16]);

    fn nonce(challenger: &Challenger, from: SocketAddr) -> Nonce {
        let DatagramReply::Challenge(bytes) = challenger.answer(from, &hello(&COOKIE)) else {
            panic!("a hello is challenged");
        };
        let Some(FromServer::Challenge(nonce)) = from_server(&bytes) else { panic!("{bytes:?}") };
        nonce
    }

    #[test]
    fn an_echo_comes_back_as_long_as_it_went_and_with_its_number() {
        let (challenger, from) = (Challenger::new([9; 32]), "192.0.2.7:4000".parse().unwrap());
        let request = echo(&COOKIE, &nonce(&challenger, from), 77);
        let DatagramReply::Echo(cookie, reply) = challenger.answer(from, &request) else {
            panic!("an echo of a proven address is answered");
        };
        assert_eq!((cookie, reply.len()), (COOKIE, request.len()));
        assert_eq!(echoed(&COOKIE, &reply), Some(77));
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
