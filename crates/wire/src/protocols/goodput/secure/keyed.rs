//! The handshake of two ends with a key each. The server shows its key first; a client that rejects this key leaves
//! without showing its own. Nobody between them learns either key.

use snow::HandshakeState;

use super::{Joined, Tunnel, builder, handshake_record, read_handshake, tunnel, unable};
use crate::error::WireError;
use crate::keys::{KeyError, PrivateKey, PublicKey};
use crate::session::{ClientKey, ServerIs};

const PATTERN: &str = "Noise_XX_25519_ChaChaPoly_BLAKE2s";

/// A handshake that the client has begun.
pub(in super::super) struct ClientHandshake {
    noise: Box<HandshakeState>,
    server: ServerIs,
}

/// Client: begins a handshake. Also returns the first record.
pub(super) fn begin(key: &ClientKey) -> Result<(ClientHandshake, Vec<u8>), WireError> {
    let keyed = builder(PATTERN).and_then(|builder| builder.local_private_key(key.own.secret()));
    let mut noise = keyed.and_then(snow::Builder::build_initiator).map_err(unable)?;
    let record = handshake_record(&mut noise)?;
    Ok((ClientHandshake { noise: Box::new(noise), server: key.server.clone() }, record))
}

impl ClientHandshake {
    /// Client: takes the server's record, and checks the server's key before showing its own.
    pub(super) fn finish(mut self, message: &[u8]) -> Result<Joined, WireError> {
        let unread = |_| WireError::Protocol("its handshake is not valid".into());
        read_handshake(&mut self.noise, message).map_err(unread)?;
        let weak = |why: KeyError| WireError::Protocol(why.to_string());
        let server = shown(&self.noise)?.checked().map_err(weak)?;
        if let ServerIs::Known { key, by } = &self.server
            && *key != server
        {
            return Err(WireError::NotPermitted(format!(
                "its key is {server}, not {key} as {by} says. Either someone else answers in its place, or it has a new key; ask its administrator before you accept the new key"
            )));
        }
        let last = handshake_record(&mut self.noise)?;
        Ok(Joined { tunnel: tunnel(*self.noise, true)?, last, server: Some(server) })
    }
}

/// Server: a handshake that waits for the client's last record.
pub(in super::super) struct Answered(Box<HandshakeState>);

/// Server: takes the client's first record. Also returns the answering record.
pub(in super::super) fn respond(
    own: &PrivateKey,
    message: &[u8],
) -> Result<(Answered, Vec<u8>), WireError> {
    let keyed = builder(PATTERN).and_then(|builder| builder.local_private_key(own.secret()));
    let mut noise = keyed.and_then(snow::Builder::build_responder).map_err(unable)?;
    let unread = |_| WireError::Protocol("its handshake is not valid".into());
    read_handshake(&mut noise, message).map_err(unread)?;
    let record = handshake_record(&mut noise)?;
    Ok((Answered(Box::new(noise)), record))
}

impl Answered {
    /// Server: takes the client's last record, which proves that the client has the private key of the returned public
    /// key.
    pub(in super::super) fn finish(
        mut self,
        message: &[u8],
    ) -> Result<(Tunnel, PublicKey), WireError> {
        let why =
            "the client does not finish the handshake: it may know another key for this server";
        let read = read_handshake(&mut self.0, message);
        read.map_err(|_| WireError::NotPermitted(why.into()))?;
        let client = shown(&self.0)?;
        Ok((tunnel(*self.0, true)?, client))
    }
}

