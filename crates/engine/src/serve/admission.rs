//! Who may come in: bounds on connections of one address and on measurements at the same time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Counts who is here.
pub struct Admission {
    measurements: Arc<Semaphore>,
    max_measurements: u32,
    max_per_address: u32,
    connections: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

/// A connection that was let in; dropping it makes room.
pub struct Seat {
    address: IpAddr,
    connections: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

impl Admission {
    /// Bounds for the whole server and for each address.
    pub fn new(max_measurements: u32, max_per_address: u32) -> Self {
        Self {
            measurements: Arc::new(Semaphore::new(max_measurements as usize)),
            max_measurements,
            max_per_address,
            connections: Arc::default(),
        }
    }

    /// Lets a connection of `address` in, or says why not.
    pub fn connection(&self, address: IpAddr) -> Result<Seat, String> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let count = connections.entry(address).or_insert(0);
        if *count >= self.max_per_address {
            return Err(format!("{} connections of this address are open already", *count));
        }
        *count += 1;
        Ok(Seat { address, connections: Arc::clone(&self.connections) })
    }

    /// Lets a measurement begin, or says why not.
    pub fn measurement(&self) -> Result<OwnedSemaphorePermit, String> {
        Arc::clone(&self.measurements).try_acquire_owned().map_err(|_| {
            format!(
                "busy: {} measurements are running, which is the limit; try again later",
                self.max_measurements
            )
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = connections.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_all_the_room() {
        let admission = Admission::new(1, 2);
        let (a, b) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let first = admission.connection(a).unwrap();
        let _second = admission.connection(a).unwrap();
        assert!(admission.connection(a).is_err());
        assert!(admission.connection(b).is_ok());
        drop(first);
        assert!(admission.connection(a).is_ok());
    }

    #[test]
    fn measurements_are_bounded_and_make_room_when_done() {
        let admission = Admission::new(1, 2);
        let running = admission.measurement().unwrap();
        assert!(admission.measurement().unwrap_err().starts_with("busy: 1 "));
        drop(running);
        assert!(admission.measurement().is_ok());
    }
}
