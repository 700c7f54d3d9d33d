//! The credentials that a client shows a server, and the servers to which it shows its key.

use std::fmt;
use std::sync::Arc;

use goodput_wire::keys::{PrivateKey, PublicKey};
use goodput_wire::login::Login;
use goodput_wire::session::{ClientKey, ServerIs, Token};

use crate::control::target::Target;
use crate::error::EngineError;

/// What a client shows to be let in, if its user has any.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The shared token.
    pub token: Option<Token>,
    /// A user name and a password.
    pub login: Option<Login>,
    /// A key of its own.
    pub key: Option<OwnKey>,
}

/// A client's own key, and the known servers.
#[derive(Clone)]
pub struct OwnKey {
    /// The key.
    pub key: Arc<PrivateKey>,
    /// Whether the user asked for it. Otherwise it is shown only to known servers, and to servers that refuse clients
    /// without a credential.
    pub asked: bool,
    /// The known servers.
    pub servers: Arc<dyn Servers>,
}

impl fmt::Debug for OwnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The servers whose keys are known.
pub trait Servers: Send + Sync {
    /// What is known of a server.
    ///
    /// # Errors
    /// If what is known can't be read.
    fn find(&self, target: &Target) -> Result<ServerIs, EngineError>;

    /// Remembers the key of a server that was unknown.
    fn remember(&self, target: &Target, key: PublicKey);
}

/// When the key is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyDisclosure {
    /// At once, if the user wants that or the server is known.
    AtOnce,
    /// Because the server has refused a client without a credential.
    AsAsked,
}

impl Credentials {
    /// The key to show to the target now, if there is one.
    pub(crate) fn key_for(
        &self,
        target: &Target,
        when: KeyDisclosure,
    ) -> Result<Option<ClientKey>, EngineError> {
        // Other protocols don't support keys.
        let Some(own) = self.key.as_ref().filter(|_| target.protocol.far_end.knows_keys) else {
            return Ok(None);
        };
        // What the user names takes precedence over what lies in the usual place. A token also authenticates the
        // server, so even a server that is known by its key must prove itself.
        if self.token.is_some() && !own.asked {
            return Ok(None);
        }
        let server = own.servers.find(target)?;
        let is_known = matches!(server, ServerIs::Known { .. });
        let key = ClientKey { own: Arc::clone(&own.key), server };
        Ok((own.asked || is_known || when == KeyDisclosure::AsAsked).then_some(key))
    }

    /// The target has shown this key and has seen ours.
    pub(crate) fn met(&self, target: &Target, shown: PublicKey, expected: Option<&ClientKey>) {
        let is_new = expected.is_some_and(|key| matches!(key.server, ServerIs::Unknown));
        if let Some(own) = self.key.as_ref().filter(|_| is_new) {
            own.servers.remember(target, shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows one server, by the key of this number.
    struct One(u8);

    impl Servers for One {
        fn find(&self, target: &Target) -> Result<ServerIs, EngineError> {
            let key = private(self.0).public();
            Ok(match target.host.as_str() {
                "known" => ServerIs::Known { key, by: "a file".into() },
                _ => ServerIs::Unknown,
            })
        }

        fn remember(&self, _: &Target, _: PublicKey) {}
    }

    fn private(number: u8) -> PrivateKey {
        PrivateKey::of([number; 32]).unwrap()
    }

    fn shows(target: &str, token: bool, asked: bool, when: KeyDisclosure) -> bool {
        let token = token.then(|| Token::new("4cf1d5a6e0b27c9388ab41f02d6e759c").unwrap());
        let key = OwnKey { key: Arc::new(private(1)), asked, servers: Arc::new(One(2)) };
        let credentials = Credentials { token, login: None, key: Some(key) };
        credentials.key_for(&target.parse().unwrap(), when).unwrap().is_some()
    }

    #[test]
    fn a_usual_key_is_shown_to_servers_that_are_known_and_to_those_that_ask() {
        for (target, when, is_shown) in [
            ("known", KeyDisclosure::AtOnce, true),
            ("new", KeyDisclosure::AtOnce, false),
            ("new", KeyDisclosure::AsAsked, true),
            ("iperf3://known", KeyDisclosure::AsAsked, false),
        ] {
            assert_eq!(shows(target, false, false, when), is_shown, "{target} {when:?}");
        }
    }

    #[test]
    fn what_the_user_names_goes_before_the_usual_key_and_a_named_key_before_a_token() {
        for target in ["known", "new"] {
            for when in [KeyDisclosure::AtOnce, KeyDisclosure::AsAsked] {
                assert!(!shows(target, true, false, when), "{target} {when:?}");
                assert!(shows(target, true, true, when), "{target} {when:?}");
            }
        }
    }
}
