//! A router on the way, reached by SSH: its queueing discipline stands in for the sender's.

use std::net::IpAddr;
use std::pin::pin;

use goodput_model::{Direction, Missing, Snapshot};
use goodput_remote::{Access, Address, Host};

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
}

/// What a router counted during a run.
pub(super) struct RouterFacts {
    /// The router, as typed.
    pub(super) name: String,
    /// Its shaper before the run.
    pub(super) before: Snapshot,
    /// The same afterwards.
    pub(super) after: Snapshot,
}

impl Router {
    /// Logs in to the router of a request, if one was named. A login may take longer than a server waits for its client, so
    /// it comes first.
    ///
    /// # Errors
    /// If there is no login.
    pub(super) async fn open(
        request: &ShapingRequest,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, EngineError> {
        let Some(RouterRequest { address, access }) = request.router.clone() else {
            return Ok(None);
        };
        let name = address.to_string();
        let opening = blocking(move || Host::open(&address, &access));
        let host = tokio::select! {
            host = opening => host??,
            () = interrupt.raised() => return Err(EngineError::Interrupted),
        };
        Ok(Some(Self { name, host: Some(host) }))
    }

    /// The shaper of what the router sends `towards` an address, now.
    ///
    /// # Errors
    /// If the router does not report it.
    async fn look(&mut self, towards: IpAddr) -> Result<Snapshot, EngineError> {
        let lost =
            || EngineError::Flow(format!("the session with the router {} is over", self.name));
        let mut host = self.host.take().ok_or_else(lost)?;
        let (host, facts) = blocking(move || {
            let facts = host.shaper(towards);
            (host, facts)
        })
        .await?;
        self.host = Some(host);
        Ok(facts?)
    }
}

/// The shaper of a router, if one was named, before a run with the peer of `client`.
///
/// # Errors
/// If the router does not report it, or does not forward to the receiver.
pub(super) async fn before(
    router: &mut Option<Router>,
    request: &ShapingRequest,
    client: &mut Client,
) -> Result<Option<Snapshot>, EngineError> {
    let Some(router) = router else { return Ok(None) };
    let towards = receiver(request, client)?;
    Ok(Some(meanwhile(client, router.look(towards)).await?))
}

/// What a router counted since `before`, if one was named.
pub(super) async fn since(
    router: &mut Option<Router>,
    before: Option<Snapshot>,
    request: &ShapingRequest,
    client: &mut Client,
) -> Option<Result<RouterFacts, Missing>> {
    let (router, before) = (router.as_mut()?, before?);
    let after = match receiver(request, client) {
        Ok(towards) => meanwhile(client, router.look(towards)).await,
        Err(why) => Err(why),
    };
    let after = after.map_err(|why| Missing::because(why.to_string()));
    Some(after.map(|after| RouterFacts { name: router.name.clone(), before, after }))
}

/// The address of the traffic's receiver.
fn receiver(request: &ShapingRequest, client: &Client) -> Result<IpAddr, EngineError> {
    let receiver = match request.plan.direction {
        Direction::Reverse => client.local,
        _ => client.addresses.first().copied(),
    };
    let unknown = "the receiver's address, for which the router is asked, is unknown";
    let receiver = receiver.ok_or_else(|| EngineError::Flow(unknown.into()))?.ip().to_canonical();
    if is_link_local(receiver) {
        return Err(EngineError::Flow(format!(
            "--router: {receiver} is a link-local address, to which no router forwards; name the target by another address"
        )));
    }
    Ok(receiver)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Waits for an answer of a router, and hears the server meanwhile, which gives up a silent client.
async fn meanwhile<T>(client: &mut Client, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    loop {
        tokio::select! {
            answered = &mut answer => return answered,
            // Why a conversation is over, the next measurement finds out.
            heard = client.next() => if heard.is_err() { return answer.await },
        }
    }
}
