//! The cookies whose echoes are answered: one for each measurement under way that asked for it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use goodput_wire::session::Cookie;

/// Every cookie that is good now.
#[derive(Default)]
pub struct Echoes(Arc<Mutex<HashSet<Cookie>>>);

/// A cookie that is good for as long as this lives.
pub struct Echoing {
    cookies: Arc<Mutex<HashSet<Cookie>>>,
    cookie: Cookie,
}

impl Echoes {
    /// Has echoes with this cookie answered.
    pub fn expect(&self, cookie: Cookie) -> Echoing {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(cookie);
        Echoing { cookies: Arc::clone(&self.0), cookie }
    }

    /// Whether echoes with this cookie are answered.
    pub fn knows(&self, cookie: &Cookie) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(cookie)
    }
}

impl Drop for Echoing {
    fn drop(&mut self) {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_while_its_measurement_lives() {
        let (echoes, cookie) = (Echoes::default(), Cookie([5; 16]));
        assert!(!echoes.knows(&cookie));
        let echoing = echoes.expect(cookie);
        assert!(echoes.knows(&cookie));
        assert!(!echoes.knows(&Cookie([6; 16])));
        drop(echoing);
        assert!(!echoes.knows(&cookie));
    }
}
