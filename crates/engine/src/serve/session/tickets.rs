//! Which data connection belongs to which session: tickets, each good for the flows that wait for it.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_framing::Framing;
use goodput_model::{FlowPlan, SocketOptions, Transport};
use goodput_mover::EarlyPayload;
use goodput_wire::session::Protocol;
use goodput_wire::ticket::{FlowTicket, Proof};
use tokio::sync::mpsc;

use crate::run::traffic::Connected;

/// How a data connection is identified.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sign {
    /// The connection shows a secret that nobody can guess. Its address does not matter: a client
    /// behind a pool of translated addresses may come from several.
    Secret(Proof),
    /// The connection shows this proof, which the client chose, and comes from this address.
    Shown(Proof, IpAddr),
    /// The connection comes from this address to this port.
    Reserved(u16, Transport, IpAddr),
    /// The first datagram opens a flow of the protocol with this id, and comes from this address.
    Opens(&'static str, IpAddr),
}

impl Sign {
    /// The sign of a TCP connection of `protocol` from `from` that shows `proof`.
    pub fn of_proof(protocol: &Protocol, proof: &Proof, from: IpAddr) -> Self {
        if makes_cookies(protocol) {
            Self::Secret(proof.clone())
        } else {
            Self::Shown(proof.clone(), from)
        }
    }

    /// Whether two sessions of one client may await this sign at the same time and be confused.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Reserved(..) | Self::Opens(..))
    }
}

/// Whether this server, not the client, makes the proofs of a protocol.
pub fn makes_cookies(protocol: &Protocol) -> bool {
    protocol.far_end.makes_cookies
}

/// A flow that arrived, or why it can't.
pub type Arrival = Result<Connected, String>;

/// All signs that are awaited now.
#[derive(Default)]
pub struct Tickets(Arc<Mutex<Open>>);

/// Flows with the same sign are taken in the order in which they are awaited.
#[derive(Default)]
struct Open {
    awaited: HashMap<Sign, VecDeque<Ticket>>,
    /// Number of the next measurement.
    next: u64,
}

/// What a sign stands for.
pub struct Ticket {
    /// The flow.
    pub flow: FlowPlan,
    /// How its payload looks on the wire.
    pub framing: Framing,
    /// Options for its socket.
    pub options: SocketOptions,
    /// The session that awaits it.
    pub to: mpsc::UnboundedSender<Arrival>,
    measurement: u64,
}

/// The signs of one measurement. Dropping it invalidates the unused ones.
pub struct Expected {
    open: Arc<Mutex<Open>>,
    measurement: u64,
    signs: Vec<Sign>,
}

impl Tickets {
    /// Awaits the flows of one measurement, each by its sign; they arrive at `to`.
    pub fn expect(
        &self,
        awaited: Vec<(Sign, &FlowTicket)>,
        options: &SocketOptions,
        to: &mpsc::UnboundedSender<Arrival>,
    ) -> Expected {
        let mut open = lock(&self.0);
        let measurement = open.next;
        open.next += 1;
        let signs = awaited.iter().map(|(sign, _)| sign.clone()).collect();
        for (sign, ticket) in awaited {
            let ticket = Ticket {
                flow: ticket.flow,
                framing: ticket.framing.clone(),
                options: options.clone(),
                to: to.clone(),
                measurement,
            };
            open.awaited.entry(sign).or_default().push_back(ticket);
        }
        Expected { open: Arc::clone(&self.0), measurement, signs }
    }

    /// No flow can arrive: gives the reason to every session that awaits one.
    pub fn fail(&self, why: &str) {
        for ticket in lock(&self.0).awaited.values().flatten() {
            // A session that is gone awaits nothing.
            let _ = ticket.to.send(Err(why.into()));
        }
    }

    /// Takes the next ticket of `sign`.
    pub fn redeem(&self, sign: &Sign) -> Option<Ticket> {
        let mut open = lock(&self.0);
        let awaited = open.awaited.get_mut(sign)?;
        let ticket = awaited.pop_front();
        if awaited.is_empty() {
            open.awaited.remove(sign);
        }
        ticket
    }
}

impl Ticket {
    /// The flow on the socket on which it arrived, with its early payload.
    pub fn connected(&self, socket: OwnedFd, early: EarlyPayload) -> Connected {
        Connected {
            flow: self.flow,
            socket,
            framing: self.framing.clone(),
            early,
            bodies: None,
            file: None,
        }
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        for sign in &self.signs {
            if let Some(awaited) = open.awaited.get_mut(sign) {
                awaited.retain(|ticket| ticket.measurement != self.measurement);
                if awaited.is_empty() {
                    open.awaited.remove(sign);
                }
            }
        }
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::EndName;

    /// Awaits flows 0, 1, … by these signs.
    fn expect(tickets: &Tickets, first: u16, signs: &[Sign]) -> Expected {
        let flows: Vec<_> = (first..).take(signs.len()).map(flow).collect();
        let (to, _) = mpsc::unbounded_channel();
        let awaited = signs.iter().cloned().zip(&flows).collect();
        tickets.expect(awaited, &SocketOptions::default(), &to)
    }

    fn flow(id: u16) -> FlowTicket {
        FlowTicket {
            flow: FlowPlan { id, sender: EndName::Near },
            proof: Proof::default(),
            framing: goodput_framing::goodput(),
            shares: None,
        }
    }

    fn secret(byte: u8) -> Sign {
        Sign::Secret(Proof(vec![byte; 24]))
    }

    fn next(tickets: &Tickets, sign: &Sign) -> Option<u16> {
        tickets.redeem(sign).map(|ticket| ticket.flow.id)
    }

    #[test]
    fn a_sign_is_good_once_and_only_while_awaited() {
        let tickets = Tickets::default();
        let expected = expect(&tickets, 0, &[secret(0), secret(1)]);
        assert_eq!(next(&tickets, &secret(0)), Some(0));
        assert_eq!(next(&tickets, &secret(0)), None, "used twice");
        assert_eq!(next(&tickets, &secret(9)), None, "never given out");
        drop(expected);
        assert_eq!(next(&tickets, &secret(1)), None, "the measurement is gone");
    }

    #[test]
    fn who_awaits_a_flow_hears_why_none_can_come() {
        let tickets = Tickets::default();
        let (to, mut arrivals) = mpsc::unbounded_channel();
        let flow = flow(0);
        let expected = tickets.expect(vec![(secret(0), &flow)], &SocketOptions::default(), &to);
        tickets.fail("no descriptor is left");
        assert!(matches!(arrivals.try_recv(), Ok(Err(why)) if why == "no descriptor is left"));
        drop(expected);
        tickets.fail("again");
        assert!(arrivals.try_recv().is_err());
    }

    #[test]
    fn flows_that_share_a_sign_are_taken_in_order_and_leave_others_theirs() {
        let tickets = Tickets::default();
        let first = expect(&tickets, 0, &[secret(7), secret(7)]);
        let _second = expect(&tickets, 5, &[secret(7)]);
        assert_eq!(next(&tickets, &secret(7)), Some(0));
        drop(first);
        assert_eq!(next(&tickets, &secret(7)), Some(5));
        assert_eq!(next(&tickets, &secret(7)), None);
    }

    #[test]
    fn what_a_client_chose_is_good_from_its_own_address_only() {
        let tickets = Tickets::default();
        let shown = |last| Sign::Shown(Proof(vec![1; 37]), [192, 0, 2, last].into());
        let _expected = expect(&tickets, 0, &[shown(1)]);
        assert_eq!(next(&tickets, &shown(2)), None);
        assert_eq!(next(&tickets, &shown(1)), Some(0));
    }
}
