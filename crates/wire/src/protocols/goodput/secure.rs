//! The encrypted control channel: a Noise handshake with the shared token, and its records.
//!
//! `Noise_NNpsk2_25519_ChaChaPoly_BLAKE2s` (the Noise Protocol Framework, revision 34): fresh
//! Diffie-Hellman keys for each connection, authenticated by the token at both ends. A record is a
//! 2-byte length and one Noise message; frames run through the records as one stream.

use snow::{HandshakeState, TransportState};

use crate::error::WireError;
use crate::frame;
use crate::session::Token;

/// Longest Noise message, its 16 bytes of authentication included.
pub(super) const RECORD_MAX: usize = 65_535;

/// Longest record of a handshake: a key of 32 bytes, an authentication tag of 16.
pub(super) const HANDSHAKE_RECORD_MAX: usize = 48;

const PATTERN: &str = "Noise_NNpsk2_25519_ChaChaPoly_BLAKE2s";

/// Bound into the handshake, so that it can't be replayed into another protocol.
const PROLOGUE: &[u8] = b"goodput control channel";

const TAG: usize = 16;

/// What a client sends instead of its first record when the server's handshake shows that the
/// tokens differ: a record of length zero.
pub(super) const TOKENS_DIFFER: [u8; 2] = [0, 0];

/// A handshake that the client has begun.
pub(super) struct Begun(Box<HandshakeState>);

/// An encrypted channel.
pub(super) struct Tunnel {
    noise: Box<TransportState>,
    proven: bool,
}

/// Client: begins a handshake. Also gives the first record.
pub(super) fn begin(token: &Token) -> Result<(Begun, Vec<u8>), WireError> {
    let key = token.key();
    let mut noise = builder(&key).and_then(snow::Builder::build_initiator).map_err(unable)?;
    let record = handshake_record(&mut noise)?;
    Ok((Begun(Box::new(noise)), record))
}

impl Begun {
    /// Client: takes the server's record.
    pub(super) fn finish(mut self, message: &[u8]) -> Result<Tunnel, WireError> {
        let differ = "the token given here is not the one of the server";
        let read = self.0.read_message(message, &mut [0; HANDSHAKE_RECORD_MAX]);
        read.map_err(|_| WireError::NotPermitted(differ.into()))?;
        let noise = Box::new(self.0.into_transport_mode().map_err(unable)?);
        Ok(Tunnel { noise, proven: true })
    }
}

/// Server: takes the client's first record. Also gives the record to answer with. Whether the
/// client knows the token shows only in its next record.
pub(super) fn respond(token: &Token, message: &[u8]) -> Result<(Tunnel, Vec<u8>), WireError> {
    let key = token.key();
    let mut noise = builder(&key).and_then(snow::Builder::build_responder).map_err(unable)?;
    let read = noise.read_message(message, &mut [0; HANDSHAKE_RECORD_MAX]);
    read.map_err(|_| WireError::Protocol("its handshake can't be read".into()))?;
    let record = handshake_record(&mut noise)?;
    let noise = Box::new(noise.into_transport_mode().map_err(unable)?);
    Ok((Tunnel { noise, proven: false }, record))
}

impl Tunnel {
    /// Encrypts a piece of the stream, as many records as it takes.
    pub(super) fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut sealed = Vec::with_capacity(plain.len() + 2 + TAG);
        for piece in plain.chunks(RECORD_MAX - TAG) {
            let mut message = vec![0; piece.len() + TAG];
            let length = self.noise.write_message(piece, &mut message).map_err(unable)?;
            frame::encode::<2>(&message[..length], &mut sealed).map_err(unable)?;
        }
        Ok(sealed)
    }

    /// Decrypts one record.
    pub(super) fn open(&mut self, message: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut plain = vec![0; message.len()];
        match self.noise.read_message(message, &mut plain) {
            Ok(length) => {
                self.proven = true;
                plain.truncate(length);
                Ok(plain)
            }
            Err(_) if self.proven => Err(WireError::Protocol("a record was changed".into())),
            Err(_) => Err(WireError::NotPermitted("the client's token is not ours".into())),
        }
    }

    /// Whether the peer has shown that it knows the token.
    pub(super) fn is_proven(&self) -> bool {
        self.proven
    }
}

fn builder(key: &[u8; 32]) -> Result<snow::Builder<'_>, snow::Error> {
    snow::Builder::new(PATTERN.parse()?).prologue(PROLOGUE)?.psk(2, key)
}

fn handshake_record(noise: &mut HandshakeState) -> Result<Vec<u8>, WireError> {
    let (mut message, mut record) = ([0; HANDSHAKE_RECORD_MAX], Vec::new());
    let length = noise.write_message(&[], &mut message).map_err(unable)?;
    frame::encode::<2>(&message[..length], &mut record).map_err(unable)?;
    Ok(record)
}

fn unable(cause: impl std::fmt::Display) -> WireError {
    WireError::Local(format!("can't encrypt the control channel: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Token {
        Token::new(text).unwrap()
    }

    fn joined() -> (Tunnel, Tunnel) {
        let (begun, first) = begin(&token("4cf1d5a6e0b27c9388ab41f02d6e759c")).unwrap();
        let (server, second) =
            respond(&token("4cf1d5a6e0b27c9388ab41f02d6e759c"), &first[2..]).unwrap();
        (begun.finish(&second[2..]).unwrap(), server)
    }

    fn opened(tunnel: &mut Tunnel, sealed: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut records = frame::Decoder::<2>::new(RECORD_MAX);
        records.push(sealed);
        let mut plain = Vec::new();
        while let Some(record) = records.next_body().unwrap() {
            plain.extend(tunnel.open(&record)?);
        }
        Ok(plain)
    }

    #[test]
    fn a_long_message_goes_through_in_several_records() {
        let (mut client, mut server) = joined();
        let long: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
        let sealed = client.seal(&long).unwrap();
        assert!(!server.is_proven());
        assert_eq!(opened(&mut server, &sealed).unwrap(), long);
        assert!(server.is_proven());
        let sealed = server.seal(b"back").unwrap();
        assert_eq!(opened(&mut client, &sealed).unwrap(), b"back");
    }

    #[test]
    fn other_tokens_are_noticed_at_both_ends() {
        let (begun, first) = begin(&token("4cf1d5a6e0b27c9388ab41f02d6e759c")).unwrap();
        let (mut server, second) =
            respond(&token("7e0b96ac31d5f82448b1c09aa6f3d27e"), &first[2..]).unwrap();
        assert!(matches!(begun.finish(&second[2..]), Err(WireError::NotPermitted(_))));
        assert!(matches!(server.open(&TOKENS_DIFFER[2..]), Err(WireError::NotPermitted(_))));
    }

    #[test]
    fn a_changed_or_repeated_record_is_refused() {
        let (mut client, mut server) = joined();
        let sealed = client.seal(b"first").unwrap();
        opened(&mut server, &sealed).unwrap();
        assert!(matches!(opened(&mut server, &sealed), Err(WireError::Protocol(_))), "repeated");
        let mut sealed = client.seal(b"second").unwrap();
        sealed[4] ^= 1;
        assert!(matches!(opened(&mut server, &sealed), Err(WireError::Protocol(_))), "changed");
    }

    #[test]
    fn two_handshakes_never_look_alike() {
        let first = || begin(&token("4cf1d5a6e0b27c9388ab41f02d6e759c")).unwrap().1;
        assert_ne!(first(), first());
    }
}
