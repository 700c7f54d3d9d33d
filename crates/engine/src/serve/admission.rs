//! Who may come in: what a connection, a conversation over UDP and a measurement are charged with, and what
//! they are refused for.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use goodput_model::{BitRate, EndName, Plan};

use super::back_off::BackOff;
use super::cost;
use super::host::Host;
use super::ledger::{Amounts, Ledger, Limit, Resource, Ticket};

/// Descriptors that are kept for the server's own files, and for those that are read now and then.
const OWN_DESCRIPTORS: u64 = 64;
/// Share of the descriptors and threads that clients get, percent: other programs of this user, and this
/// one, need some.
const LENT_PERCENT: u64 = 75;
/// What a conversation over UDP may hold before anything of it is known, bytes: the receive buffer of its
/// socket, twice what a host gives unless told otherwise (`rmem_default`, socket(7)), for what was taken
/// out of the shared socket.
const CONVERSATION_BYTES: u64 = 512 << 10;
/// How much more than the rate that a client names is charged, and let through by this end's receivers, in
/// percent: what a path has held up comes faster afterwards.
const HEADROOM_PERCENT: f64 = 25.0;

/// What the operator lends.
#[derive(Debug, Clone, Copy)]
pub struct Lent {
    /// Measurements at the same time.
    pub measurements: u32,
    /// Connections of one client at the same time.
    pub connections_per_client: u32,
    /// What one client gets of everything, percent at most.
    pub client_percent: u8,
    /// Rate of one client, where there is a limit.
    pub client_rate: Option<BitRate>,
    /// Rate of all, where there is a limit.
    pub total_rate: Option<BitRate>,
}

/// Lets in, or says why not.
pub struct Admission {
    ledger: Ledger,
    host: Host,
    waiting: Arc<Mutex<BackOff>>,
}

/// A connection that was let in; dropping it makes room.
pub type Seat = Ticket;

/// A measurement that was let in; dropping it makes room.
pub struct Place {
    ticket: Ticket,
    client: IpAddr,
    since: Instant,
    fulfilled: bool,
    waiting: Arc<Mutex<BackOff>>,
}

impl Admission {
    /// Nobody is here yet.
    pub fn new(lent: &Lent, host: Host) -> Self {
        Self { ledger: Ledger::new(&limits(lent, &host)), host, waiting: Arc::default() }
    }

    /// Lets a connection of `address` in.
    pub fn connection(&self, address: IpAddr) -> Result<Seat, String> {
        let takes =
            Amounts::default().with(Resource::Connections, 1).with(Resource::Descriptors, 1);
        self.ledger.charge(address, true, takes).map_err(|why| why.to_string())
    }

    /// Lets a conversation over UDP in that `address` may not have begun.
    pub fn unproven(&self, address: IpAddr) -> Result<Seat, String> {
        let takes = Amounts::default()
            .with(Resource::Connections, 1)
            .with(Resource::Conversations, 1)
            .with(Resource::Descriptors, 2)
            .with(Resource::Memory, CONVERSATION_BYTES);
        self.ledger.charge(address, false, takes).map_err(|why| why.to_string())
    }

    /// Lets a measurement of `address` begin, of which no flow has come yet.
    pub fn measurement(&self, address: IpAddr, plan: &Plan) -> Result<Place, String> {
        self.measurement_at(Instant::now(), address, plan)
    }

    fn measurement_at(&self, now: Instant, address: IpAddr, plan: &Plan) -> Result<Place, String> {
        lock(&self.waiting).may_propose(address, now)?;
        let takes = cost::of(plan, &self.host.buffers)?.with(Resource::Rate, self.rate_of(plan));
        let ticket = self.ledger.charge(address, false, takes).map_err(|why| why.to_string())?;
        let waiting = Arc::clone(&self.waiting);
        Ok(Place { ticket, client: address, since: now, fulfilled: false, waiting })
    }

    /// What a plan takes of its client's rate: its own, or all that one client gets where it has none.
    fn rate_of(&self, plan: &Plan) -> u64 {
        let limit = self.ledger.limit(Resource::Rate);
        if limit.client == u64::MAX {
            return 0;
        }
        let receives = plan.direction.senders().contains(&EndName::Near);
        let headroom = if receives { HEADROOM_PERCENT } else { 0.0 };
        let own = |rate: BitRate| (rate.0 * (1.0 + headroom / 100.0)).ceil() as u64;
        plan.rate_bits_per_s.map_or(limit.client, |rate| own(rate).min(limit.client))
    }
}

/// The limits of everything.
fn limits(lent: &Lent, host: &Host) -> [(Resource, Limit); 7] {
    let percent = u64::from(lent.client_percent);
    let shared = |all| Limit::shared(all, percent);
    let usable = |all: u64| all / 100 * LENT_PERCENT;
    let descriptors = usable(host.descriptors.saturating_sub(OWN_DESCRIPTORS));
    let connections = Limit { client: lent.connections_per_client.into(), ..shared(descriptors) };
    [
        (Resource::Connections, connections),
        (Resource::Conversations, shared(lent.measurements.into())),
        (Resource::Measurements, shared(lent.measurements.into())),
        (Resource::Descriptors, shared(descriptors)),
        (Resource::Threads, shared(usable(host.threads))),
        (Resource::Memory, shared(host.lent_bytes())),
        (Resource::Rate, rate_limit(lent)),
    ]
}

/// Of a rate, those who have proven nothing get as much as others: nothing moves before their flows come.
fn rate_limit(lent: &Lent) -> Limit {
    let whole = |rate: BitRate| rate.0 as u64;
    let all = lent.total_rate.map_or(u64::MAX, whole);
    let shared = match lent.total_rate {
        Some(_) => Limit::shared(all, lent.client_percent.into()).client,
        None => u64::MAX,
    };
    let client = lent.client_rate.map_or(shared, |own| whole(own).min(all));
    Limit { all, client, unproven_percent: 100 }
}

impl Lent {
    /// Highest rate of one client, where there is a limit.
    pub fn rate_of_a_client(&self) -> Option<BitRate> {
        let limit = rate_limit(self).client;
        (limit < u64::MAX).then_some(BitRate(limit as f64))
    }
}

impl Place {
    /// Every flow has come, each from an address that is its client's own.
    pub fn fulfilled(&mut self) {
        self.ticket.prove();
        self.begun();
    }

    /// Every flow has come, perhaps from addresses that are forged.
    pub fn begun(&mut self) {
        if !self.fulfilled {
            self.fulfilled = true;
            lock(&self.waiting).fulfilled(self.client);
        }
    }

    /// It is given up, or over.
    fn end(&mut self, now: Instant) {
        if !self.fulfilled {
            self.fulfilled = true;
            let held = now.saturating_duration_since(self.since);
            lock(&self.waiting).unfulfilled(self.client, held, now);
        }
    }

    /// The rate that this end sends or receives for it at most, each direction; whatever its client
    /// claims, no more was charged.
    pub fn rate(&self) -> Option<BitRate> {
        let rate = self.ticket.amounts().of(Resource::Rate);
        (rate > 0).then_some(BitRate(rate as f64))
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
mod tests;
