//! Lets one session at a time proceed if two sessions of one client could be confused: only the address shows whose
//! flow arrives.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::tickets::Sign;

/// A lock for each ambiguous sign by which flows are awaited.
#[derive(Default)]
pub struct SignLocks(std::sync::Mutex<HashMap<Sign, Weak<Mutex<()>>>>);

/// The exclusive right to await flows by a sign; dropping it admits the next session.
pub type SignLock = OwnedMutexGuard<()>;

impl SignLocks {
    /// Waits for the lock of each of `signs`, in the order of arrival.
    pub async fn lock(&self, mut signs: Vec<Sign>) -> Vec<SignLock> {
        signs.retain(Sign::is_ambiguous);
        // Everyone takes the locks in the same order, so that no two wait for each other.
        signs.sort_by_key(|sign| format!("{sign:?}"));
        signs.dedup();
        let mut locks = Vec::with_capacity(signs.len());
        for sign in signs {
            locks.push(self.queue(sign).lock_owned().await);
        }
        locks
    }

    fn queue(&self, sign: Sign) -> Arc<Mutex<()>> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(&sign).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::default();
        queues.insert(sign, Arc::downgrade(&queue));
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Transport;
    use std::time::Duration;

    fn reserved(port: u16, last: u8) -> Sign {
        Sign::Reserved(port, Transport::Tcp, [192, 0, 2, last].into())
    }

    #[tokio::test]
    async fn one_client_awaits_a_port_once_and_others_do_not_wait() {
        let locks = SignLocks::default();
        let first = locks.lock(vec![reserved(5002, 1), reserved(5001, 1)]).await;
        let again = locks.lock(vec![reserved(5001, 1)]);
        assert!(tokio::time::timeout(Duration::ZERO, again).await.is_err());
        assert_eq!(locks.lock(vec![reserved(5001, 2), reserved(5001, 2)]).await.len(), 1);
        drop(first);
        assert_eq!(locks.lock(vec![reserved(5001, 1)]).await.len(), 1);
    }
}
