//! What a client shows a server to be let in, and to which server it shows its key.

use std::fmt;
use std::sync::Arc;

use goodput_wire::keys::{PrivateKey, PublicKey};
use goodput_wire::login::Login;
use goodput_wire::session::{ClientKey, ServerIs, Token};

use crate::control::target::Target;
use crate::error::EngineError;

/// What a client shows to be let in, if its user has it.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The shared token.
    pub token: Option<Token>,
    /// A user name and a password.
    pub login: Option<Login>,
    /// A key of its own.
    pub key: Option<OwnKey>,
}

/// A client's own key, and the servers that are known.
#[derive(Clone)]
pub struct OwnKey {
    /// The key.
    pub key: Arc<PrivateKey>,
    /// Whether the user asked for it. Else it is shown to servers that are known, and to those that refuse
    /// whoever shows nothing.
    pub asked: bool,
    /// The servers that are known.
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
    /// When what is known cannot be read.
    fn find(&self, target: &Target) -> Result<ServerIs, EngineError>;

    /// Keeps the key of a server that was not known.
    fn remember(&self, target: &Target, key: PublicKey);
}

/// When the key is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// At once, if that is wanted or the server is known.
    AtOnce,
    /// Because the server has refused a client that shows nothing.
    AsAsked,
}

impl Credentials {
    /// The key to show to the target, if it is one to show now.
    pub(crate) fn key_for(
        &self,
        target: &Target,
        when: Shown,
    ) -> Result<Option<ClientKey>, EngineError> {
        // Other protocols have no words for keys.
        let Some(own) = self.key.as_ref().filter(|_| target.protocol.far_end.knows_keys) else {
            return Ok(None);
        };
        if self.token.is_some() && !own.asked {
            return Ok(None);
        }
        let server = own.servers.find(target)?;
        let is_known = matches!(server, ServerIs::Known { .. });
        let key = ClientKey { own: Arc::clone(&own.key), server };
        Ok((own.asked || is_known || when == Shown::AsAsked).then_some(key))
    }

    /// The target has shown this key, and was let see ours.
    pub(crate) fn met(&self, target: &Target, shown: PublicKey, expected: Option<&ClientKey>) {
        let is_new = expected.is_some_and(|key| matches!(key.server, ServerIs::Unknown));
        if let Some(own) = self.key.as_ref().filter(|_| is_new) {
            own.servers.remember(target, shown);
        }
    }
}
