//! Tells systemd that the server is ready, and that it stops (sd_notify(3)).
//!
//! The socket is connected at the start: the user that the server becomes may not reach it. The libraries
//! for this connect anew each time.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where systemd listens; nowhere if the server was not started by it.
pub struct Notifier(Option<UnixDatagram>);

impl Notifier {
    /// Connects to what `NOTIFY_SOCKET` names: a path, or after `@` an abstract name (unix(7)).
    pub fn connect() -> Self {
        let connected = std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let address = match name.as_bytes() {
                [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
                _ => SocketAddr::from_pathname(&name),
            };
            let socket = UnixDatagram::unbound().ok()?;
            socket.connect_addr(&address.ok()?).ok()?;
            Some(socket)
        });
        Self(connected)
    }

    /// Says it, if anyone listens.
    pub fn tell(&self, state: &str) {
        if let Some(socket) = &self.0 {
            // The process that started the server may be gone.
            let _ = socket.send(state.as_bytes());
        }
    }
}
