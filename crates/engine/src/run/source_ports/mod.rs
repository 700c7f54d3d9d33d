//! Source ports that put the flows of a plan on different receive queues (`--source-port spread`). They are the same
//! every time, because they follow from the hashes of both cards alone.

mod toeplitz;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use goodput_kernel::Context;
use goodput_model::{Connection, EndName, FlowPlan, Known, Plan, ReceiveHash};
use goodput_wire::ticket::FlowTicket;

use crate::threads::blocking;

/// The first port to try if the plan names none: below the kernel's ephemeral ports (net.ipv4.ip_local_port_range), so
/// that most are free.
const FIRST_PORT: u16 = 20_000;

/// How the card of an end spreads received traffic, or why that is unknown.
pub type Hash = Known<Box<ReceiveHash>>;

/// How this end's card does this, on the path of `context`.
pub async fn own(plan: &Plan, context: &Context) -> Hash {
    let (context, transport) = (context.clone(), plan.transport);
    let read = blocking(move || goodput_kernel::receive_hash(&context, transport)).await;
    match read {
        Ok(Ok(hash)) => Known::Value(Box::new(hash)),
        Ok(Err(why)) => Known::Missing(why),
        Err(why) => Known::missing(why.to_string()),
    }
}

/// Local ports that were chosen, in the order of the connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The ports.
    pub ports: Vec<u16>,
    /// Why the ports are not what was asked for.
    pub doubt: Option<String>,
}

/// The hashes of both ends.
#[derive(Debug, Clone)]
pub struct Hashes {
    /// This end's.
    pub near: Hash,
    /// The far end's.
    pub far: Hash,
}

impl Hashes {
    /// The hash of the card that receives a flow's payload.
    fn of(&self, flow: FlowPlan) -> &Hash {
        if flow.sender == EndName::Near { &self.far } else { &self.near }
    }

    /// The queue on which the payload of a flow is expected; `None` if that is unknown.
    pub fn queue(&self, flow: FlowPlan, local: SocketAddr, remote: SocketAddr) -> Option<u16> {
        let hash = self.of(flow).value()?;
        let (from, to) =
            if flow.sender == EndName::Near { (local, remote) } else { (remote, local) };
        let place = toeplitz::of_packet(&hash.key, from, to)? as usize & (hash.table.len() - 1);
        hash.table.get(place).copied()
    }

    /// Notes the expected queue of each connection.
    pub fn note(&self, tickets: &[FlowPlan], connections: &mut [Connection]) {
        for connection in connections {
            let flow = tickets.iter().find(|flow| flow.id == connection.flow);
            let queue =
                flow.and_then(|flow| self.queue(*flow, connection.local, connection.remote));
            connection.expected_queue = queue;
        }
    }

    /// Chooses a local port for each flow of `plan` with its own connection, so that the flows that one end receives
    /// use its queues in turn. If that is impossible, returns consecutive ports and the reason. `remote` is where the
    /// first flow goes, and how much higher the port of each further flow is.
    pub fn ports(
        &self,
        plan: &Plan,
        tickets: &[FlowTicket],
        local: Option<IpAddr>,
        remote: (Option<&SocketAddr>, u16),
    ) -> Chosen {
        let own: Vec<_> = tickets.iter().filter(|ticket| ticket.shares.is_none()).collect();
        let first = plan.socket.source_port.unwrap_or(FIRST_PORT);
        let chosen = match (local, remote) {
            (Some(local), (Some(remote), apart)) => self.choose(&own, first, local, *remote, apart),
            _ => Err("the flows' addresses are unknown before they are open".into()),
        };
        chosen.map_or_else(
            |why| Chosen {
                ports: (first..=u16::MAX).take(own.len()).collect(),
                doubt: Some(format!(
                    "source ports are consecutive instead of spread over receive queues: {why}"
                )),
            },
            |ports| Chosen { ports, doubt: None },
        )
    }

    fn choose(
        &self,
        own: &[&FlowTicket],
        first: u16,
        local: IpAddr,
        remote: SocketAddr,
        apart: u16,
    ) -> Result<Vec<u16>, String> {
        let (mut next, mut turns) = (first, [0, 0]);
        let mut ports = Vec::with_capacity(own.len());
        for (place, ticket) in (0u16..).zip(own) {
            let to = remote.port().saturating_add(apart.saturating_mul(place));
            let remote = SocketAddr::new(remote.ip(), to);
            let turn = &mut turns[usize::from(ticket.flow.sender == EndName::Near)];
            let wanted = self.wanted(ticket.flow, *turn)?;
            let falls = |port: &u16| {
                self.queue(ticket.flow, SocketAddr::new(local, *port), remote) == Some(wanted)
            };
            let port = (next..u16::MAX).find(falls).ok_or_else(|| {
                format!("no port from {next} upwards maps to queue {wanted} of the receiving card")
            })?;
            ports.push(port);
            *turn += 1;
            next = port + 1;
        }
        Ok(ports)
    }

