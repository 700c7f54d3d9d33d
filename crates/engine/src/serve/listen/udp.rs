//! UDP on the server: the first datagram from an address decides whose it is. An address that has not proven itself
//! gets no more bytes than it sent. All of it, with the conversations that datagrams begin, happens on a thread of its
//! own (`event_thread.rs`).

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::Transport;
use goodput_mover::{EarlyPayload, monotonic_ns};
use goodput_wire::datagram::echo::write_times;
use goodput_wire::datagram::{Challenger, DatagramReply, REQUEST_BYTES, is_proof, welcome};
use goodput_wire::protocols::datagram_opening;
use goodput_wire::protocols::goodput::PROTOCOL;
use goodput_wire::protocols::goodput::preamble::data_opening;
use goodput_wire::session::{Cookie, FirstDatagram, Input, Protocol};
use goodput_wire::ticket::Proof;
use tokio::net::UdpSocket as AsyncUdpSocket;
use tokio::sync::mpsc;

use super::accept::Alive;
use super::echo_socket::EchoSocket;
use super::port_socket::{HandedOver, PortSocket};
use crate::control::conversation::Conversation;
use crate::serve::Shared;
use crate::serve::address::plain;
use crate::serve::listen::endpoint::Endpoint;
use crate::serve::session::client::ClientInfo;
use crate::serve::session::served_client;
use crate::serve::session::tickets::{Arrival, Sign, Ticket};

/// Buffer for a datagram of the proof: longer than any of them, so that longer datagrams are recognised.
const MAX_PROOF_BYTES: usize = 128;

/// How long a lost welcome is repeated on request.
const WELCOME_REPEAT_TIME: Duration = Duration::from_secs(10);

/// After this much silence, a client that was turned away has stopped sending.
const MIN_QUIET_TIME: Duration = Duration::from_secs(1);

/// Longest time for which its datagrams are discarded.
const MAX_DISCARD_TIME: Duration = Duration::from_secs(30);

/// Answers clients and hands flows over, until the future is dropped.
pub async fn answer(socket: UdpSocket, endpoint: Arc<Endpoint>, shared: Arc<Shared>, alive: Alive) {
    let challenger = Arc::new(Challenger::new(rand::random()));
    let port_socket = match PortSocket::new(socket) {
        Ok(port_socket) => port_socket,
        Err(cause) => {
            tracing::error!("can't serve UDP: {cause}");
            return std::future::pending().await;
        }
    };
    let mut demultiplexer = Demultiplexer { port_socket, endpoint, shared, challenger };
    loop {
        let (datagram, peer) = demultiplexer.port_socket.next().await;
        demultiplexer.take(datagram, peer, &alive);
    }
}

/// Hands datagrams from addresses without a flow to their recipients.
struct Demultiplexer {
    port_socket: PortSocket,
    endpoint: Arc<Endpoint>,
    shared: Arc<Shared>,
    challenger: Arc<Challenger>,
}

impl Demultiplexer {
    fn take(&mut self, datagram: Vec<u8>, peer: SocketAddr, alive: &Alive) {
        if !self.shared.config.access.allows(peer.ip()) {
            let dropped = self.shared.denied.count(peer.ip(), Instant::now());
            dropped.iter().for_each(|dropped| tracing::info!("{dropped}"));
            return;
        }
        let reserved = Sign::Reserved(self.endpoint.port(), Transport::Udp, peer.ip());
        if !self.begins_elsewhere(&datagram)
            && let Some(ticket) = self.shared.tickets.redeem(&reserved)
        {
            self.begin_flow(Some(datagram), &[], peer, &ticket);
            return;
        }
        if is_proof(&datagram) && self.endpoint.spoken.iter().any(|p| p.id == PROTOCOL.id) {
            return self.prove(&datagram, peer);
        }
        match datagram_opening(&self.endpoint.spoken, &datagram) {
            Some((protocol, FirstDatagram::Opens { reply })) if reply.len() <= datagram.len() => {
                let sign = Sign::Opens(protocol.id, peer.ip());
                if let Some(ticket) = self.shared.tickets.redeem(&sign) {
                    self.begin_flow(None, &reply, peer, &ticket);
                }
            }
            Some((protocol, FirstDatagram::Begins)) => self.begin(protocol, datagram, peer, alive),
            // Not ours, or left over from a flow that has ended.
            _ => {}
        }
    }

