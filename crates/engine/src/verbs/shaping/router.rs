//! A router on the way: its queueing discipline stands in for the sender's. It is read by SSH, or by asking a goodput
//! server at the router.

use std::net::IpAddr;
use std::pin::pin;

use goodput_model::{Bytes, Direction, Length, Missing, Plan, Snapshot};
use goodput_remote::{Access, Address, Host};

use super::ShapingRequest;
use crate::control::credentials::Credentials;
use crate::control::target::Target;
use crate::error::EngineError;
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::near::measure::measure_whole;
use crate::threads::blocking;

/// Which router to ask, and how.
#[derive(Clone)]
pub enum RouterRequest {
    /// By a login at this address.
    Ssh(Address, Access),
    /// By the goodput server there.
    Goodput(Box<(Target, Credentials)>),
}

/// A router that can be asked.
pub(super) struct Router {
    name: String,
    way: Way,
}

enum Way {
    /// A login session; missing only while it is used.
    Ssh(Option<Box<Host>>),
    Goodput(Box<(Target, Credentials, Interrupt)>),
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
    /// Logs in to the router of a request, if one was named for that. A login may take longer than a server waits for its client, so
    /// it comes first.
    ///
    /// # Errors
    /// If there is no login.
    pub(super) async fn open(
        request: &ShapingRequest,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, EngineError> {
        let (address, access) = match request.router.clone() {
            None => return Ok(None),
            Some(RouterRequest::Goodput(server)) => {
                let (target, credentials) = *server;
                let name = target.text.clone();
                let way = Way::Goodput(Box::new((target, credentials, interrupt.clone())));
                return Ok(Some(Self { name, way }));
            }
            Some(RouterRequest::Ssh(address, access)) => (address, access),
        };
        let name = address.to_string();
        let opening = blocking(move || Host::open(&address, &access));
        let host = tokio::select! {
            host = opening => host??,
            () = interrupt.raised() => return Err(EngineError::Interrupted),
        };
        Ok(Some(Self { name, way: Way::Ssh(Some(Box::new(host))) }))
    }

    /// The shaper of what the router sends `towards` an address, now.
    ///
    /// # Errors
    /// If the router does not report it.
    async fn look(&mut self, towards: IpAddr) -> Result<Snapshot, EngineError> {
        let session = match &mut self.way {
            Way::Ssh(session) => session,
            Way::Goodput(server) => return by_goodput(server, towards).await,
        };
        let lost =
            || EngineError::Flow(format!("the session with the router {} is over", self.name));
        let mut host = session.take().ok_or_else(lost)?;
        let (host, facts) = blocking(move || {
            let facts = host.shaper(towards);
            (host, facts)
        })
        .await?;
        *session = Some(host);
        Ok(facts?)
    }
}

/// The shaper of what a router sends `towards` an address, as its goodput server reports it: the facts of a measurement of
/// one byte with that server.
async fn by_goodput(
    (target, credentials, interrupt): &(Target, Credentials, Interrupt),
    towards: IpAddr,
) -> Result<Snapshot, EngineError> {
    let (length, towards) = (Length::Bytes(Bytes(1)), Some(towards));
    let plan = Plan { length, towards, ..Plan::standard() };
    let listener = &mut |_| {};
    let mut client = Client::connect(target, &plan, credentials, interrupt, listener).await?;
    if !client.far_end().reports || !client.far_end().takes_any_plan {
        return Err(EngineError::Flow(format!(
            "--router: {} is no goodput server; name the router as ssh://HOST",
            target.text
        )));
    }
    let measured = measure_whole(&mut client, &plan, interrupt, listener).await;
    client.leave().await;
    let far = measured?.far;
    let far = far.get().map_err(|why| {
        EngineError::Flow(format!("the router {} reports no shaper: {why}", target.text))
    })?;
    Ok(shaper(&far.before))
}

/// What a snapshot says of the shaper, and nothing else: the rest of it is of the router's own traffic.
fn shaper(snapshot: &Snapshot) -> Snapshot {
    let is_wanted = |name: &str| {
        name == "link.device" || ["qdisc", "class"].iter().any(|area| is_in(name, area))
    };
    let mut shaper = snapshot.clone();
    shaper.facts.retain(|name, _| is_wanted(name));
    shaper.missing.retain(|name, _| is_wanted(name));
    shaper
}

fn is_in(name: &str, area: &str) -> bool {
    name.strip_prefix(area).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
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

/// The same once something was measured, which is not lost if the router does not answer.
pub(super) async fn now(
    router: &mut Option<Router>,
    request: &ShapingRequest,
    client: &mut Client,
) -> Option<Result<Snapshot, Missing>> {
    let looked = before(router, request, client).await.transpose()?;
    Some(looked.map_err(|why| Missing::because(why.to_string())))
}

/// What a router counted since `before`, if one was named.
pub(super) async fn since(
    router: &mut Option<Router>,
    before: Option<Result<Snapshot, Missing>>,
    request: &ShapingRequest,
    client: &mut Client,
) -> Option<Result<RouterFacts, Missing>> {
    let looks = both(before, now(router, request, client).await)?;
    let name = router.as_ref()?.name.clone();
    Some(looks.map(|(before, after)| RouterFacts { name, before, after }))
}

/// Both looks at a router, or why one of them is missing.
pub(super) fn both(
    before: Option<Result<Snapshot, Missing>>,
    after: Option<Result<Snapshot, Missing>>,
) -> Option<Result<(Snapshot, Snapshot), Missing>> {
    let (before, after) = before.zip(after)?;
    Some(before.and_then(|before| Ok((before, after?))))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_failed_is_the_reason_why_nothing_is_known_of_the_router() {
        let failed = |why: &'static str| Some(Err(Missing::because(why)));
        let look = || Some(Ok(Snapshot::default()));
        let why = |looks: Option<Result<_, Missing>>| looks.unwrap().unwrap_err().to_string();
        assert_eq!(why(both(failed("lost"), look())), "lost");
        assert_eq!(why(both(look(), failed("lost"))), "lost");
        assert_eq!(both(look(), look()), Some(Ok(Default::default())));
        assert_eq!(both(None, None), None);
    }

    #[test]
    fn of_a_router_only_its_shaper_counts() {
        let mut whole = Snapshot::default();
        for name in ["qdisc.kind", "class.1:10.rate_bits_per_s", "link.device", "link.mtu", "cpu.n"]
        {
            whole.put(name, 1u64);
        }
        whole.lacks("qdisc", "unknown");
        whole.lacks("offload", "unknown");
        let shaper = shaper(&whole);
        let facts: Vec<_> = shaper.facts.keys().map(|name| &**name).collect();
        assert_eq!(facts, ["class.1:10.rate_bits_per_s", "link.device", "qdisc.kind"]);
        assert_eq!(shaper.missing.len(), 1);
    }
}
