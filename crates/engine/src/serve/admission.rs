//! Who may come in: bounds on the connections and measurements of one client, and of all together.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::{BitRate, Direction, Plan, Source};

/// Least memory that a flow is counted with, bytes: what a mover keeps at least, and its thread.
const FLOW_MIN_BYTES: u64 = 1 << 20;

/// How often a mover may hold a chunk: a buffer, and the file it is written to.
const COPIES: u64 = 2;

/// How much there is for everybody.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Measurements at the same time. One client gets three quarters of them at most.
    pub measurements: u32,
    /// Connections that have not proven themselves as flows; beyond it, there would be no
    /// descriptors for flows.
    pub connections: u32,
    /// Of these, the ones of one client.
    pub connections_per_client: u32,
    /// Memory for the flows of all measurements together, bytes.
    pub memory_bytes: u64,
    /// Rate of all measurements of one client together, where there is a limit.
    pub rate_per_client: Option<BitRate>,
}

/// Counts who is here.
pub struct Admission {
    bounds: Bounds,
    here: Arc<Mutex<Here>>,
}

/// A client is an IPv4 address or an IPv6 network of 64 bits, as a host has all addresses of such
/// a network for the asking (RFC 4291 section 2.5.4).
#[derive(Default)]
struct Here {
    seats: u32,
    /// Of these, the conversations whose address may be forged.
    unproven: u32,
    unproven_of: HashMap<IpAddr, u32>,
    connections: HashMap<IpAddr, u32>,
    measurements: HashMap<IpAddr, u32>,
    /// Bits per second that were promised; only where there is a limit.
    rates: HashMap<IpAddr, u64>,
    running: u32,
    memory_bytes: u64,
}

/// A connection that was let in; dropping it makes room.
pub struct Seat {
    client: IpAddr,
    proven: bool,
    here: Arc<Mutex<Here>>,
}

/// A measurement that was let in; dropping it makes room.
pub struct Place {
    client: IpAddr,
    memory_bytes: u64,
    rate: u64,
    here: Arc<Mutex<Here>>,
}