    /// The queue whose turn it is at the receiver of a flow, after `turn` flows there.
    fn wanted(&self, flow: FlowPlan, turn: usize) -> Result<u16, String> {
        let end = if flow.sender == EndName::Near { EndName::Far } else { EndName::Near };
        let hash = match self.of(flow) {
            Known::Value(hash) => hash,
            Known::Missing(why) => return Err(format!("{end} end: {why}")),
        };
        let queues: Vec<u16> =
            hash.table.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        queues.get(turn % queues.len().max(1)).copied().ok_or_else(|| "it has no queue".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_framing::Framing;
    use goodput_model::SocketOptions;
    use goodput_wire::ticket::Proof;

    fn hash(queues: u16) -> Hash {
        Known::Value(Box::new(ReceiveHash {
            device: "eth0".into(),
            key: toeplitz::tests::KEY.to_vec(),
            table: (0..128).map(|place| place % queues).collect(),
        }))
    }

    fn tickets(senders: &[EndName]) -> Vec<FlowTicket> {
        let ticket = |(id, sender): (usize, &EndName)| FlowTicket {
            flow: FlowPlan { id: id as u16, sender: *sender },
            proof: Proof::default(),
            framing: Framing::default(),
            shares: None,
        };
        senders.iter().enumerate().map(ticket).collect()
    }

    const FAR: ([u8; 4], u16) = ([198, 51, 100, 2], 5301);

    fn choose(hashes: &Hashes, tickets: &[FlowTicket], first: Option<u16>) -> Chosen {
        let socket = SocketOptions { source_port: first, ..SocketOptions::default() };
        let plan = Plan { socket, ..Plan::standard() };
        let local = Some([192, 0, 2, 1].into());
        hashes.ports(&plan, tickets, local, (Some(&FAR.into()), 0))
    }

    fn queues(hashes: &Hashes, tickets: &[FlowTicket], ports: &[u16]) -> Vec<u16> {
        let queue = |(ticket, port): (&FlowTicket, &u16)| {
            hashes.queue(ticket.flow, ([192, 0, 2, 1], *port).into(), FAR.into()).unwrap()
        };
        tickets.iter().zip(ports).map(queue).collect()
    }

    #[test]
    fn flows_take_the_queues_in_turn_and_the_same_ports_every_time() {
        let hashes = Hashes { near: Known::missing("no card"), far: hash(4) };
        let tickets = tickets(&[EndName::Near; 6]);
        let chosen = choose(&hashes, &tickets, None);
        assert_eq!(queues(&hashes, &tickets, &chosen.ports), [0, 1, 2, 3, 0, 1]);
        assert!(
            chosen.ports.is_sorted() && chosen.ports[0] >= FIRST_PORT && chosen.doubt.is_none()
        );
        assert_eq!(choose(&hashes, &tickets, None), chosen);
        assert!(choose(&hashes, &tickets, Some(30_000)).ports[0] >= 30_000);
    }

    #[test]
    fn each_direction_takes_the_queues_of_its_receiver() {
        let hashes = Hashes { near: hash(2), far: hash(8) };
        let tickets = tickets(&[EndName::Near, EndName::Far, EndName::Near, EndName::Far]);
        let ports = choose(&hashes, &tickets, None).ports;
        assert_eq!(queues(&hashes, &tickets, &ports), [0, 0, 1, 1]);
    }

    #[test]
    fn what_is_not_known_is_the_reason_for_ports_one_after_the_other() {
        let hashes = Hashes { near: hash(2), far: Known::missing("lo has no queues") };
        let chosen = choose(&hashes, &tickets(&[EndName::Near; 2]), None);
        assert_eq!(chosen.ports, [FIRST_PORT, FIRST_PORT + 1]);
        assert!(chosen.doubt.unwrap().ends_with("far end: lo has no queues"));
        let hashes = Hashes { near: hash(2), far: hash(8) };
        let chosen = choose(&hashes, &tickets(&[EndName::Near; 9]), Some(65_520));
        assert!(chosen.doubt.unwrap().contains("maps to queue"));
    }
}
