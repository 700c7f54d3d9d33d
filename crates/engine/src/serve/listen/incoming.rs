//! The first bytes of a connection decide what it is: a conversation, or a flow with its proof. A connection that a
//! session awaits from this address is known without any bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::Transport;
use goodput_mover::EarlyPayload;
use goodput_wire::foreign;
use goodput_wire::protocols::goodput::preamble::asks_for_handshake;
use goodput_wire::protocols::{self, Opening};
use goodput_wire::session::{Action, Input, Protocol, SettingRefusal};
use goodput_wire::ticket::Proof;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::control::conversation::Conversation;
use crate::serve::Shared;
use crate::serve::address::plain;
use crate::serve::admit::admission::ConnectionPermit;
use crate::serve::admit::attempts::Attempts;
use crate::serve::listen::endpoint::Endpoint;
use crate::serve::session::client::{ClientInfo, log_doubts};
use crate::serve::session::served_client;
use crate::serve::session::tickets::{Sign, Ticket};

/// How long a new connection may take to send its first request.
const GREETING_TIMEOUT: Duration = goodput_wire::patience::GREETING_TIMEOUT;

/// What a new connection is for.
enum Purpose {
    Conversation(&'static Protocol),
    Flow(Ticket),
    /// Nothing that is served here; the reason in words.
    Nothing(String),
    /// It closed without a byte, like a client that only times how long it takes to connect.
    Silent,
}

/// Makes each word of a conversation go out at once. Otherwise the second of two words would wait for the first one's
/// acknowledgement (Nagle, RFC 896), which a Linux peer delays by 40 ms.
fn let_through(stream: &TcpStream, peer: SocketAddr) {
    if let Err(cause) = stream.set_nodelay(true) {
        tracing::debug!(%peer, "can't set TCP_NODELAY: {cause}");
    }
    if let Err(why) = goodput_mover::socket::apply_control(stream) {
        tracing::debug!(%peer, "the control connection can't get priority over payload: {why}");
    }
}

/// Finds out what a new connection is and serves it.
pub async fn serve(
    mut stream: TcpStream,
    peer: SocketAddr,
    endpoint: &Endpoint,
    shared: &Arc<Shared>,
    permit: ConnectionPermit,
) {
    let mut first = Vec::new();
    let purpose = tokio::select! {
        purpose = find_out(&mut stream, peer, endpoint, shared, &mut first) => purpose,
        () = shared.stopping() => return,
    };
    match purpose {
        Purpose::Flow(ticket) => join_flow(stream, peer, &ticket),
        Purpose::Conversation(protocol) => {
            let local = plain(stream.local_addr().unwrap_or(endpoint.local));
            let client = ClientInfo { protocol, peer, local };
            let admitted = tokio::select! {
                admitted = Admitted::of(first, peer, &shared.handshakes) => admitted,
                () = shared.stopping() => return,
            };
            let first = match admitted {
                Ok(first) => first,
                Err(why) => {
                    tracing::info!(%peer, "rejected: {why}");
                    shared.remark(peer, Some(protocol), &format!("rejected: {why}"));
                    shared.config.counts.refuse();
                    return;
                }
            };
            let conversation = begin(stream, &client, first, shared);
            served_client::serve_client(conversation, client, None, shared).await;
        }
        Purpose::Silent => {
            tracing::debug!(%peer, "it closed the connection without sending anything")
        }
        Purpose::Nothing(why) => {
            tracing::info!(%peer, "rejected: {why}");
            shared.remark(peer, None, &format!("rejected: {why}"));
            shared.config.counts.refuse();
        }
    }
    // A connection counts against its address until it is done, or until a flow has proven itself.
    drop(permit);
}

/// First bytes of a conversation that may begin. Conversations begin only with these, so no path gets free handshakes.
struct Admitted(Vec<u8>);

impl Admitted {
    /// Waits until the client may have a handshake, if it asks for one; or says why it may not.
    async fn of(first: Vec<u8>, peer: SocketAddr, handshakes: &Attempts) -> Result<Self, String> {
        if asks_for_handshake(&first) {
            let wait = handshakes.take(peer.ip(), Instant::now())?;
            tokio::time::sleep(wait).await;
        }
        Ok(Self(first))
    }