    /// Whether it begins a conversation and is not the payload that is awaited from its address: both come to this port
    /// if nuttcp and iperf2 share it.
    fn begins_elsewhere(&self, datagram: &[u8]) -> bool {
        let begun = datagram_opening(&self.endpoint.spoken, datagram);
        begun.is_some_and(|(protocol, first)| {
            first == FirstDatagram::Begins && !protocol.takes_the_rest
        })
    }

    fn prove(&mut self, datagram: &[u8], peer: SocketAddr) {
        match self.challenger.answer(peer, datagram) {
            DatagramReply::Challenge(reply) => self.port_socket.reply(&reply, peer),
            DatagramReply::Proven(cookie) => self.proven(cookie, peer),
            DatagramReply::Echo(cookie, reply) => self.echo(cookie, reply, peer),
            DatagramReply::Nothing => {}
        }
    }

    /// Answers an echo, with this end's times unless they are private. The peer's later echoes come to a socket of
    /// their own.
    fn echo(&mut self, cookie: Cookie, mut reply: Vec<u8>, peer: SocketAddr) {
        self.shared.echoes.hear(&cookie);
        if !self.shared.echoes.admit(&cookie, Instant::now()) {
            return;
        }
        let received = self.port_socket.arrived_ns().filter(|_| !self.shared.config.private);
        if let Some(received_ns) = received {
            write_times(&mut reply, received_ns, monotonic_ns());
        }
        self.port_socket.reply(&reply, peer);
        if self.shared.echoes.lacks_socket(&cookie, peer) {
            self.split_echoes_off(cookie, peer);
        }
    }

    fn split_echoes_off(&mut self, cookie: Cookie, peer: SocketAddr) {
        let socket = match self.port_socket.split_off(peer) {
            Ok(socket) => socket,
            Err(cause) => {
                tracing::debug!(%peer, "its echoes go on at the shared socket: {cause}");
                return;
            }
        };
        let own = EchoSocket {
            peer,
            cookie,
            challenger: Arc::clone(&self.challenger),
            echoes: self.shared.echoes.clone(),
            reports_times: !self.shared.config.private,
        };
        let answering = self.shared.echo_thread.spawn(own.answer(socket));
        self.shared.echoes.has_socket(&cookie, peer, answering.abort_handle());
    }

    fn proven(&mut self, cookie: Cookie, peer: SocketAddr) {
        let sign = Sign::Secret(Proof(data_opening(&cookie).to_vec()));
        let Some(ticket) = self.shared.tickets.redeem(&sign) else {
            tracing::debug!(%peer, "rejected: a UDP flow with an unknown cookie");
            return;
        };
        if let Some(repeater) = self.begin_flow(None, &welcome(&cookie), peer, &ticket) {
            tokio::spawn(repeat_welcome(repeater, cookie, ticket.to.clone()));
        }
    }

    /// Gives a flow its socket, sends `reply` on it, and hands it to its session with what came. This datagram comes
    /// first, if it is payload. Returns a second handle to the socket.
    fn begin_flow(
        &mut self,
        first: Option<Vec<u8>>,
        reply: &[u8],
        peer: SocketAddr,
        ticket: &Ticket,
    ) -> Option<UdpSocket> {
        let begun = self.hand_over(peer).and_then(|HandedOver { socket, early }| {
            goodput_mover::socket::apply_datagram(&socket, &ticket.options)
                .map_err(|e| e.to_string())?;
            let second = socket.try_clone().map_err(|e| e.to_string())?;
            if !reply.is_empty() {
                // A lost reply is repeated on request, or missed by a client that gives up.
                let _ = second.send(reply);
            }
            let datagrams = first.into_iter().chain(early).filter(|d| !is_proof(d)).collect();
            let early = EarlyPayload { bytes: 0, datagrams };
            // The session may have ended meanwhile; then the flow is closed with it.
            drop(ticket.to.send(Ok(ticket.connected(socket.into(), early))));
            Ok(second)
        });
        let report = |why: &String| {
            drop(ticket.to.send(Err(format!("flow {} from {peer}: {why}", ticket.flow.id))));
        };
        begun.inspect_err(report).ok()
    }

