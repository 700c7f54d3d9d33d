//! Begins conversations with one server.

use std::net::IpAddr;
use std::sync::Arc;

use goodput_files::{Conversation, Open, Options, Place};
use goodput_model::SocketOptions;

use super::dialler::{Addresses, Dialler};
use crate::control::target::Target;
use crate::error::EngineError;

/// Requests files from one server, contacted as the user wants.
#[derive(Clone)]
pub struct Asker {
    pub target: Target,
    pub addresses: Addresses,
    pub socket: SocketOptions,
    pub options: Arc<Options>,
    open: Open,
}

impl Asker {
    /// Requests files from the server of `target`, which is one of files.
    pub fn new(
        target: Target,
        addresses: Addresses,
        socket: SocketOptions,
        options: Options,
    ) -> Result<Self, EngineError> {
        let open = target.file()?.open;
        Ok(Self { target, addresses, socket, options: Arc::new(options), open })
    }

    /// Host and port of the proxy that is asked instead of the server, if there is one.
    pub fn proxy(&self) -> Option<String> {
        self.options.proxy.as_ref().map(ToString::to_string)
    }

    /// The same, but asks only the machine at this address, if there is one; or says why that is impossible.
    pub fn at(&self, reached: Option<IpAddr>) -> Result<Self, String> {
        let Some(ip) = reached else { return Ok(self.clone()) };
        let addresses = self.addresses.only(ip).ok_or_else(|| {
            let host = &self.target.host;
            format!("{host} no longer leads to {ip}, where the file was stored; if that machine is gone for good: goodput settings undo --forget")
        })?;
        Ok(Self { addresses, ..self.clone() })
    }

    /// A place with the user who asks for it here, as the server gets it.
    pub fn own(&self, place: Place) -> Place {
        match &self.options.login {
            Some(login) => place.of_user(&login.user),
            None if place.scheme().lone_user => place,
            None => place.of_user(""),
        }
    }

    /// A conversation about the file at a place on that server.
    pub fn converse(&self, place: &Place) -> Box<dyn Conversation> {
        let dial = Dialler::new(&self.target, &self.addresses, &self.socket);
        (self.open)(place.clone(), Arc::clone(&self.options), Box::new(dial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_files::{Login, schemes};

    fn own(user: Option<&str>, place: &str) -> String {
        let login = user.map(|user| Login::new(user, "s3cret"));
        let options = Options { login, ..Options::default() };
        let (target, addresses) = (place.parse().unwrap(), Addresses::new(Vec::new()));
        let asker = Asker::new(target, addresses, SocketOptions::default(), options).unwrap();
        asker.own(schemes::parse(place).unwrap()).to_string()
    }

    #[test]
    fn a_place_has_the_user_whom_its_server_gets() {
        assert_eq!(own(Some("me"), "http://nas/a"), "http://me@nas/a");
        assert_eq!(own(Some("me"), "ftp://you@nas/a"), "ftp://me@nas/a");
        assert_eq!(own(None, "http://me@nas/a"), "http://nas/a");
        assert_eq!(own(None, "ftp://me@nas/a"), "ftp://me@nas/a");
    }
}
