//! Which data connection belongs to which session: proofs, each good for one flow.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use goodput_model::{FlowPlan, Framing, SocketOptions};
use goodput_mover::Early;
use goodput_wire::ticket::{FlowTicket, Proof};
use tokio::sync::mpsc;

use crate::traffic::Connected;

/// Where several flows show the same proof, they are taken in the order in which they are awaited.
type Open = Arc<Mutex<HashMap<Proof, VecDeque<Ticket>>>>;

/// Every proof that is awaited now.
#[derive(Default)]
pub struct Tickets(Open);

/// What a proof stands for.
pub struct Ticket {
    /// The flow.
    pub flow: FlowPlan,
    /// How its payload looks on the wire.
    pub framing: Framing,
    /// Options its socket shall have.
    pub options: SocketOptions,
    /// The session that awaits it.
    pub to: mpsc::UnboundedSender<Connected>,
}

/// The proofs of one measurement. Dropping it invalidates those that were not used.
pub struct Expected {
    open: Open,
    proofs: Vec<Proof>,
}

impl Tickets {
    /// Awaits the flows of one measurement; they arrive at the receiver.
    pub fn expect(
        &self,
        tickets: &[FlowTicket],
        options: &SocketOptions,
    ) -> (Expected, mpsc::UnboundedReceiver<Connected>) {
        let (to, arrivals) = mpsc::unbounded_channel();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for ticket in tickets {
            let awaited = Ticket {
                flow: ticket.flow,
                framing: ticket.framing.clone(),
                options: options.clone(),
                to: to.clone(),
            };
            open.entry(ticket.proof.clone()).or_default().push_back(awaited);
        }
        let proofs = tickets.iter().map(|t| t.proof.clone()).collect();
        (Expected { open: Arc::clone(&self.0), proofs }, arrivals)
    }

    /// Takes the next ticket of `proof`.
    pub fn redeem(&self, proof: &Proof) -> Option<Ticket> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let awaited = open.get_mut(proof)?;
        let ticket = awaited.pop_front();
        if awaited.is_empty() {
            open.remove(proof);
        }
        ticket
    }
}

impl Ticket {
    /// The flow with the socket on which it arrived.
    pub fn connected(&self, socket: OwnedFd) -> Connected {
        let (flow, framing) = (self.flow, self.framing.clone());
        Connected { flow, socket, framing, early: Early::default() }
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for proof in &self.proofs {
            open.remove(proof);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::EndName;

    #[test]
    fn a_proof_is_good_once_and_only_while_awaited() {
        let tickets = Tickets::default();
        let (expected, _arrivals) =
            tickets.expect(&[ticket(0, 0), ticket(1, 1)], &SocketOptions::default());
        assert!(tickets.redeem(&proof(0)).is_some());
        assert!(tickets.redeem(&proof(0)).is_none(), "used twice");
        assert!(tickets.redeem(&proof(9)).is_none(), "never given out");
        drop(expected);
        assert!(tickets.redeem(&proof(1)).is_none(), "the measurement is gone");
    }

    #[test]
    fn flows_that_share_a_proof_are_taken_in_order() {
        let tickets = Tickets::default();
        let awaited = [ticket(0, 7), ticket(1, 7)];
        let (_expected, _arrivals) = tickets.expect(&awaited, &SocketOptions::default());
        let next = || tickets.redeem(&proof(7)).map(|ticket| ticket.flow.id);
        assert_eq!([next(), next(), next()], [Some(0), Some(1), None]);
    }

    fn proof(byte: u8) -> Proof {
        Proof(vec![byte; 24])
    }

    fn ticket(id: u16, byte: u8) -> FlowTicket {
        FlowTicket {
            flow: FlowPlan { id, sender: EndName::Near },
            proof: proof(byte),
            framing: Framing::Goodput,
            shares: None,
        }
    }
}