    fn hand_over(&mut self, peer: SocketAddr) -> Result<HandedOver, String> {
        self.port_socket.hand_over(peer).map_err(|cause| format!("can't make its socket: {cause}"))
    }

    /// Begins a conversation that has no connection, only a flow.
    fn begin(
        &mut self,
        protocol: &'static Protocol,
        datagram: Vec<u8>,
        peer: SocketAddr,
        alive: &Alive,
    ) {
        // A datagram that begins a conversation proves nothing about who sent it.
        if let Err(why) = self.shared.gate().may_measure(None) {
            tracing::debug!(%peer, "{}: denied: {why}", protocol.id);
            self.shared.remark(peer, Some(protocol), &format!("denied: {why}"));
            return;
        }
        let permit = match self.shared.admission.unproven(peer.ip()) {
            Ok(permit) => permit,
            Err(why) => {
                tracing::debug!(%peer, "rejected: {why}");
                self.shared.remark(peer, Some(protocol), &format!("rejected: {why}"));
                return;
            }
        };
        let HandedOver { socket, mut early } = match self.hand_over(peer) {
            Ok(handed) => handed,
            Err(why) => {
                tracing::info!(%peer, "rejected: {why}");
                self.shared.remark(peer, Some(protocol), &format!("rejected: {why}"));
                return;
            }
        };
        early.insert(0, datagram.clone());
        let local = socket.local_addr().map_or(self.endpoint.local, plain);
        let client = ClientInfo { protocol, peer, local };
        let (shared, alive) = (Arc::clone(&self.shared), alive.clone());
        tokio::spawn(async move {
            let config = shared.session_config(&client, Transport::Udp);
            let session = (protocol.server)(Instant::now(), config);
            let mut conversation = Conversation::new(session, None);
            let received = datagram.len();
            conversation.feed(Input::Received(datagram));
            let answer = conversation.take_unheard();
            // A lost answer is not repeated: the client waits as it would for any other loss.
            if (1..=received).contains(&answer.len()) {
                let _ = socket.send(&answer);
            }
            let rest = socket.try_clone();
            let own = (socket.into(), EarlyPayload { bytes: 0, datagrams: early });
            let measured =
                served_client::serve_client(conversation, client, Some(own), &shared).await;
            drop(alive);
            if let (0, Ok(rest)) = (measured, rest) {
                tokio::select! {
                    () = swallow(rest) => {}
                    () = shared.stopping() => {}
                }
            }
            drop(permit);
        });
    }
}

/// Discards what a refused client still sends. The client can't be stopped, and each of its
/// datagrams would begin another conversation.
async fn swallow(socket: UdpSocket) {
    let swallowing = async {
        let socket = AsyncUdpSocket::from_std(socket)?;
        let mut nothing = [0; 1];
        while tokio::time::timeout(MIN_QUIET_TIME, socket.recv(&mut nothing)).await.is_ok() {}
        std::io::Result::Ok(())
    };
    // A socket that can't be read is closed, and the client is turned away again.
    let _ = tokio::time::timeout(MAX_DISCARD_TIME, swallowing).await;
}

/// Repeats the welcome of a flow whenever its answer comes again because the welcome was lost. Ends with the first
/// payload, which stays in the socket, and with the measurement, when nobody takes flows at `to` any more.
async fn repeat_welcome(socket: UdpSocket, cookie: Cookie, to: mpsc::UnboundedSender<Arrival>) {
    let welcoming = async {
        let socket = AsyncUdpSocket::from_std(socket)?;
        let mut datagram = [0; MAX_PROOF_BYTES];
        loop {
            let length = socket.peek(&mut datagram).await?;
            if !is_proof(&datagram[..length]) {
                return std::io::Result::Ok(());
            }
            socket.recv(&mut datagram).await?;
            // A shorter datagram gets no reply, because the reply would be longer.
            if length >= REQUEST_BYTES {
                socket.send(&welcome(&cookie)).await?;
            }
        }
    };
    tokio::select! {
        // A flow that fails here fails for its mover as well, which reports it.
        _ = tokio::time::timeout(WELCOME_REPEAT_TIME, welcoming) => {}
        () = to.closed() => {}
    }
}
