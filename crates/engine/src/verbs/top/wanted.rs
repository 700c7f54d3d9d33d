//! Which connections to list.

use std::net::IpAddr;

use goodput_kernel::ForeignSocket;
use goodput_model::ConnectionActivity;

/// Which connections to list: those that fit everything that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedConnections {
    /// Address of the peer.
    pub peer: Option<IpAddr>,
    /// Port at either end.
    pub port: Option<u16>,
    /// Id or name of the process.
    pub process: Option<String>,
}

impl WantedConnections {
    pub(super) fn takes_socket(&self, socket: &ForeignSocket) -> bool {
        self.peer.is_none_or(|peer| peer.to_canonical() == socket.peer.ip())
    }

    pub(super) fn takes(&self, connection: &ConnectionActivity) -> bool {
        let Some(process) = &self.process else { return true };
        let program = connection.program.value();
        program.is_some_and(|own| own.name == *process || own.pid.to_string() == *process)
    }
}
