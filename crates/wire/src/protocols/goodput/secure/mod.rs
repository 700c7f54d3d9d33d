//! The encrypted control channel: its records, and the handshakes that begin it.
//!
//! Both use the Noise Protocol Framework (revision 34): fresh Diffie-Hellman keys for each connection. A record is a
//! 2-byte length and one Noise message; frames run through the records as one stream.
//!
//! ```text
//! token  NNpsk2: both ends know one secret       keyed  XX: each end has a key of its own
//! ```

pub(super) mod keyed;
pub(super) mod token;

use snow::{HandshakeState, TransportState};

use super::preamble::Role;
use crate::error::WireError;
use crate::frame;
use crate::keys::PublicKey;
use crate::session::ClientConfig;

/// Longest Noise message, its 16 bytes of authentication included.
pub(super) const MAX_RECORD_BYTES: usize = 65_535;

/// Longest record of a handshake: an ephemeral key of 32 bytes; a static key with its authentication tag, 48; the tag
/// of an empty payload, 16.
pub(super) const MAX_HANDSHAKE_RECORD_BYTES: usize = 32 + 48 + TAG_BYTES;

/// Bound into the handshake, so that it can't be replayed into another protocol.
const PROLOGUE: &[u8] = b"goodput control channel";

const TAG_BYTES: usize = 16;

/// What a client sends instead of its next record if the server's record shows a wrong key: a record of length zero.
pub(super) const NOT_THIS_SERVER: [u8; 2] = [0, 0];

/// A handshake that the client has begun.
pub(super) enum ClientHandshake {
    /// With the shared token.
    Token(token::ClientHandshake),
    /// With the client's own key.
    Key(keyed::ClientHandshake),
}

/// The client's result of the server's record.
pub(super) struct Joined {
    pub(super) tunnel: Tunnel,
    /// The client's last record of the handshake.
    pub(super) last: Vec<u8>,
    /// The server's key, if it showed one.
    pub(super) server: Option<PublicKey>,
}

/// An encrypted channel.
pub(super) struct Tunnel {
    noise: Box<TransportState>,
    proven: bool,
}

/// Client: begins the handshake that its credentials allow, if any. Also returns the first record. The client's own
/// key takes precedence over the shared token.
pub(super) fn begin(
    config: &ClientConfig,
) -> Result<Option<(ClientHandshake, Vec<u8>)>, WireError> {
    match (&config.key, &config.token) {
        (Some(key), _) => {
            keyed::begin(key).map(|(begun, said)| Some((ClientHandshake::Key(begun), said)))
        }
        (None, Some(token)) => {
            token::begin(token).map(|(begun, said)| Some((ClientHandshake::Token(begun), said)))
        }
        (None, None) => Ok(None),
    }
}

impl ClientHandshake {
    /// The role of the handshake's connection.
    pub(super) fn role(&self) -> Role {
        match self {
            Self::Token(_) => Role::Secured,
            Self::Key(_) => Role::Keyed,
        }
    }

    /// Client: takes the server's record.
    pub(super) fn finish(self, message: &[u8]) -> Result<Joined, WireError> {
        match self {
            Self::Token(begun) => begun.finish(message),
            Self::Key(begun) => begun.finish(message),
        }
    }
}

impl Tunnel {
    /// Encrypts a piece of the stream, in as many records as necessary.
    pub(super) fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut sealed = Vec::with_capacity(plain.len() + 2 + TAG_BYTES);
        for piece in plain.chunks(MAX_RECORD_BYTES - TAG_BYTES) {
            let mut message = vec![0; piece.len() + TAG_BYTES];
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
            Err(_) => Err(WireError::NotPermitted("the client's token is wrong".into())),
        }
    }

    /// Whether the peer has proven that it knows the token, or holds the key that it claims.
    pub(super) fn is_proven(&self) -> bool {
        self.proven
    }
}

fn builder(pattern: &str) -> Result<snow::Builder<'_>, snow::Error> {
    snow::Builder::new(pattern.parse()?).prologue(PROLOGUE)
}

fn read_handshake(noise: &mut HandshakeState, message: &[u8]) -> Result<(), snow::Error> {
    noise.read_message(message, &mut [0; MAX_HANDSHAKE_RECORD_BYTES]).map(drop)
}

fn handshake_record(noise: &mut HandshakeState) -> Result<Vec<u8>, WireError> {
    let (mut message, mut record) = ([0; MAX_HANDSHAKE_RECORD_BYTES], Vec::new());
    let length = noise.write_message(&[], &mut message).map_err(unable)?;
    frame::encode::<2>(&message[..length], &mut record).map_err(unable)?;
    Ok(record)
}

/// The tunnel after the last record of a handshake.
fn tunnel(noise: HandshakeState, proven: bool) -> Result<Tunnel, WireError> {
    let noise = Box::new(noise.into_transport_mode().map_err(unable)?);
    Ok(Tunnel { noise, proven })
}

fn unable(cause: impl std::fmt::Display) -> WireError {
    WireError::Local(format!("can't encrypt the control channel: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decrypts a sealed piece of the stream.
    pub(super) fn opened(tunnel: &mut Tunnel, sealed: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut records = frame::Decoder::<2>::new(MAX_RECORD_BYTES);
        records.push(sealed);
        let mut plain = Vec::new();
        while let Some(record) = records.next_body().unwrap() {
            plain.extend(tunnel.open(&record)?);
        }
        Ok(plain)
    }

    #[test]
    fn a_long_message_goes_through_in_several_records() {
        for (mut client, mut server) in [token::tests::joined(), keyed::tests::joined()] {
            let long: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
            let sealed = client.seal(&long).unwrap();
            assert_eq!(opened(&mut server, &sealed).unwrap(), long);
            assert!(server.is_proven());
            let sealed = server.seal(b"back").unwrap();
            assert_eq!(opened(&mut client, &sealed).unwrap(), b"back");
        }
    }

    #[test]
    fn a_changed_or_repeated_record_is_refused() {
        for (mut client, mut server) in [token::tests::joined(), keyed::tests::joined()] {
            let sealed = client.seal(b"first").unwrap();
            opened(&mut server, &sealed).unwrap();
            assert!(
                matches!(opened(&mut server, &sealed), Err(WireError::Protocol(_))),
                "repeated"
            );
            let mut sealed = client.seal(b"second").unwrap();
            sealed[4] ^= 1;
            assert!(matches!(opened(&mut server, &sealed), Err(WireError::Protocol(_))), "changed");
        }
    }
}
