//! The proof of address of a UDP flow, before any payload goes to it.
//!
//! ```text
//! client → server   hello      "goodputh" cookie(16) zeros to 64 bytes
//! server → client   challenge  "goodputq" nonce(16)
//! client → server   answer     "goodputa" cookie(16) nonce(16) zeros to 64 bytes
//! server → client   welcome    "goodputw" cookie(16)
//! ```
//!
//! The nonce is a message authentication code over the sender's address and the cookie, so the server keeps no state
//! for an address that isn't proven. No reply is longer than its request. Any datagram may be lost; the client repeats
//! unanswered requests.

pub mod echo;
pub mod iperf3;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::greeting::{Greeting, GreetingStep};
use crate::session::Cookie;

/// Bytes of a hello and of an answer: longer than any reply, so that the server can't amplify.
pub const REQUEST_BYTES: usize = 64;

/// An unanswered hello or answer is sent again after this time.
const REPEAT_INTERVAL: Duration = Duration::from_millis(200);

const MAGIC: &[u8; 7] = b"goodput";
const HEADER_BYTES: usize = MAGIC.len() + 1;
const TYPE_HELLO: u8 = b'h';
const TYPE_CHALLENGE: u8 = b'q';
const TYPE_ANSWER: u8 = b'a';
const TYPE_WELCOME: u8 = b'w';
const TYPE_ECHO: u8 = b'e';
const TYPE_ECHOED: u8 = b'r';

/// What an address must send back to prove that it receives datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce(pub [u8; 16]);

/// What a client receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerReply {
    /// Prove your address: send [`answer`].
    Challenge(Nonce),
    /// The flow is known; payload may follow.
    Welcome(Cookie),
}

/// What a server must do with a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatagramReply {
    /// Send these bytes back.
    Challenge(Vec<u8>),
    /// The sender receives datagrams at its address, and holds this cookie, which must still be redeemed. Then send
    /// [`welcome`]; send it to the same address and cookie again if it is lost.
    Proven(Cookie),
    /// Send these bytes back if a running measurement uses this cookie for its echoes.
    Echo(Cookie, Vec<u8>),
    /// Send nothing.
    Nothing,
}

/// Challenges unknown addresses without keeping state for them.
pub struct Challenger {
    keyed: Hmac<Sha256>,
}

impl std::fmt::Debug for Challenger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Challenger(…)")
    }
}

impl Challenger {
    /// `secret` must come from the system's random generator, a new one each time a server starts.
    pub fn new(secret: [u8; 32]) -> Self {
        // Padded with zeros to a block of SHA-256, as HMAC does with a short key.
        let mut block = [0; 64];
        block[..secret.len()].copy_from_slice(&secret);
        Self { keyed: Hmac::new(&block.into()) }
    }

    /// What to do with `datagram`, which came from `from`.
    pub fn answer(&self, from: SocketAddr, datagram: &[u8]) -> DatagramReply {
        let Some((kind, cookie)) = request(datagram) else { return DatagramReply::Nothing };
        match kind {
            TYPE_HELLO => {
                let nonce = self.nonce(from, &cookie);
                DatagramReply::Challenge(datagram_of(TYPE_CHALLENGE, &[&nonce.0]))
            }
            TYPE_ANSWER if self.is_right(from, &cookie, datagram) => DatagramReply::Proven(cookie),
            TYPE_ECHO if self.is_right(from, &cookie, datagram) => {
                DatagramReply::Echo(cookie, echo::reply(&cookie, datagram))
            }
            _ => DatagramReply::Nothing,
        }
    }

    fn is_right(&self, from: SocketAddr, cookie: &Cookie, datagram: &[u8]) -> bool {
        let given = &datagram[HEADER_BYTES + 16..HEADER_BYTES + 32];
        self.mac(from, cookie).verify_truncated_left(given).is_ok()
    }

