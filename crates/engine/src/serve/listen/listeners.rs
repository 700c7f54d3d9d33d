//! The ports that clients come to: those open from the start, and those that a session opens for
//! its flows.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use goodput_model::Transport;
use goodput_wire::session::Protocol;
use tokio::task::{AbortHandle, JoinHandle};

use super::accept::{Listening, accept};
use super::{sockets, udp};
use crate::serve::Shared;

/// Lowest port that a session may open: those below belong to the system (RFC 6335 section 6).
const FIRST_USER_PORT: u16 = 1024;

/// What is known of a port that clients come to.
#[derive(Debug)]
pub struct Endpoint {
    /// Where it is.
    pub local: SocketAddr,
    /// The protocols whose first bytes are known here; none if only awaited flows come.
    pub spoken: Vec<&'static Protocol>,
}

impl Endpoint {
    /// Its port.
    pub fn port(&self) -> u16 {
        self.local.port()
    }

    /// The protocol that takes what no other knows, if there is one.
    pub fn rest(&self) -> Option<&'static Protocol> {
        self.spoken.iter().copied().find(|protocol| protocol.takes_the_rest)
    }
}

/// A port that sessions have opened; closed when the last of them lets go of it.
pub struct Opened {
    accepting: AbortHandle,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The ports that sessions have opened: several may await flows at the same.
#[derive(Default)]
pub struct OpenedPorts(tokio::sync::Mutex<HashMap<(SocketAddr, Transport), Entry>>);

struct Entry {
    opened: Weak<Opened>,
    task: JoinHandle<()>,
}

impl OpenedPorts {
    /// Opens `local` for awaited flows, unless it is open already.
    pub async fn open(
        &self,
        local: SocketAddr,
        transport: Transport,
        shared: &Arc<Shared>,
    ) -> Result<Arc<Opened>, String> {
        if local.port() < FIRST_USER_PORT {
            return Err(format!(
                "port {} is reserved for the system; use a higher one",
                local.port()
            ));
        }
        let mut endpoints = self.0.lock().await;
        if let Some(opened) = endpoints.get(&(local, transport)).and_then(|e| e.opened.upgrade()) {
            return Ok(opened);
        }
        if let Some(closing) = endpoints.remove(&(local, transport)) {
            // Its last user let go of it; the port is free when the task is gone.
            let _ = closing.task.await;
        }
        endpoints.retain(|_, entry| !entry.task.is_finished());
        let task = listen(local, transport, shared)
            .map_err(|cause| format!("cannot listen on port {}: {cause}", local.port()))?;
        let opened = Arc::new(Opened { accepting: task.abort_handle() });
        endpoints.insert((local, transport), Entry { opened: Arc::downgrade(&opened), task });
        Ok(opened)
    }
}

fn listen(
    local: SocketAddr,
    transport: Transport,
    shared: &Arc<Shared>,
) -> std::io::Result<JoinHandle<()>> {
    let endpoint = Arc::new(Endpoint { local, spoken: Vec::new() });
    let stopped = || std::io::Error::other("the server is stopping");
    let (alive, shared) = (shared.alive.token().ok_or_else(stopped)?, Arc::clone(shared));
    Ok(match transport {
        Transport::Tcp => {
            let listening = Listening::new(sockets::listener(local)?.into())?;
            tokio::spawn(accept(listening, endpoint, shared, alive))
        }
        Transport::Udp => {
            let socket = sockets::reopened_datagram_socket(local)?.into();
            let datagrams = shared.datagram_thread.clone();
            datagrams.spawn(udp::answer(socket, endpoint, shared, alive))
        }
    })
}
