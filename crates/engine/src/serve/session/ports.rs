//! The ports that a session opens for its flows. The listeners lie above the sessions, because they begin other
//! sessions: a session knows only this interface.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use goodput_model::{SocketOptions, Transport};

use crate::serve::Shared;

/// Opens ports.
pub trait Ports: Send + Sync {
    /// Opens `local` for awaited flows, unless it is open already.
    fn open<'a>(
        &'a self,
        local: SocketAddr,
        transport: Transport,
        shared: &'a Arc<Shared>,
    ) -> Opening<'a>;

    /// Opens a free port at the address of `local`, with the options of one measurement.
    fn open_own(
        &self,
        local: SocketAddr,
        options: &SocketOptions,
        shared: Arc<Shared>,
    ) -> Result<OwnPort, String>;
}

/// A port that is being opened.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<OpenPort, String>> + Send + 'a>>;

/// A port that sessions share. It stays open while any of them keeps this.
pub type OpenPort = Arc<dyn Send + Sync>;

/// A port of one measurement. It stays open while this lives.
pub struct OwnPort {
    /// The port that the flows must connect to.
    pub number: u16,
    _open: Box<dyn Send + Sync>,
}

impl OwnPort {
    /// This port, which is closed when `open` is dropped.
    pub fn new(number: u16, open: impl Send + Sync + 'static) -> Self {
        Self { number, _open: Box::new(open) }
    }
}