    fn nonce(&self, from: SocketAddr, cookie: &Cookie) -> Nonce {
        let code = self.mac(from, cookie).finalize().into_bytes();
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&code[..16]);
        Nonce(nonce)
    }

    /// HMAC-SHA-256 (RFC 2104) over address, port and cookie; 16 of its bytes are used.
    fn mac(&self, from: SocketAddr, cookie: &Cookie) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(b"goodput datagram 1\0");
        // A dual-stack socket shows IPv4 peers as mapped addresses. Both forms are the same peer.
        match from.ip().to_canonical() {
            IpAddr::V4(ip) => mac.update(&ip.octets()),
            IpAddr::V6(ip) => mac.update(&ip.octets()),
        }
        mac.update(&from.port().to_be_bytes());
        mac.update(&cookie.0);
        mac
    }
}

/// Client: the first datagram of a flow.
pub fn hello(cookie: &Cookie) -> Vec<u8> {
    padded(datagram_of(TYPE_HELLO, &[&cookie.0]))
}

/// Client: the answer to a challenge.
pub fn answer(cookie: &Cookie, nonce: &Nonce) -> Vec<u8> {
    padded(datagram_of(TYPE_ANSWER, &[&cookie.0, &nonce.0]))
}

/// Server: accepts the flow of `cookie`.
pub fn welcome(cookie: &Cookie) -> Vec<u8> {
    datagram_of(TYPE_WELCOME, &[&cookie.0])
}

/// Client: parses a datagram from the server; `None` for anything else.
pub fn from_server(datagram: &[u8]) -> Option<ServerReply> {
    let (kind, rest) = kind_of(datagram)?;
    let value: [u8; 16] = rest.get(..16)?.try_into().ok()?;
    match kind {
        TYPE_CHALLENGE => Some(ServerReply::Challenge(Nonce(value))),
        TYPE_WELCOME => Some(ServerReply::Welcome(Cookie(value))),
        _ => None,
    }
}

/// Whether a datagram belongs to the proof or is an echo, rather than payload.
pub fn is_proof(datagram: &[u8]) -> bool {
    const KINDS: [u8; 6] =
        [TYPE_HELLO, TYPE_CHALLENGE, TYPE_ANSWER, TYPE_WELCOME, TYPE_ECHO, TYPE_ECHOED];
    kind_of(datagram).is_some_and(|(kind, _)| KINDS.contains(&kind))
}

fn kind_of(datagram: &[u8]) -> Option<(u8, &[u8])> {
    let (kind, rest) = datagram.strip_prefix(MAGIC)?.split_first()?;
    Some((*kind, rest))
}

fn request(datagram: &[u8]) -> Option<(u8, Cookie)> {
    if datagram.len() < REQUEST_BYTES {
        return None;
    }
    let (kind, rest) = kind_of(datagram)?;
    Some((kind, Cookie(rest.get(..16)?.try_into().ok()?)))
}

fn datagram_of(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut datagram = MAGIC.to_vec();
    datagram.push(kind);
    parts.iter().for_each(|part| datagram.extend_from_slice(part));
    datagram
}

fn padded(mut datagram: Vec<u8>) -> Vec<u8> {
    datagram.resize(REQUEST_BYTES, 0);
    datagram
}

/// A client's answer to the server's challenge: proves that this address receives datagrams.
pub struct AddressProof {
    cookie: Cookie,
    say: Vec<u8>,
}

impl AddressProof {
    /// The proof for the flow with this cookie.
    pub fn of(cookie: Cookie) -> Self {
        Self { say: hello(&cookie), cookie }
    }
}

impl Greeting for AddressProof {
    fn repeat(&self) -> Duration {
        REPEAT_INTERVAL
    }

