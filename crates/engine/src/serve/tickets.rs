//! Which data connection belongs to which session: cookies, good once.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use goodput_model::{FlowPlan, SocketOptions};
use goodput_wire::session::{Cookie, FlowTicket};
use tokio::sync::mpsc;

type Open = Arc<Mutex<HashMap<Cookie, Ticket>>>;

/// A flow that has arrived and proven itself.
pub type Arrival = (FlowPlan, OwnedFd);

/// Every cookie that is awaited now.
#[derive(Default)]
pub struct Tickets(Open);

/// What a cookie stands for.
pub struct Ticket {
    /// The flow.
    pub flow: FlowPlan,
    /// Options its socket shall have.
    pub options: SocketOptions,
    /// The session that awaits it.
    pub to: mpsc::UnboundedSender<Arrival>,
}

/// The cookies of one measurement. Dropping it invalidates those that were not used.
pub struct Expected {
    open: Open,
    cookies: Vec<Cookie>,
}

impl Tickets {
    /// Awaits the flows of one measurement; they arrive at the receiver.
    pub fn expect(
        &self,
        tickets: &[FlowTicket],
        options: &SocketOptions,
    ) -> (Expected, mpsc::UnboundedReceiver<Arrival>) {
        let (to, arrivals) = mpsc::unbounded_channel();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for ticket in tickets {
            let awaited = Ticket { flow: ticket.flow, options: options.clone(), to: to.clone() };
            open.insert(ticket.cookie, awaited);
        }
        let cookies = tickets.iter().map(|t| t.cookie).collect();
        (Expected { open: Arc::clone(&self.0), cookies }, arrivals)
    }

    /// Takes the ticket of `cookie`, once.
    pub fn redeem(&self, cookie: &Cookie) -> Option<Ticket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(cookie)
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for cookie in &self.cookies {
            open.remove(cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::EndName;

    #[test]
    fn a_cookie_is_good_once_and_only_while_awaited() {
        let tickets = Tickets::default();
        let ticket = |n: u8| FlowTicket {
            flow: FlowPlan { id: u16::from(n), sender: EndName::Near },
            cookie: Cookie([n; 16]),
        };
        let (expected, _arrivals) =
            tickets.expect(&[ticket(0), ticket(1)], &SocketOptions::default());
        assert!(tickets.redeem(&Cookie([0; 16])).is_some());
        assert!(tickets.redeem(&Cookie([0; 16])).is_none(), "used twice");
        assert!(tickets.redeem(&Cookie([9; 16])).is_none(), "never given out");
        drop(expected);
        assert!(tickets.redeem(&Cookie([1; 16])).is_none(), "the measurement is gone");
    }
}