/// The key that the peer has proven to hold.
fn shown(noise: &HandshakeState) -> Result<PublicKey, WireError> {
    let bytes = noise.get_remote_static().and_then(|bytes| bytes.try_into().ok());
    let key = bytes.map(PublicKey::unchecked);
    key.ok_or_else(|| WireError::Protocol("it showed no key".into()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::NOT_THIS_SERVER;
    use super::*;
    use std::sync::Arc;

    fn key(number: u8) -> PrivateKey {
        PrivateKey::of([number; 32]).unwrap()
    }

    fn client(number: u8, server: ServerIs) -> ClientKey {
        ClientKey { own: Arc::new(key(number)), server }
    }

    fn known(number: u8) -> ServerIs {
        ServerIs::Known { key: key(number).public(), by: "a file".into() }
    }

    pub(in super::super) fn joined() -> (Tunnel, Tunnel) {
        let (begun, first) = begin(&client(1, known(2))).unwrap();
        let (answered, second) = respond(&key(2), &first[2..]).unwrap();
        let joined = begun.finish(&second[2..]).unwrap();
        let (server, shown) = answered.finish(&joined.last[2..]).unwrap();
        assert_eq!((joined.server, shown), (Some(key(2).public()), key(1).public()));
        (joined.tunnel, server)
    }

    #[test]
    fn a_server_with_another_key_hears_nothing_of_the_client() {
        let (begun, first) = begin(&client(1, known(2))).unwrap();
        let (answered, second) = respond(&key(3), &first[2..]).unwrap();
        let Err(WireError::NotPermitted(why)) = begun.finish(&second[2..]) else { panic!() };
        for part in [key(2).public().to_string(), key(3).public().to_string(), "a file".into()] {
            assert!(why.contains(&part), "{why}");
        }
        let left = answered.finish(&NOT_THIS_SERVER[2..]);
        assert!(matches!(left, Err(WireError::NotPermitted(_))));
    }

    #[test]
    fn a_server_that_is_not_known_shows_its_key() {
        let (begun, first) = begin(&client(1, ServerIs::Unknown)).unwrap();
        let (_, second) = respond(&key(3), &first[2..]).unwrap();
        assert_eq!(begun.finish(&second[2..]).unwrap().server, Some(key(3).public()));
    }

    #[test]
    fn a_handshake_cannot_be_said_again_nor_changed_nor_cut() {
        let (begun, first) = begin(&client(1, ServerIs::Unknown)).unwrap();
        let (_, second) = respond(&key(2), &first[2..]).unwrap();
        let last = begun.finish(&second[2..]).unwrap().last;
        let (again, _) = respond(&key(2), &first[2..]).unwrap();
        assert!(again.finish(&last[2..]).is_err(), "said again");
        for at in 0..last.len() - 2 {
            let (begun, first) = begin(&client(1, ServerIs::Unknown)).unwrap();
            let (cut, second) = respond(&key(2), &first[2..]).unwrap();
            let mut last = begun.finish(&second[2..]).unwrap().last;
            assert!(cut.finish(&last[2..2 + at]).is_err(), "cut at {at}");
            let (begun, first) = begin(&client(1, ServerIs::Unknown)).unwrap();
            let (changed, mut second) = respond(&key(2), &first[2..]).unwrap();
            last = begun.finish(&second[2..]).unwrap().last;
            last[2 + at] ^= 1;
            assert!(changed.finish(&last[2..]).is_err(), "changed at {at}");
            let (begun, first) = begin(&client(1, ServerIs::Unknown)).unwrap();
            second = respond(&key(2), &first[2..]).unwrap().1;
            second[2 + at] ^= 1;
            assert!(begun.finish(&second[2..]).is_err(), "the server's changed at {at}");
        }
    }

    #[test]
    fn records_of_the_handshake_fit() {
        let (begun, first) = begin(&client(1, ServerIs::Unknown)).unwrap();
        let (_, second) = respond(&key(2), &first[2..]).unwrap();
        let last = begun.finish(&second[2..]).unwrap().last;
        assert_eq!([first.len(), second.len(), last.len()], [2 + 32, 2 + 96, 2 + 64]);
        assert_eq!(second.len() - 2, super::super::MAX_HANDSHAKE_RECORD_BYTES);
    }
}
