//! The ports that clients come to: those open from the start, and those that a session opens for
//! its flows.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use goodput_model::{SocketOptions, Transport};
use tokio::task::{AbortHandle, JoinHandle};

use super::accept::{Listening, accept};
use super::endpoint::Endpoint;
use super::{own_listener, sockets, udp};
use crate::serve::Shared;
use crate::serve::session::ports::{OpenPort, Opening, OwnPort, Ports};

/// Lowest port that a session may open: lower ports belong to the system (RFC 6335 section 6).
const FIRST_USER_PORT: u16 = 1024;

/// A port that sessions have opened; closed when the last session drops it.
pub struct OpenedListener {
    accepting: AbortHandle,
}

impl Drop for OpenedListener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The ports that sessions have opened: several sessions may await flows at the same port.
#[derive(Default)]
pub struct OpenedPorts(tokio::sync::Mutex<HashMap<(SocketAddr, Transport), Entry>>);

struct Entry {
    opened: Weak<OpenedListener>,
    task: JoinHandle<()>,
}

impl OpenedPorts {
    async fn open_shared(
        &self,
        local: SocketAddr,
        transport: Transport,
        shared: &Arc<Shared>,
    ) -> Result<Arc<OpenedListener>, String> {
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
            // Its last user dropped it; the port is free when the task has ended.
            let _ = closing.task.await;
        }
        endpoints.retain(|_, entry| !entry.task.is_finished());
        let task = listen(local, transport, shared)
            .map_err(|cause| format!("can't listen on port {}: {cause}", local.port()))?;
        let opened = Arc::new(OpenedListener { accepting: task.abort_handle() });
        endpoints.insert((local, transport), Entry { opened: Arc::downgrade(&opened), task });
        Ok(opened)
    }
}

impl Ports for OpenedPorts {
    fn open<'a>(
        &'a self,
        local: SocketAddr,
        transport: Transport,
        shared: &'a Arc<Shared>,
    ) -> Opening<'a> {
        Box::pin(async move {
            let opened = self.open_shared(local, transport, shared).await?;
            Ok(opened as OpenPort)
        })
    }

    fn open_own(
        &self,
        local: SocketAddr,
        options: &SocketOptions,
        shared: Arc<Shared>,
    ) -> Result<OwnPort, String> {
        own_listener::open(local, options, shared)
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
