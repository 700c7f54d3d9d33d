//! Who may come in: what a connection, a conversation over UDP and a measurement are charged with, and why they are
//! refused. Whatever takes this host's resources for a client has a [`Place`], and only [`Admission::admit`] makes one.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use goodput_model::{BitRate, Plan, RateLimit, Role};
use goodput_mover::SharedRate;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::back_off::BackOff;
use super::cost;
use super::gate::Permit;
use super::host::Host;
use super::keys::{KeyBook, KeyPlace};
use super::quotas::Limit;
use super::rates::{Rates, Share};
use super::usage::{Amounts, Charge, Resource, Usage};
use crate::run::rate_limits::RateLimits;
use crate::serve::shown_memory::kept_bytes;

/// What happens to a measurement while another one runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusive {
    /// Refuse: the server is busy.
    Busy,
    /// Wait for its turn, as long as its own protocol allows. If payload comes unasked, report that the server is busy.
    Queue,
}

/// Descriptors that are kept for the server's own files, and for files that are read now and then.
const OWN_DESCRIPTORS: u64 = 64;
/// Share of the descriptors and threads that clients get, percent: other programs of this user need some, and so does
/// this one.
const LENT_PERCENT: u64 = 75;
/// What a conversation over UDP may hold before anything is known about it, bytes: the receive buffer of its socket,
/// twice the default of a host (`rmem_default`, socket(7)), for what was taken out of the shared socket.
const CONVERSATION_BYTES: u64 = 512 << 10;

/// What the operator allows clients.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Simultaneous measurements.
    pub measurements: u32,
    /// Simultaneous connections of one client.
    pub connections_per_client: u32,
    /// Most that one client gets of every resource, percent.
    pub client_percent: u8,
    /// Rate of one client, if there is a limit.
    pub client_rate: Option<BitRate>,
    /// Rate of all, if there is a limit.
    pub total_rate: Option<BitRate>,
}

