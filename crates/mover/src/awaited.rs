//! Long work on a thread, which can't be interrupted from outside: the work checks now and then whether anyone still
//! waits for it.

use std::io;
use std::sync::{Arc, Weak};

/// Held by the waiting side. Dropping it ends the work soon.
#[derive(Debug, Default)]
pub struct Waiter(Arc<()>);

/// Held by the working side.
#[derive(Debug, Clone)]
pub struct Awaited(Weak<()>);

impl Waiter {
    /// For the working side.
    pub fn awaited(&self) -> Awaited {
        Awaited(Arc::downgrade(&self.0))
    }
}

impl Awaited {
    /// Fails once nobody waits any longer.
    pub fn check(&self) -> io::Result<()> {
        match self.0.strong_count() {
            0 => Err(io::Error::new(io::ErrorKind::Interrupted, "nobody waits for it any more")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_with_the_one_who_waits() {
        let waiter = Waiter::default();
        let awaited = waiter.awaited();
        assert!(awaited.clone().check().is_ok());
        drop(waiter);
        assert_eq!(awaited.check().unwrap_err().kind(), io::ErrorKind::Interrupted);
    }
}