impl Admission {
    /// Nobody is here yet.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, here: Arc::default() }
    }

    /// Lets a connection of `address` in, or says why not.
    pub fn connection(&self, address: IpAddr) -> Result<Seat, String> {
        self.seat(address, true)
    }

    /// Lets a conversation over UDP in that `address` may not have begun, or says why not. All of
    /// them together take half of the measurements at most, as whoever forges addresses forges many;
    /// one client takes three quarters of that.
    pub fn unproven(&self, address: IpAddr) -> Result<Seat, String> {
        self.seat(address, false)
    }

    fn seat(&self, address: IpAddr, proven: bool) -> Result<Seat, String> {
        let client = client_of(address);
        let mut here = lock(&self.here);
        if !proven {
            self.has_unproven(&here, client)?;
        }
        if here.seats >= self.bounds.connections {
            return Err(format!("{} connections are open already", here.seats));
        }
        let count = count(&here.connections, client);
        if count >= self.bounds.connections_per_client {
            return Err(format!("{count} connections of this client are open already"));
        }
        here.connections.insert(client, count + 1);
        here.seats += 1;
        if !proven {
            here.unproven += 1;
            *here.unproven_of.entry(client).or_default() += 1;
        }
        Ok(Seat { client, proven, here: Arc::clone(&self.here) })
    }

    fn has_unproven(&self, here: &Here, client: IpAddr) -> Result<(), String> {
        let most = self.bounds.measurements.div_ceil(2);
        if here.unproven >= most {
            return Err(format!("{most} conversations over UDP are under way already"));
        }
        let its = count(&here.unproven_of, client);
        if its >= most - most / 4 {
            return Err(format!(
                "{its} conversations of this client over UDP are under way already"
            ));
        }
        Ok(())
    }

    /// Lets a measurement of `address` begin, or says why not.
    pub fn measurement(&self, address: IpAddr, plan: &Plan) -> Result<Place, String> {
        let (client, memory_bytes) = (client_of(address), memory(plan));
        let mut here = lock(&self.here);
        self.has_room(&here, client, memory_bytes)?;
        let rate = self.rate_of(plan);
        self.has_rate(&here, client, rate)?;
        here.running += 1;
        here.memory_bytes += memory_bytes;
        *here.measurements.entry(client).or_default() += 1;
        *here.rates.entry(client).or_default() += rate;
        Ok(Place { client, memory_bytes, rate, here: Arc::clone(&self.here) })
    }

    /// What a plan takes of its client's rate: its own, or all where it has none.
    fn rate_of(&self, plan: &Plan) -> u64 {
        let limit = self.bounds.rate_per_client;
        limit.map_or(0, |limit| plan.rate_bits_per_s.map_or(limit.0, |own| own.0) as u64)
    }

    fn has_rate(&self, here: &Here, client: IpAddr, rate: u64) -> Result<(), String> {
        let Some(limit) = self.bounds.rate_per_client else { return Ok(()) };
        let taken = here.rates.get(&client).copied().unwrap_or(0);
        if taken.saturating_add(rate) <= limit.0 as u64 {
            return Ok(());
        }
        Err(format!(
            "busy: other measurements of this client take {} of the {limit} that one client gets; \
             wait for them, or ask for a lower rate",
            BitRate(taken as f64)
        ))
    }

    fn has_room(&self, here: &Here, client: IpAddr, memory_bytes: u64) -> Result<(), String> {
        let Bounds { measurements: most, memory_bytes: lent, .. } = self.bounds;
        if memory_bytes > lent {
            return Err(format!(
                "these flows and their source need {memory_bytes} bytes of memory, and this server \
                 lends {lent} to all clients; use fewer flows, a smaller chunk or a smaller --size"
            ));
        }
        if here.running >= most {
            return Err(format!(
                "busy: {most} measurements are running, which is the limit; try again later"
            ));
        }
        let its = count(&here.measurements, client);
        if its >= most - most / 4 {
            return Err(format!(
                "busy: {its} measurements of this client are running, which is the limit for one"
            ));
        }
        if here.memory_bytes + memory_bytes > lent {
            return Err("busy: the flows of other measurements take all the memory that this \
                        server lends; try again later, or with fewer flows"
                .into());
        }
        Ok(())
    }
}

/// Bytes that the flows of a plan are counted with.
fn memory(plan: &Plan) -> u64 {
    let flow = plan.chunk_bytes.0.max(FLOW_MIN_BYTES).saturating_mul(COPIES);
    let source = match plan.storage.source {
        Some(Source::Memory(bytes)) if plan.direction != Direction::Send => bytes.0,
        _ => 0,
    };
    flow.saturating_mul(plan.flow_plans().len() as u64).saturating_add(source)
}

fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
    }
}

fn lock(here: &Mutex<Here>) -> MutexGuard<'_, Here> {
    here.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count(counts: &HashMap<IpAddr, u32>, client: IpAddr) -> u32 {
    counts.get(&client).copied().unwrap_or(0)
}

