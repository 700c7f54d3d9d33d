//! The cookies whose echoes are answered: one for each measurement under way that asked for it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use goodput_mover::LastHeard;
use goodput_wire::session::Cookie;
use tokio::task::AbortHandle;

use super::cost::ECHO_SOCKETS;

/// How often a measurement's echoes are answered in the long run: one every 5 ms. A client sends one every 20 ms for
/// the latency and one every 50 ms for the clocks.
const ECHO_INTERVAL: Duration = Duration::from_millis(5);
/// Echoes that are answered at once after a pause.
const MAX_ECHO_BURST: u32 = 64;
type Book = HashMap<Cookie, Entry>;

/// What is known of a measurement's echoes.
struct Entry {
    /// When the echoes so far will have been paid for.
    paid: Instant,
    /// Addresses with a socket of their own.
    own: Vec<OwnSocket>,
    /// When the client last asked for an echo.
    heard: LastHeard,
}

/// A client's address that has a socket of its own, which is closed when this is dropped.
struct OwnSocket {
    peer: SocketAddr,
    answering: AbortHandle,
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

/// Every valid cookie.
#[derive(Clone, Default)]
pub struct Echoes(Arc<Mutex<Book>>);

/// A cookie that is valid while this lives.
pub struct Echoing {
    echoes: Echoes,
    cookie: Cookie,
    heard: LastHeard,
}

impl Echoing {
    /// When the client last asked for an echo.
    pub fn last_heard(&self) -> LastHeard {
        self.heard.clone()
    }
}

impl Echoes {
    /// Makes this end answer echoes with this cookie.
    pub fn expect(&self, cookie: Cookie) -> Echoing {
        let heard = LastHeard::default();
        let entry = Entry { paid: Instant::now(), own: Vec::new(), heard: heard.clone() };
        self.book().insert(cookie, entry);
        Echoing { echoes: self.clone(), cookie, heard }
    }

    /// Whether an echo with this cookie is answered at `now`: a measurement under way has it, and there were not too
    /// many.
    pub fn admit(&self, cookie: &Cookie, now: Instant) -> bool {
        let mut book = self.book();
        let Some(Entry { paid, .. }) = book.get_mut(cookie) else { return false };
        let next = (*paid).max(now) + ECHO_INTERVAL;
        let admitted = next <= now + ECHO_INTERVAL * MAX_ECHO_BURST;
        if admitted {
            *paid = next;
        }
        admitted
    }

    /// The client of this cookie is alive: its echo has shown that it comes from its stated address.
    pub fn hear(&self, cookie: &Cookie) {
        if let Some(entry) = self.book().get(cookie) {
            entry.heard.mark();
        }
    }

    /// When the next echo with this cookie is admitted at the latest; `None` once its measurement is over.
    pub fn free_at(&self, cookie: &Cookie) -> Option<Instant> {
        self.book()
            .get(cookie)
            .map(|entry| entry.paid + ECHO_INTERVAL - ECHO_INTERVAL * MAX_ECHO_BURST)
    }

    /// Whether echoes of `peer` with this cookie should have a socket of their own, and have none.
    pub fn lacks_socket(&self, cookie: &Cookie, peer: SocketAddr) -> bool {
        self.book().get(cookie).is_some_and(|entry| {
            entry.own.len() < ECHO_SOCKETS as usize && entry.own.iter().all(|own| own.peer != peer)
        })
    }

    /// A task answers echoes of `peer` with this cookie on a socket of their own, until their measurement is over.
    pub fn has_socket(&self, cookie: &Cookie, peer: SocketAddr, answering: AbortHandle) {
        let own = OwnSocket { peer, answering };
        if let Some(entry) = self.book().get_mut(cookie) {
            entry.own.push(own);
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Echoing {
    fn drop(&mut self) {
        let over = self.echoes.book().remove(&self.cookie);
        // Dropped only now, because this may wake its thread.
        drop(over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_while_its_measurement_lives() {
        let (echoes, cookie, now) = (Echoes::default(), Cookie([5; 16]), Instant::now());
        assert!(!echoes.admit(&cookie, now));
        let echoing = echoes.expect(cookie);
        assert!(!echoes.admit(&Cookie([6; 16]), now));
        assert!(echoes.admit(&cookie, now));
        assert_eq!(echoing.last_heard().ago_ms(), None, "who it came from is still unknown");
        echoes.hear(&cookie);
        assert!(echoing.last_heard().ago_ms().is_some(), "asking is a sign of life");
        drop(echoing);
        assert!(!echoes.admit(&cookie, now));
    }

    #[test]
    fn echoes_without_end_are_answered_at_a_bounded_rate() {
        let (echoes, cookie) = (Echoes::default(), Cookie([5; 16]));
        let _echoing = echoes.expect(cookie);
        let now = Instant::now() + Duration::from_secs(1);
        let answered = |at| (0..1000).filter(|_| echoes.admit(&cookie, at)).count();
        assert_eq!(answered(now), MAX_ECHO_BURST as usize);
        assert_eq!(answered(now + 10 * ECHO_INTERVAL), 10);
        assert_eq!(answered(now + Duration::from_secs(60)), MAX_ECHO_BURST as usize);
    }
}