/// What a client wants that takes this host's resources.
#[derive(Debug, Clone, Copy)]
pub enum Wants<'a> {
    /// Flows of its own.
    Flows(&'a Plan),
    /// A measurement with a third party on its behalf, because this end sees it.
    ThirdParty(&'a Plan),
    /// A conversation that is a measurement in itself, without flows.
    Conversation,
}

/// Admits clients, or says why not.
pub struct Admission {
    usage: Usage,
    rates: Rates,
    client_rate: Option<BitRate>,
    host: Host,
    /// Whether measurements are shown to a watcher, which takes memory.
    shows: bool,
    waiting: Arc<Mutex<BackOff>>,
    exclusive: Option<Exclusive>,
    /// The right to make the only measurement.
    only_one: Arc<Semaphore>,
    keys: KeyBook,
}

/// An admitted connection; dropping it frees its place.
pub type ConnectionPermit = Charge;

/// What was admitted; dropping it frees its place.
pub struct Place {
    charge: Charge,
    share: Share,
    client: IpAddr,
    /// Highest rate of a client whose key sets none.
    client_rate: Option<BitRate>,
    /// When this end began to wait for the client's flows.
    expecting: Option<Instant>,
    waiting: Arc<Mutex<BackOff>>,
    _alone: Option<OwnedSemaphorePermit>,
    /// Its place among the measurements of its client's key.
    _of_key: Option<KeyPlace>,
}

impl Admission {
    /// No client is here yet.
    pub fn new(allowed: &ServerLimits, exclusive: Option<Exclusive>, host: Host) -> Self {
        Self {
            usage: Usage::new(&limits(allowed, &host)),
            rates: Rates::new(rate_limit(allowed), allowed.limit_of_a_client()),
            client_rate: allowed.rate_of_a_client(),
            host,
            shows: false,
            waiting: Arc::default(),
            exclusive,
            only_one: Arc::new(Semaphore::new(1)),
            keys: KeyBook::default(),
        }
    }

    /// The same for a server that may have a watcher: clients are also charged with what is kept of their measurements.
    pub fn showing(self, shows: bool) -> Self {
        Self { shows, ..self }
    }

    /// Admits a connection from `address`.
    pub fn connection(&self, address: IpAddr) -> Result<ConnectionPermit, String> {
        let takes =
            Amounts::default().with(Resource::Connections, 1).with(Resource::Descriptors, 1);
        self.usage.charge(address, true, takes).map_err(|why| why.to_string())
    }

    /// Admits a conversation over UDP whose `address` may be forged.
    pub fn unproven(&self, address: IpAddr) -> Result<ConnectionPermit, String> {
        let takes = Amounts::default()
            .with(Resource::Connections, 1)
            .with(Resource::Conversations, 1)
            .with(Resource::Descriptors, 2)
            .with(Resource::Memory, CONVERSATION_BYTES);
        self.usage.charge(address, false, takes).map_err(|why| why.to_string())
    }

    /// Lets a client do what it wants and has a permit for. If only one client measures at a time and it `can_wait`, it
    /// waits for its turn; meanwhile it holds nothing but its connection.
    pub async fn admit(
        &self,
        permit: Permit,
        client: IpAddr,
        wants: Wants<'_>,
        can_wait: bool,
    ) -> Result<Place, String> {
        let alone = self.alone(can_wait).await?;
        self.place(permit, client, wants, alone)
    }

    fn place(
        &self,
        permit: Permit,
        client: IpAddr,
        wants: Wants<'_>,
        alone: Option<OwnedSemaphorePermit>,
    ) -> Result<Place, String> {
        let takes = match wants {
            Wants::Flows(plan) | Wants::ThirdParty(plan) => {
                let takes = cost::of(plan, &self.host.buffers)?;
                let shown = if self.shows { kept_bytes(plan) } else { 0 };
                takes.with(Resource::Memory, takes.of(Resource::Memory).saturating_add(shown))
            }
            Wants::Conversation => cost::conversation(),
        };
        let awaits_flows = matches!(wants, Wants::Flows(_));
        if awaits_flows {
            lock(&self.waiting).may_propose(client, Instant::now())?;
        }
        let of_key = permit.key().map(|key| self.keys.take(key)).transpose()?;
        let charged = self.usage.charge(client, !awaits_flows, takes);
        let charge = charged.map_err(|why| why.to_string())?;
        let waiting = Arc::clone(&self.waiting);
        let share = self.rates.of(client, permit.key());
        Ok(Place {
            charge,
            share,
            client,
            client_rate: self.client_rate,
            expecting: None,
            waiting,
            _alone: alone,
            _of_key: of_key,
        })
    }

    /// Waits for the right to be the only measurement, if that is configured.
    async fn alone(&self, can_wait: bool) -> Result<Option<OwnedSemaphorePermit>, String> {
        let only_one = Arc::clone(&self.only_one);
        let right = match self.exclusive {
            None => return Ok(None),
            // The semaphore is never closed, so waiting for it ends only with the right.
            Some(Exclusive::Queue) if can_wait => only_one.acquire_owned().await.ok(),
            Some(_) => only_one.try_acquire_owned().ok(),
        };
        let busy = "busy: another measurement is running, and this server runs one at a time";
        right.map(Some).ok_or_else(|| busy.into())
    }
}

/// The limits of every resource.
fn limits(allowed: &ServerLimits, host: &Host) -> [(Resource, Limit); 6] {
    let percent = u64::from(allowed.client_percent);
    let shared = |all| Limit::shared(all, percent);
    let usable = |all: u64| all / 100 * LENT_PERCENT;
    let descriptors = usable(host.descriptors.saturating_sub(OWN_DESCRIPTORS));
    let connections =
        Limit { client: allowed.connections_per_client.into(), ..shared(descriptors) };
    [
        (Resource::Connections, connections),
        (Resource::Conversations, shared(allowed.measurements.into())),
        (Resource::Measurements, shared(allowed.measurements.into())),
        (Resource::Descriptors, shared(descriptors)),
        (Resource::Threads, shared(usable(host.threads))),
        (Resource::Memory, shared(host.lent_bytes())),
    ]
}

/// Bits per second, each direction.
fn rate_limit(allowed: &ServerLimits) -> Limit {
    let whole = |rate: BitRate| rate.0 as u64;
    let all = allowed.total_rate.map_or(u64::MAX, whole);
    let shared = match allowed.total_rate {
        Some(_) => Limit::shared(all, allowed.client_percent.into()).client,
        None => u64::MAX,
    };
    let client = allowed.client_rate.map_or(shared, |own| whole(own).min(all));
    Limit { all, client, unproven_percent: 100 }
}

impl ServerLimits {
    /// Where the rate of one client comes from.
    fn limit_of_a_client(&self) -> RateLimit {
        match (self.client_rate, self.total_rate) {
            (Some(own), Some(total)) if own > total => RateLimit::Total,
            (Some(_), _) => RateLimit::Client,
            (None, _) => RateLimit::ClientShare,
        }
    }

    /// Highest rate of one client, if there is a limit.
    pub fn rate_of_a_client(&self) -> Option<BitRate> {
        let limit = rate_limit(self).client;
        (limit < u64::MAX).then_some(BitRate(limit as f64))
    }
}

impl Place {
    /// The client may send its flows now, and keeps others waiting from now on.
    pub fn expecting(&mut self) {
        self.expecting = Some(Instant::now());
    }

    /// Every flow has come, each from an address that is its client's own.
    pub fn fulfilled(&mut self) {
        self.charge.prove();
        self.begun();
    }

    /// Every flow has come, possibly from forged addresses.
    pub fn begun(&mut self) {
        if self.expecting.take().is_some() {
            lock(&self.waiting).fulfilled(self.client);
        }
    }

    /// The measurement was given up, or is over.
    fn end(&mut self, now: Instant) {
        if let Some(since) = self.expecting.take() {
            let held = now.saturating_duration_since(since);
            lock(&self.waiting).unfulfilled(self.client, held, now);
        }
    }

    /// The rates that its flows keep to.
    pub fn rate_limits(&self) -> RateLimits {
        let [sent, received] = [Role::Sender, Role::Receiver].map(|role| self.share.of(role));
        RateLimits { rate: self.share.key_rate().or(self.client_rate), sent, received }
    }

    /// The rates for flows in which this end has `role`, together with all other flows that share them.
    pub fn rates(&self, role: Role) -> Vec<Arc<SharedRate>> {
        self.share.of(role).into_iter().map(|shared| shared.rate).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end(Instant::now());
    }
}

fn lock(waiting: &Mutex<BackOff>) -> MutexGuard<'_, BackOff> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub mod tests;
