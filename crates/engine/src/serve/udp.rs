//! UDP flows at the answering end: every address proves itself before anything is sent to it.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use goodput_wire::datagram::{Challenger, DatagramReply, REQUEST_BYTES, is_proof, welcome};
use goodput_wire::protocols::goodput::preamble::data_opening;
use goodput_wire::session::Cookie;
use goodput_wire::ticket::Proof;
use tokio::net::UdpSocket as AsyncUdpSocket;
use tokio::sync::mpsc;

use super::Shared;
use super::tickets::Ticket;
use crate::traffic::Connected;

/// Longest datagram of the proof, with room to see that a longer one is none.
const PROOF: usize = 128;

/// How long a lost welcome is repeated on request.
const REPEAT: Duration = Duration::from_secs(10);

/// Challenges strangers and hands proven flows over, until the future is dropped.
pub async fn answer(socket: UdpSocket, shared: Arc<Shared>) {
    let challenger = Challenger::new(rand::random());
    let (socket, local) = match open(socket) {
        Ok(opened) => opened,
        Err(cause) => {
            tracing::error!("cannot serve UDP: {cause}");
            return std::future::pending().await;
        }
    };
    let mut datagram = [0; PROOF];
    loop {
        // An error here is an earlier reply that nobody took; it concerns no one else.
        let Ok((length, peer)) = socket.recv_from(&mut datagram).await else { continue };
        match challenger.answer(peer, &datagram[..length]) {
            DatagramReply::Challenge(reply) => drop(socket.send_to(&reply, peer).await),
            DatagramReply::Proven(cookie) => prove(local, peer, cookie, &shared),
            DatagramReply::Nothing => {}
        }
    }
}

fn open(socket: UdpSocket) -> std::io::Result<(AsyncUdpSocket, SocketAddr)> {
    let local = socket.local_addr()?;
    socket.set_nonblocking(true)?;
    Ok((AsyncUdpSocket::from_std(socket)?, local))
}

fn prove(local: SocketAddr, peer: SocketAddr, cookie: Cookie, shared: &Shared) {
    let Some(ticket) = shared.tickets.redeem(&Proof(data_opening(&cookie).to_vec())) else {
        tracing::debug!(%peer, "turned away: a UDP flow with a cookie nobody awaits");
        return;
    };
    match connected(local, peer, &ticket) {
        Ok((fd, repeater)) => {
            tokio::spawn(repeat_welcome(repeater, cookie, ticket.to.clone()));
            // The session may have ended meanwhile; then the flow is closed with it.
            drop(ticket.to.send(ticket.connected(fd)));
        }
        Err(cause) => tracing::info!(%peer, "flow {}: {cause}", ticket.flow.id),
    }
}

/// A socket of the flow's own on the server's port, and a second handle to it for the welcome.
fn connected(
    local: SocketAddr,
    peer: SocketAddr,
    ticket: &Ticket,
) -> Result<(OwnedFd, AsyncUdpSocket), String> {
    let fd = goodput_mover::socket::udp_socket(Some(local), peer, &ticket.options, true)
        .map_err(|e| e.to_string())?;
    let repeater = fd.try_clone().and_then(|second| {
        let socket = UdpSocket::from(second);
        socket.set_nonblocking(true)?;
        AsyncUdpSocket::from_std(socket)
    });
    Ok((fd, repeater.map_err(|e| e.to_string())?))
}

/// Welcomes the flow, and again whenever its answer comes again because the welcome was lost.
/// Ends with the first payload, which it leaves in the socket, and with the measurement, when nobody
/// takes flows at `to` any more.
async fn repeat_welcome(
    socket: AsyncUdpSocket,
    cookie: Cookie,
    to: mpsc::UnboundedSender<Connected>,
) {
    let welcoming = async {
        let mut datagram = [0; PROOF];
        socket.send(&welcome(&cookie)).await?;
        loop {
            let length = socket.peek(&mut datagram).await?;
            if !is_proof(&datagram[..length]) {
                return std::io::Result::Ok(());
            }
            socket.recv(&mut datagram).await?;
            // What is shorter gets no reply that would be longer than itself.
            if length >= REQUEST_BYTES {
                socket.send(&welcome(&cookie)).await?;
            }
        }
    };
    tokio::select! {
        // A flow that fails here fails for its mover as well, which reports it.
        _ = tokio::time::timeout(REPEAT, welcoming) => {}
        () = to.closed() => {}
    }
}