fn leave(counts: &mut HashMap<IpAddr, u32>, client: IpAddr) {
    match count(counts, client) {
        0 | 1 => drop(counts.remove(&client)),
        more => drop(counts.insert(client, more - 1)),
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut here = lock(&self.here);
        here.seats -= 1;
        if !self.proven {
            here.unproven -= 1;
            leave(&mut here.unproven_of, self.client);
        }
        leave(&mut here.connections, self.client);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut here = lock(&self.here);
        here.running -= 1;
        here.memory_bytes -= self.memory_bytes;
        leave(&mut here.measurements, self.client);
        let left = here.rates.remove(&self.client).unwrap_or(0) - self.rate;
        if left > 0 {
            here.rates.insert(self.client, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Bytes;

    fn admission(measurements: u32) -> Admission {
        Admission::new(Bounds {
            measurements,
            connections: 3,
            connections_per_client: 2,
            memory_bytes: 64 * FLOW_MIN_BYTES,
            rate_per_client: Some(BitRate(1e9)),
        })
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_cannot_take_all_the_room() {
        let admission = admission(1);
        let (a, b) = (address("192.0.2.1"), address("192.0.2.2"));
        let first = admission.connection(a).unwrap();
        let _second = admission.connection(a).unwrap();
        assert!(admission.connection(a).is_err());
        assert!(admission.connection(b).is_ok());
        let _third = admission.connection(b).unwrap();
        assert!(admission.connection(b).is_err(), "all seats are taken");
        drop(first);
        assert!(admission.connection(a).is_ok());
    }

    #[test]
    fn forged_addresses_leave_half_of_the_measurements_to_others() {
        let admission = admission(4);
        let forged = |last| admission.unproven([192, 0, 2, last].into());
        let first = forged(1).unwrap();
        let _second = forged(2).unwrap();
        assert!(forged(3).is_err());
        assert!(admission.connection(address("192.0.2.3")).is_ok());
        drop(first);
        assert!(forged(3).is_ok());
    }

    #[test]
    fn one_address_leaves_a_quarter_of_the_conversations_over_udp_to_others() {
        let bounds = Bounds { connections: 9, connections_per_client: 9, ..admission(8).bounds };
        let admission = Admission::new(bounds);
        let from = |last| admission.unproven([192, 0, 2, last].into());
        let mut its: Vec<_> = (0..3).map(|_| from(1).unwrap()).collect();
        assert!(from(1).is_err());
        let _others = from(2).unwrap();
        assert!(from(3).is_err(), "half of eight measurements");
        its.pop();
        assert!(from(1).is_ok());
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_are_one_client() {
        let admission = admission(1);
        let _one = admission.connection(address("2001:db8::1")).unwrap();
        let _two = admission.connection(address("2001:db8::ffff:2")).unwrap();
        assert!(admission.connection(address("2001:db8::3")).is_err());
        assert!(admission.connection(address("2001:db8:0:1::3")).is_ok());
    }

    #[test]
    fn measurements_are_bounded_and_make_room_when_done() {
        let (admission, plan) = (admission(1), Plan::standard());
        let running = admission.measurement(address("192.0.2.1"), &plan).unwrap();
        let refused = admission.measurement(address("192.0.2.1"), &plan).err().unwrap();
        assert!(refused.starts_with("busy: 1 "), "{refused}");
        drop(running);
        assert!(admission.measurement(address("192.0.2.1"), &plan).is_ok());
    }

    #[test]
    fn one_client_leaves_a_quarter_of_the_measurements_to_others() {
        let plan = Plan { rate_bits_per_s: Some(BitRate(1e6)), ..Plan::standard() };
        let admission = admission(4);
        let busy = || admission.measurement(address("192.0.2.1"), &plan);
        let _its: Vec<_> = (0..3).map(|_| busy().unwrap()).collect();
        assert!(busy().is_err());
        assert!(admission.measurement(address("192.0.2.2"), &plan).is_ok());
    }

    #[test]
    fn the_measurements_of_one_client_share_its_rate() {
        let admission = admission(9);
        let (client, unpaced) = (address("192.0.2.1"), Plan::standard());
        let paced = Plan { rate_bits_per_s: Some(BitRate(4e8)), ..Plan::standard() };
        let first = admission.measurement(client, &paced).unwrap();
        let second = admission.measurement(client, &paced).unwrap();
        let why = admission.measurement(client, &paced).err().unwrap();
        assert!(why.contains("800 Mbit/s of the 1 Gbit/s"), "{why}");
        assert!(admission.measurement(client, &unpaced).is_err());
        assert!(admission.measurement(address("192.0.2.2"), &unpaced).is_ok());
        drop((first, second));
        assert!(admission.measurement(client, &unpaced).is_ok());
    }

    #[test]
    fn memory_is_lent_once() {
        let admission = admission(9);
        let plan = Plan { flows: 20, ..Plan::standard() };
        let first = admission.measurement(address("192.0.2.1"), &plan).unwrap();
        assert!(admission.measurement(address("192.0.2.2"), &plan).is_err());
        drop(first);
        assert!(admission.measurement(address("192.0.2.2"), &plan).is_ok());
        let huge = Plan { chunk_bytes: Bytes(u64::MAX), ..Plan::standard() };
        let why = admission.measurement(address("192.0.2.2"), &huge).err().unwrap();
        assert!(why.contains("smaller chunk"), "{why}");
    }
}
