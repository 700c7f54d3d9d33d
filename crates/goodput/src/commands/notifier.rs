//! Reports to systemd when the server is ready and when it stops (sd_notify(3)).
//!
//! The socket is connected at the start, because the server's later user may have no access. The existing libraries
//! connect each time.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// systemd's socket; none if systemd didn't start the server.
pub struct Notifier(Option<UnixDatagram>);

impl Notifier {
    /// Connects to the socket in `NOTIFY_SOCKET`: a path, or after `@` an abstract name (unix(7)).
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

    /// Sends the state, if systemd listens.
    pub fn notify(&self, state: &str) {
        if let Some(socket) = &self.0 {
            // The process that started the server may be gone.
            let _ = socket.send(state.as_bytes());
        }
    }
}
