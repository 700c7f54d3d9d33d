//! How much is read from one client, over all its connections, while all others are read at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use super::quotas::client_of;
use crate::control::budget::Budget;

/// The budgets of all clients with a connection.
#[derive(Default)]
pub struct ReadBudgets(Mutex<HashMap<IpAddr, Weak<Budget>>>);

impl ReadBudgets {
    /// The budget of a client, which all its connections share.
    pub fn of(&self, client: IpAddr) -> Arc<Budget> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() == clients.capacity() {
            clients.retain(|_, budget| budget.strong_count() > 0);
        }
        let budget = clients.entry(client_of(client).addr()).or_default();
        budget.upgrade().unwrap_or_else(|| {
            let fresh = Arc::new(Budget::new(Instant::now()));
            *budget = Arc::downgrade(&fresh);
            fresh
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_one_client_share_and_clients_that_are_gone_are_forgotten() {
        let budgets = ReadBudgets::default();
        let [one, other, far] = ["2001:db8::1", "2001:db8::2", "2001:db8:1::1"]
            .map(|text| budgets.of(text.parse().expect("an address")));
        assert!(Arc::ptr_eq(&one, &other) && !Arc::ptr_eq(&one, &far));
        for number in 0..10_000_u32 {
            budgets.of(IpAddr::V4(number.into()));
        }
        assert!(budgets.0.lock().expect("nobody panicked").len() < 100);
    }
}
