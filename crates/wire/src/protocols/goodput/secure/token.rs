//! The handshake with the shared token, which authenticates both ends at once.

use snow::HandshakeState;

use super::{Joined, Tunnel, builder, handshake_record, read_handshake, tunnel, unable};
use crate::error::WireError;
use crate::session::Token;

const PATTERN: &str = "Noise_NNpsk2_25519_ChaChaPoly_BLAKE2s";

/// A handshake that the client has begun.
pub(in super::super) struct ClientHandshake(Box<HandshakeState>);

/// Client: begins a handshake. Also returns the first record.
pub(super) fn begin(token: &Token) -> Result<(ClientHandshake, Vec<u8>), WireError> {
    let key = token.key();
    let builder = builder(PATTERN).and_then(|builder| builder.psk(2, &key)).map_err(unable)?;
    let mut noise = builder.build_initiator().map_err(unable)?;
    let record = handshake_record(&mut noise)?;
    Ok((ClientHandshake(Box::new(noise)), record))
}

impl ClientHandshake {
    /// Client: takes the server's record.
    pub(super) fn finish(mut self, message: &[u8]) -> Result<Joined, WireError> {
        let differ = "the token given here is not the server's token";
        let read = read_handshake(&mut self.0, message);
        read.map_err(|_| WireError::NotPermitted(differ.into()))?;
        Ok(Joined { tunnel: tunnel(*self.0, true)?, last: Vec::new(), server: None })
    }
}

/// Server: takes the client's first record. Also returns the answering record. Only the client's
/// next record shows whether the client knows the token.
pub(in super::super) fn respond(
    token: &Token,
    message: &[u8],
) -> Result<(Tunnel, Vec<u8>), WireError> {
    let key = token.key();
    let builder = builder(PATTERN).and_then(|builder| builder.psk(2, &key)).map_err(unable)?;
    let mut noise = builder.build_responder().map_err(unable)?;
    let read = read_handshake(&mut noise, message);
    read.map_err(|_| WireError::Protocol("its handshake is not valid".into()))?;
    let record = handshake_record(&mut noise)?;
    Ok((tunnel(noise, false)?, record))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::NOT_THIS_SERVER;
    use super::*;

    fn token(text: &str) -> Token {
        Token::new(text).unwrap()
    }

    pub(in super::super) fn joined() -> (Tunnel, Tunnel) {
        let (begun, first) = begin(&token("4cf1d5a6e0b27c9388ab41f02d6e759c")).unwrap();
        let (server, second) =
            respond(&token("4cf1d5a6e0b27c9388ab41f02d6e759c"), &first[2..]).unwrap();
        assert!(!server.is_proven());
        (begun.finish(&second[2..]).unwrap().tunnel, server)
    }

    #[test]
    fn other_tokens_are_noticed_at_both_ends() {
        let (begun, first) = begin(&token("4cf1d5a6e0b27c9388ab41f02d6e759c")).unwrap();
        let (mut server, second) =
            respond(&token("7e0b96ac31d5f82448b1c09aa6f3d27e"), &first[2..]).unwrap();
        assert!(matches!(begun.finish(&second[2..]), Err(WireError::NotPermitted(_))));
        assert!(matches!(server.open(&NOT_THIS_SERVER[2..]), Err(WireError::NotPermitted(_))));
    }

    #[test]
    fn two_handshakes_never_look_alike() {
        let first = || begin(&token("4cf1d5a6e0b27c9388ab41f02d6e759c")).unwrap().1;
        assert_ne!(first(), first());
    }
}
