//! Begins conversations with one server.

use std::net::SocketAddr;
use std::sync::Arc;

use goodput_files::{Conversation, Options, Place};
use goodput_model::SocketOptions;

use super::dialler::Dialler;
use crate::control::target::Target;

/// Who asks one server for its files, as the user wants it met.
#[derive(Clone)]
pub struct Asker {
    pub target: Target,
    pub addresses: Vec<SocketAddr>,
    pub socket: SocketOptions,
    pub options: Arc<Options>,
}

impl Asker {
    /// Host and port of the proxy that is asked instead of the server, if there is one.
    pub fn proxy(&self) -> Option<String> {
        self.options.proxy.as_ref().map(ToString::to_string)
    }

    /// A conversation about the file at a place of that server.
    pub fn converse(&self, place: &Place) -> Box<dyn Conversation> {
        let dial = Dialler::new(&self.target, &self.addresses, &self.socket);
        (place.scheme().open)(place.clone(), Arc::clone(&self.options), Box::new(dial))
    }
}
