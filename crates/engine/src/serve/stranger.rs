//! The first bytes of a connection decide what it is: a conversation, or a flow with its cookie.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_wire::protocols::{self, Opening};
use goodput_wire::session::Input;
use goodput_wire::ticket::Proof;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::admission::Seat;
use super::{Shared, run};
use crate::control::Conversation;

/// How long a stranger may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);

/// Finds out what a new connection is and serves it.
pub async fn meet(mut stream: TcpStream, peer: SocketAddr, shared: &Arc<Shared>, seat: Seat) {
    let mut first = Vec::new();
    let opening = tokio::select! {
        opening = tokio::time::timeout(PATIENCE, read_opening(&mut stream, &mut first)) => opening,
        () = shared.stopping() => return,
    };
    match opening {
        Ok(Ok(Opening::Control(protocol))) => {
            let local = stream.local_addr().unwrap_or(peer);
            let session = (protocol.server)(Instant::now(), shared.session_config(peer, local));
            let mut conversation = Conversation::new(session, Some(stream));
            conversation.tell(Input::Received(first));
            run::serve_client(conversation, peer, local, shared).await;
        }
        Ok(Ok(Opening::Data(proof))) => join_flow(stream, peer, &proof, shared),
        Ok(Ok(_)) => {
            tracing::info!(%peer, "turned away: speaks no known protocol")
        }
        Ok(Err(cause)) => tracing::debug!(%peer, "hung up: {cause}"),
        Err(_) => tracing::info!(%peer, "turned away: said nothing for {} s", PATIENCE.as_secs()),
    }
    // A connection counts against its address until it is done, or until a flow proved itself.
    drop(seat);
}

/// Reads until the bytes tell what they begin, and never more: what follows a proof is payload.
async fn read_opening(stream: &mut TcpStream, first: &mut Vec<u8>) -> std::io::Result<Opening> {
    loop {
        let needs = match protocols::opening(protocols::ALL, first) {
            Opening::TooShort { needs } if needs > first.len() => needs,
            decided => return Ok(decided),
        };
        let mut more = vec![0; needs - first.len()];
        let read = stream.read(&mut more).await?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        first.extend_from_slice(&more[..read]);
    }
}

fn join_flow(stream: TcpStream, peer: SocketAddr, proof: &Proof, shared: &Shared) {
    let Some(ticket) = shared.tickets.redeem(proof) else {
        tracing::info!(%peer, "turned away: a data connection that nobody awaits");
        return;
    };
    let ready = stream.into_std().map_err(|e| e.to_string()).and_then(|stream| {
        goodput_mover::socket::apply_accepted(&stream, &ticket.options)
            .map_err(|e| e.to_string())?;
        Ok(stream)
    });
    match ready {
        // The session may have ended meanwhile; then the flow is closed with it.
        Ok(stream) => drop(ticket.to.send(ticket.connected(stream.into()))),
        Err(why) => tracing::info!(%peer, "flow {}: {why}", ticket.flow.id),
    }
}
