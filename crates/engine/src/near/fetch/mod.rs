//! Flows from a server of files: each is a conversation of its own, which asks for the file again and again while
//! the payload moves. Before, the file is fetched once alone, so that it is in the server's caches.

mod bodies;
mod connections;
mod dialler;
mod log;
mod warm_up;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use goodput_files::{Conversation, FileError, NfsOptions, Options};
use goodput_model::{Bytes, FlowPlan, Plan};
use goodput_mover::{Awaited, BodySource, EarlyPayload, socket};
use goodput_wire::ticket::FlowTicket;

use crate::control::target::Target;
use crate::error::EngineError;
use crate::near::flows::Opened;
use crate::run::traffic::Connected;
use bodies::FileBodies;
use connections::PastConnections;
use dialler::Dialler;
use warm_up::Patient;

pub use log::FetchLog;

/// Fetches the file of `target` once, then connects the flows of `plan`. Blocks, but not for long once it is no more
/// awaited.
pub fn open(
    target: &Target,
    addresses: &[SocketAddr],
    plan: &Plan,
    tickets: &[FlowTicket],
    awaited: &Awaited,
) -> Result<(Opened, Arc<FetchLog>), EngineError> {
    let not_one = || EngineError::Target(format!("{target} names no file"));
    let file = target.file.as_ref().ok_or_else(not_one)?;
    let failed = |why: FileError| EngineError::File { target: target.text.clone(), why };
    let options = Arc::new(Options { nfs: nfs_options(plan), ..(*file.options).clone() });
    let converse = || {
        let dial = Dialler::new(target, addresses, &plan.socket);
        (file.place.scheme().open)(file.place.clone(), Arc::clone(&options), Box::new(dial))
    };
    let (first, conversation) = warm_up::fetch(target, converse(), plan, awaited)?;
    let log = Arc::new(FetchLog::new(first, plan.flows, conversation.about()));
    let mut flows = Vec::new();
    // The first flow goes on where the warm-up was: what it learned of redirects holds.
    let mut conversations = std::iter::once(conversation).chain(std::iter::repeat_with(converse));
    for ticket in tickets {
        let Some(mut conversation) = conversations.next() else { break };
        conversation.connect(&Patient(awaited)).map_err(failed)?;
        log.calls(ticket.flow.id, conversation.rpcs());
        let socket = socket_of(conversation.as_ref())?;
        let flow = ticket.flow;
        flows.push(connected(flow, ticket, socket, conversation, &log));
    }
    let peer = flows.first().and_then(|flow| peer_of(&flow.socket));
    let peer = peer.ok_or_else(|| EngineError::Flow("there is no flow to open".into()))?;
    let checks = flows.iter().flat_map(|flow| socket::check_effective(&flow.socket, &plan.socket));
    let mut doubts: Vec<String> = checks.collect();
    doubts.dedup();
    Ok((Opened { flows, peer, doubts }, log))
}

fn nfs_options(plan: &Plan) -> NfsOptions {
    let bytes = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
    NfsOptions { read_bytes: plan.nfs.rsize_bytes.map(bytes), slots: plan.nfs.slots }
}

fn connected(
    flow: FlowPlan,
    ticket: &FlowTicket,
    socket: OwnedFd,
    conversation: Box<dyn Conversation>,
    log: &Arc<FetchLog>,
) -> Connected {
    let bodies = FileBodies::new(flow.id, conversation, Arc::clone(log));
    let bodies = Some(Arc::new(BodySource::new(bodies, PastConnections::default())));
    let framing = ticket.framing.clone();
    Connected { flow, socket, framing, early: EarlyPayload::default(), bodies }
}

/// Another descriptor of a conversation's socket.
fn socket_of(conversation: &dyn Conversation) -> Result<OwnedFd, EngineError> {
    let socket = conversation.socket().map(OwnedFd::try_clone);
    let none = || EngineError::Flow("the file server's connection is gone".into());
    socket.ok_or_else(none)?.map_err(EngineError::io("hand a connection to its flow"))
}

fn peer_of(socket: &OwnedFd) -> Option<SocketAddr> {
    socket2::SockRef::from(socket).peer_addr().ok()?.as_socket()
}