    /// The same for a client that others wait for: if it would have to wait for a handshake, it does not get one.
    fn at_once(first: Vec<u8>, peer: SocketAddr, handshakes: &Attempts) -> Result<Self, String> {
        if asks_for_handshake(&first) {
            handshakes.take_at_once(peer.ip(), Instant::now())?;
        }
        Ok(Self(first))
    }
}

/// Begins to speak the protocol of the client, whose `first` bytes were already read.
fn begin(
    stream: TcpStream,
    client: &ClientInfo,
    Admitted(first): Admitted,
    shared: &Shared,
) -> Conversation {
    let protocol = client.protocol;
    let session = (protocol.server)(Instant::now(), shared.session_config(client, Transport::Tcp));
    if protocol.has_control {
        let_through(&stream, client.peer);
    }
    let budget = shared.read_budgets.of(client.peer.ip());
    let mut conversation = Conversation::new(session, Some(stream)).within(budget);
    conversation.feed(Input::Received(first));
    conversation
}

/// Recognises the protocol of a new connection and refuses the connection in that protocol. If it is a flow, its
/// session gets the reason.
pub async fn refuse(
    mut stream: TcpStream,
    peer: SocketAddr,
    endpoint: &Endpoint,
    shared: &Shared,
    why: &str,
) {
    let mut first = Vec::new();
    match find_out(&mut stream, peer, endpoint, shared, &mut first).await {
        Purpose::Flow(ticket) => drop(ticket.to.send(Err(why.into()))),
        Purpose::Conversation(protocol) => {
            let local = plain(stream.local_addr().unwrap_or(endpoint.local));
            // A client that may have no handshake gets no answer.
            let Ok(first) = Admitted::at_once(first, peer, &shared.handshakes) else { return };
            let mut conversation =
                begin(stream, &ClientInfo { protocol, peer, local }, first, shared);
            while let Ok(Some(action)) = conversation.next().await {
                let why = why.into();
                conversation.feed(match action {
                    Action::Setting(_) => {
                        Input::SettingDone(Err(SettingRefusal { why, ..Default::default() }))
                    }
                    _ => Input::FlowsFailed(why),
                });
            }
        }
        Purpose::Silent | Purpose::Nothing(_) => {}
    }
}

async fn find_out(
    stream: &mut TcpStream,
    peer: SocketAddr,
    endpoint: &Endpoint,
    shared: &Shared,
    first: &mut Vec<u8>,
) -> Purpose {
    let reserved = Sign::Reserved(endpoint.port(), Transport::Tcp, peer.ip());
    if let Some(ticket) = shared.tickets.redeem(&reserved) {
        return Purpose::Flow(ticket);
    }
    let opening =
        tokio::time::timeout(GREETING_TIMEOUT, read_opening(stream, endpoint, first)).await;
    let rest = endpoint.rest().filter(|_| !first.is_empty());
    match (opening, rest) {
        (Ok(Ok(Opening::Control(protocol))), _) => Purpose::Conversation(protocol),
        (Ok(Ok(Opening::Data(proof))), _) => awaited(&proof, peer, endpoint, shared).map_or_else(
            || Purpose::Nothing("a data connection with an unknown cookie".into()),
            Purpose::Flow,
        ),
        (Ok(Ok(Opening::Either(protocol, proof))), _) => awaited(&proof, peer, endpoint, shared)
            .map_or(Purpose::Conversation(protocol), Purpose::Flow),
        // Too few bytes for any other protocol, or none of theirs.
        (_, Some(rest)) => Purpose::Conversation(rest),
        (Ok(Ok(_)), None) => Purpose::Nothing(foreign::client(first)),
        (Ok(Err(_)), None) if first.is_empty() => Purpose::Silent,
        (Ok(Err(cause)), None) => Purpose::Nothing(format!("it closed the connection: {cause}")),
        (Err(_), None) if first.is_empty() => {
            Purpose::Nothing(format!("it sent nothing for {} s", GREETING_TIMEOUT.as_secs()))
        }
        (Err(_), None) => Purpose::Nothing(format!(
            "it sent no valid request in {} s: {}",
            GREETING_TIMEOUT.as_secs(),
            foreign::client(first)
        )),
    }
}

/// The flow that a proof stands for, whatever its protocol.
fn awaited(
    proof: &Proof,
    peer: SocketAddr,
    endpoint: &Endpoint,
    shared: &Shared,
) -> Option<Ticket> {
    let signs = endpoint.spoken.iter().map(|protocol| Sign::of_proof(protocol, proof, peer.ip()));
    signs.into_iter().find_map(|sign| shared.tickets.redeem(&sign))
}

/// Reads until the bytes show what they begin, and never more: what follows a proof is payload.
async fn read_opening(
    stream: &mut TcpStream,
    endpoint: &Endpoint,
    first: &mut Vec<u8>,
) -> std::io::Result<Opening> {
    loop {
        let needs = match protocols::opening(&endpoint.spoken, first) {
            Opening::TooShort { needs } if needs > first.len() => needs,
            // Only protocols that accept unknown bytes listen here.
            Opening::Unknown if first.is_empty() => 1,
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

fn join_flow(stream: TcpStream, peer: SocketAddr, ticket: &Ticket) {
    let ready = stream.into_std().map_err(|e| e.to_string()).and_then(|stream| {
        let doubts = goodput_mover::socket::apply_accepted(&stream, &ticket.options)
            .map_err(|e| e.to_string())?;
        log_doubts(peer, ticket.flow.id, &doubts);
        Ok(stream)
    });
    let arrival = match ready {
        Ok(stream) => Ok(ticket.connected(stream.into(), EarlyPayload::default())),
        Err(why) => Err(format!("flow {} from {peer}: {why}", ticket.flow.id)),
    };
    // The session may have ended meanwhile; then the flow is closed with it.
    drop(ticket.to.send(arrival));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::admit::attempts::AttemptLimits;
    use crate::serve::admit::quotas::Limit;

    #[tokio::test]
    async fn who_asks_for_handshakes_without_end_is_turned_away_and_nobody_else() {
        let pace = AttemptLimits {
            what: "handshakes",
            burst: 2,
            burst_of_all: 100,
            then: Limit { all: 1, client: 1, unproven_percent: 100 },
            period: Duration::from_secs(3600),
            patience: Duration::ZERO,
        };
        let handshakes = Attempts::new(pace);
        let begin = async |first: &[u8], from: &str| {
            Admitted::of(first.to_vec(), from.parse().unwrap(), &handshakes).await.map(drop)
        };
        for role in ["goodputs", "goodputk"] {
            assert_eq!(begin(role.as_bytes(), "192.0.2.1:1").await, Ok(()));
        }
        let why = begin(b"goodputk", "192.0.2.1:2").await.unwrap_err();
        assert!(why.contains("handshakes"), "{why}");
        assert_eq!(begin(b"goodputk", "198.51.100.2:1").await, Ok(()));
        assert_eq!(begin(b"goodputc", "192.0.2.1:3").await, Ok(()), "it asks for none");
    }
}