    fn hear(&mut self, heard: Option<&[u8]>) -> GreetingStep {
        match heard.map(from_server) {
            None => {}
            Some(Some(ServerReply::Challenge(nonce))) => self.say = answer(&self.cookie, &nonce),
            Some(Some(ServerReply::Welcome(welcomed))) if welcomed == self.cookie => {
                return GreetingStep::Done;
            }
            Some(_) => return GreetingStep::Nothing,
        }
        GreetingStep::Say(self.say.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COOKIE: Cookie = Cookie([7; 16]);

    fn challenger() -> Challenger {
        Challenger::new([9; 32])
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn challenged(from: SocketAddr) -> Nonce {
        let DatagramReply::Challenge(bytes) = challenger().answer(from, &hello(&COOKIE)) else {
            panic!("a hello is challenged");
        };
        match from_server(&bytes) {
            Some(ServerReply::Challenge(nonce)) => nonce,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_address_that_answers_is_proven() {
        let from = address("192.0.2.7:4000");
        let datagram = answer(&COOKIE, &challenged(from));
        assert_eq!(challenger().answer(from, &datagram), DatagramReply::Proven(COOKIE));
        assert_eq!(from_server(&welcome(&COOKIE)), Some(ServerReply::Welcome(COOKIE)));
    }

    #[test]
    fn a_client_repeats_what_was_not_answered_until_it_is_welcome() {
        let from = address("192.0.2.7:4000");
        let mut proof = AddressProof::of(COOKIE);
        for _ in 0..2 {
            assert_eq!(proof.hear(None), GreetingStep::Say(hello(&COOKIE)));
        }
        let nonce = challenged(from);
        let DatagramReply::Challenge(challenge) = challenger().answer(from, &hello(&COOKIE)) else {
            panic!("a hello is challenged");
        };
        for heard in [Some(&challenge[..]), None] {
            assert_eq!(proof.hear(heard), GreetingStep::Say(answer(&COOKIE, &nonce)));
        }
        assert_eq!(proof.hear(Some(b"something else")), GreetingStep::Nothing);
        assert_eq!(proof.hear(Some(&welcome(&Cookie([8; 16])))), GreetingStep::Nothing);
        assert_eq!(proof.hear(Some(&welcome(&COOKIE))), GreetingStep::Done);
    }

    #[test]
    fn the_answer_of_another_address_port_or_cookie_gets_nothing() {
        let nonce = challenged(address("192.0.2.7:4000"));
        for from in ["192.0.2.8:4000", "192.0.2.7:4001", "[2001:db8::7]:4000"] {
            let reply = challenger().answer(address(from), &answer(&COOKIE, &nonce));
            assert_eq!(reply, DatagramReply::Nothing, "{from}");
        }
        let other = answer(&Cookie([8; 16]), &nonce);
        assert_eq!(challenger().answer(address("192.0.2.7:4000"), &other), DatagramReply::Nothing);
    }

    #[test]
    fn a_mapped_address_is_the_same_peer() {
        let nonce = challenged(address("192.0.2.7:4000"));
        let reply =
            challenger().answer(address("[::ffff:192.0.2.7]:4000"), &answer(&COOKIE, &nonce));
        assert_eq!(reply, DatagramReply::Proven(COOKIE));
    }

    #[test]
    fn a_short_hello_gets_nothing() {
        let short = &hello(&COOKIE)[..REQUEST_BYTES - 1];
        assert_eq!(challenger().answer(address("192.0.2.7:1"), short), DatagramReply::Nothing);
    }

    proptest! {
        #[test]
        fn no_reply_is_longer_than_its_request(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200), kind: u8, ours: bool,
        ) {
            if ours && bytes.len() >= HEADER_BYTES {
                bytes[..7].copy_from_slice(MAGIC);
                bytes[7] = kind;
            }
            let _ = from_server(&bytes);
            match challenger().answer(address("192.0.2.7:4000"), &bytes) {
                DatagramReply::Challenge(reply) => prop_assert!(reply.len() <= bytes.len()),
                DatagramReply::Proven(_) | DatagramReply::Echo(..) => {
                    prop_assert!(false, "a guess was taken as proof");
                }
                DatagramReply::Nothing => {}
            }
        }
    }
}
