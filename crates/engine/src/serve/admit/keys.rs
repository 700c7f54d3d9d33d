//! Clients with their own keys: who they are now, and each one's running measurements.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_wire::keys::{AuthorizedKey, Clients, KeyAuthorization, PrivateKey, PublicKey};

/// How clients are identified by their keys.
#[derive(Clone)]
pub struct Keys(KeyAuthorization);

impl Keys {
    /// The server's own key and the list of clients, which the reader of the file keeps up to date.
    pub fn new(own: PrivateKey, clients: Clients) -> Self {
        Self(KeyAuthorization { own: Arc::new(own), clients })
    }

    /// What a session needs to identify them.
    pub(in crate::serve) fn known(&self) -> KeyAuthorization {
        self.0.clone()
    }

    /// The present entry of a client that was known.
    pub(in crate::serve) fn again(
        &self,
        key: &AuthorizedKey,
        from: IpAddr,
    ) -> Result<Arc<AuthorizedKey>, String> {
        self.0.clients.again(key, from)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("own", &self.0.own).finish_non_exhaustive()
    }
}

/// The number of running measurements of each client key, from any address.
#[derive(Default)]
pub struct KeyBook(Arc<Mutex<Counts>>);

type Counts = HashMap<PublicKey, u32>;

/// A measurement of a client with a key; dropping it makes room.
pub struct KeyPlace {
    book: Arc<Mutex<Counts>>,
    key: PublicKey,
}

impl KeyBook {
    /// Lets a measurement begin.
    pub fn take(&self, key: &AuthorizedKey) -> Result<KeyPlace, String> {
        let mut book = lock(&self.0);
        let has = book.entry(key.key).or_default();
        if let Some(most) = key.max_measurements
            && *has >= most
        {
            return Err(format!("key {} already has {most} measurements running", key.name));
        }
        *has += 1;
        Ok(KeyPlace { book: Arc::clone(&self.0), key: key.key })
    }
}

impl Drop for KeyPlace {
    fn drop(&mut self) {
        let mut book = lock(&self.book);
        let Some(has) = book.get_mut(&self.key) else { return };
        *has -= 1;
        if *has == 0 {
            book.remove(&self.key);
        }
    }
}

fn lock(book: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use goodput_wire::keys::AuthorizedKeys;

    fn public() -> PublicKey {
        PrivateKey::of([1; 32]).unwrap().public()
    }

    /// A client that measures, with these options in its line.
    pub fn ann(options: &str) -> Arc<AuthorizedKey> {
        let list = AuthorizedKeys::parse(&format!("ann measure {} {options}", public())).unwrap();
        list.find(&public(), [192, 0, 2, 1].into()).unwrap()
    }

    #[test]
    fn a_key_has_so_many_measurements_at_once() {
        let (book, key) = (KeyBook::default(), ann("max-measurements=2"));
        let first = book.take(&key).unwrap();
        let _second = book.take(&key).unwrap();
        assert!(book.take(&key).is_err_and(|why| why.contains("key ann")));
        drop(first);
        assert!(book.take(&key).is_ok());
    }

    #[test]
    fn a_key_that_was_withdrawn_is_known_no_more() {
        let clients = Clients::default();
        let keys = Keys::new(PrivateKey::of([2; 32]).unwrap(), clients.clone());
        let (ann, from) = (ann(""), [192, 0, 2, 1].into());
        let list = |text: &str| AuthorizedKeys::parse(text).ok();
        clients.set(list(&format!("ann settings {}", public())));
        assert_eq!(keys.again(&ann, from).unwrap().role, goodput_wire::keys::KeyRole::Settings);
        clients.set(list(""));
        assert!(keys.again(&ann, from).unwrap_err().contains("withdrawn"));
        clients.set(None);
        assert!(keys.again(&ann, from).unwrap_err().contains("moment"));
    }
}
