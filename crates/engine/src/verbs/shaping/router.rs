//! A router on the way, reached by SSH: its queueing discipline stands in for the sender's.

use std::net::{IpAddr, SocketAddr};

use goodput_model::{Direction, Missing, Snapshot};
use goodput_remote::{Access, Address, Host};
use goodput_shaping::Sender;

use super::ShapingRequest;
use crate::error::EngineError;
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::threads::blocking;

/// Which router to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterRequest {
    /// The router.
    pub address: Address,
    /// How it is reached.
    pub access: Access,
}

/// A router with a login session.
pub(super) struct Router {
    name: String,
    /// Missing only while it is asked.
    host: Option<Host>,
    /// The receiver of the traffic.
    towards: IpAddr,
}

/// What a router counted during a run.
pub(super) struct RouterFacts {
    name: String,
    before: Snapshot,
    after: Snapshot,
}

impl Router {
    /// Logs in to the router of a request, if one was named, to look at the shaper of the traffic with the peer of `client`.
    ///
    /// # Errors
    /// If there is no login.
    pub(super) async fn open(
        request: &ShapingRequest,
        client: &Client,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, EngineError> {
        let Some(RouterRequest { address, access }) = request.router.clone() else {
            return Ok(None);
        };
        let receiver = match request.plan.direction {
            Direction::Reverse => client.local.map(|local| local.ip()),
            _ => client.addresses.first().map(SocketAddr::ip),
        };
        let unknown = "the receiver's address, for which the router is asked, is unknown";
        let towards = receiver.ok_or_else(|| EngineError::Flow(unknown.into()))?;
        let name = address.to_string();
        let opening = blocking(move || Host::open(&address, &access));
        let host = tokio::select! {
            host = opening => host??,
            () = interrupt.raised() => return Err(EngineError::Interrupted),
        };
        Ok(Some(Self { name, host: Some(host), towards }))
    }

    /// The router's shaper now.
    ///
    /// # Errors
    /// If the router does not report it.
    async fn look(&mut self) -> Result<Snapshot, EngineError> {
        let lost =
            || EngineError::Flow(format!("the session with the router {} is over", self.name));
        let (mut host, towards) = (self.host.take().ok_or_else(lost)?, self.towards);
        let (host, facts) = blocking(move || {
            let facts = host.shaper(towards);
            (host, facts)
        })
        .await?;
        self.host = Some(host);
        Ok(facts?)
    }
}

/// The shaper of a router, if one was named, before a run.
///
/// # Errors
/// If the router does not report it.
pub(super) async fn before(router: &mut Option<Router>) -> Result<Option<Snapshot>, EngineError> {
    match router {
        Some(router) => Ok(Some(router.look().await?)),
        None => Ok(None),
    }
}

/// What a router counted since `before`, if one was named.
pub(super) async fn since(
    router: &mut Option<Router>,
    before: Option<Snapshot>,
) -> Option<Result<RouterFacts, Missing>> {
    let (router, before) = (router.as_mut()?, before?);
    let after = router.look().await.map_err(|why| Missing::because(why.to_string()));
    Some(after.map(|after| RouterFacts { name: router.name.clone(), before, after }))
}

/// The sender, with the router's facts in place of its own, if a router was named.
pub(super) fn at_router<'a>(
    sender: Result<Sender<'a>, Missing>,
    router: Option<&'a Result<RouterFacts, Missing>>,
) -> Result<Sender<'a>, Missing> {
    let facts = match router {
        None => return sender,
        Some(facts) => facts.as_ref().map_err(Clone::clone)?,
    };
    Ok(Sender {
        router: Some(&facts.name),
        before: &facts.before,
        after: &facts.after,
        timers: Err(Missing::because("only this host's timers are watched, and the router shapes")),
        ..sender?
    })
}
