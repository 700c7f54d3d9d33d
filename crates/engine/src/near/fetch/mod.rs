//! Flows from a file server, or to it. Each is its own conversation, which requests or stores a file repeatedly while
//! the payload moves. Before that, a file to be fetched is fetched once alone, so that it is in the server's caches;
//! one byte shows whether a file can be stored and removed.

mod asker;
mod bodies;
mod connections;
mod dialler;
pub mod leftovers;
mod log;
mod readiness;
mod removal;
mod scratch;
mod warm_up;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use goodput_files::{About, Conversation, FileError, NfsOptions, Options};
use goodput_model::{Bytes, EndName, Known, Plan};
use goodput_mover::{Awaited, BodySource, EarlyPayload, socket};
use goodput_wire::ticket::FlowTicket;

use crate::control::target::{FileTarget, Target};
use crate::error::EngineError;
use crate::near::flows::Opened;
use crate::run::traffic::{Connected, byte_limit};
use crate::threads::side_by_side;
use asker::Asker;
use bodies::FileBodies;
use connections::PastConnections;
use dialler::Addresses;
use warm_up::{Patient, WarmUp};

pub use super::storage_notes::Meeting;
pub use log::FetchLog;
pub use scratch::Scratch;

/// Flows that a file server serves.
pub struct Fetching {
    pub opened: Opened,
    /// What becomes known of their requests.
    pub log: Arc<FetchLog>,
    /// The files that they store there, to be removed.
    pub scratch: Option<Scratch>,
}

/// Fetches the file of `target` once, or tries whether a file can be stored beside it, then connects the flows of
/// `plan`. Blocks, but not for long once nobody waits any more.
pub fn open(
    target: &Target,
    addresses: &[SocketAddr],
    plan: &Plan,
    tickets: &[FlowTicket],
    awaited: &Awaited,
) -> Result<Fetching, EngineError> {
    let file = target.file()?;
    let options = Options { nfs: nfs_options(plan), ..(*file.options).clone() };
    let (target, addresses) = (target.clone(), Addresses::new(addresses.to_vec()));
    let asker = Asker::new(target, addresses, plan.socket.clone(), options)?;
    let notes = file.notes.as_deref();
    let done = notes.map(|notes| leftovers::settle(&asker, &file.place, notes));
    let mut fetching = match plan.direction.senders().contains(&EndName::Near) {
        true => {
            let begun = Scratch::begin(asker.clone(), file, plan.flows, awaited)?;
            store(begun, plan, tickets, awaited)?
        }
        false => fetch(&asker, file, plan, tickets, awaited)?,
    };
    fetching.opened.doubts.splice(0..0, done.into_iter().flatten());
    Ok(fetching)
}

/// Flows that fetch, after the first fetch unless it was already made.
fn fetch(
    asker: &Asker,
    file: &FileTarget,
    plan: &Plan,
    tickets: &[FlowTicket],
    awaited: &Awaited,
) -> Result<Fetching, EngineError> {
    let converse = || asker.converse(&file.place);
    let WarmUp { first, announced, further_s, conversation } = match file.fetched.is_so() {
        true => WarmUp::none(converse()),
        false => warm_up::fetch(&asker.target, converse(), plan, awaited)?,
    };
    file.fetched.note();
    let about = conversation.about();
    let log = Arc::new(FetchLog::new(first, plan.flows, asker.proxy(), about));
    log.alone(further_s);
    announced.into_iter().for_each(|bytes| log.announced(bytes));
    // The first flow continues where the warm-up was, with what it learned of redirects.
    let conversations = std::iter::once(conversation).chain(std::iter::repeat_with(converse));
    let opened = connect(asker, plan, tickets, conversations, &log, awaited)?;
    Ok(Fetching { opened, log, scratch: None })
}

/// Flows that store, each to its own file.
fn store(
    scratch: Scratch,
    plan: &Plan,
    tickets: &[FlowTicket],
    awaited: &Awaited,
) -> Result<Fetching, EngineError> {
    let asker = scratch.asker();
    let first = Known::missing("nothing was fetched");
    let log = Arc::new(FetchLog::new(first, plan.flows, asker.proxy(), About::default()));
    let conversations = scratch.places().iter().map(|place| asker.converse(place));
    let opened = connect(asker, plan, tickets, conversations, &log, awaited)?;
    Ok(Fetching { opened, log, scratch: Some(scratch) })
}

/// Connects each flow's conversation: the first one alone, because it finds the address, and the others side by side.
fn connect(
    asker: &Asker,
    plan: &Plan,
    tickets: &[FlowTicket],
    conversations: impl Iterator<Item = Box<dyn Conversation>>,
    log: &Arc<FetchLog>,
    awaited: &Awaited,
) -> Result<Opened, EngineError> {
    let failed = |why: FileError| EngineError::File { target: asker.target.text.clone(), why };
    let connect = |(ticket, mut conversation): (&FlowTicket, Box<dyn Conversation>)| {
        byte_limit(plan, ticket.flow.id, 1).into_iter().for_each(|bytes| conversation.want(bytes));
        conversation.connect(&Patient(awaited)).map(|()| conversation)
    };
    let mut asked = tickets.iter().zip(conversations);
    let first = asked.next().map(connect).transpose().map_err(failed)?;
    let others = match plan.socket.source_port {
        None => side_by_side(asked.collect(), connect),
        // Each port follows the one before.
        Some(_) => asked.map(connect).collect(),
    };
    let ready = first.into_iter().chain(others.map_err(failed)?);
    let mut flows = Vec::new();
    for (ticket, conversation) in tickets.iter().zip(ready) {
        let calls = conversation.rpcs();
        log.calls(ticket.flow.id, calls.clone());
        let stores = calls.filter(|_| ticket.flow.sender == EndName::Near);
        let socket = socket_of(conversation.as_ref())?;
        let id = ticket.flow.id;
        let bodies = FileBodies::new(id, conversation, Arc::clone(log), plan.fetches);
        flows.push(connected(ticket, socket, bodies, PastConnections::of(stores)));
    }
    let peer = flows.first().and_then(|flow| peer_of(&flow.socket));
    let peer = peer.ok_or_else(|| EngineError::Flow("there is no flow to open".into()))?;
    let checks = flows.iter().flat_map(|flow| socket::check_effective(&flow.socket, &plan.socket));
    let mut doubts: Vec<String> = checks.collect();
    doubts.dedup();
    Ok(Opened { flows, peer: Some(peer), doubts })
}

fn nfs_options(plan: &Plan) -> NfsOptions {
    let bytes = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
    NfsOptions {
        read_bytes: plan.nfs.rsize_bytes.map(bytes),
        write_bytes: plan.nfs.wsize_bytes.map(bytes),
        slots: plan.nfs.slots,
    }
}

fn connected(
    ticket: &FlowTicket,
    socket: OwnedFd,
    bodies: FileBodies,
    connections: PastConnections,
) -> Connected {
    let flow = ticket.flow;
    let bodies = Some(Arc::new(BodySource::new(bodies, connections)));
    let framing = ticket.framing.clone();
    Connected { flow, socket, framing, early: EarlyPayload::default(), bodies, file: None }
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
