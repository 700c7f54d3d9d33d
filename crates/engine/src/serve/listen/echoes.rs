//! The cookies whose echoes are answered: one for each measurement under way that asked for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use goodput_wire::session::Cookie;

/// How often a measurement's echoes are answered in the long run: one every 5 ms. A client sends one every
/// 20 ms for the latency and one every 50 ms for the clocks.
const EVERY: Duration = Duration::from_millis(5);
/// Echoes that are answered at once after a while without.
const AT_ONCE: u32 = 64;

/// Every cookie that is good now, and when its echoes will have been paid for.
#[derive(Default)]
pub struct Echoes(Arc<Mutex<HashMap<Cookie, Instant>>>);

/// A cookie that is good for as long as this lives.
pub struct Echoing {
    cookies: Arc<Mutex<HashMap<Cookie, Instant>>>,
    cookie: Cookie,
}

impl Echoes {
    /// Has echoes with this cookie answered.
    pub fn expect(&self, cookie: Cookie) -> Echoing {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(cookie, Instant::now());
        Echoing { cookies: Arc::clone(&self.0), cookie }
    }

    /// Whether an echo with this cookie is answered at `now`: a measurement under way has it, and there
    /// were not too many.
    pub fn admit(&self, cookie: &Cookie, now: Instant) -> bool {
        let mut cookies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(paid) = cookies.get_mut(cookie) else { return false };
        let next = (*paid).max(now) + EVERY;
        let admitted = next <= now + EVERY * AT_ONCE;
        if admitted {
            *paid = next;
        }
        admitted
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
        let (echoes, cookie, now) = (Echoes::default(), Cookie([5; 16]), Instant::now());
        assert!(!echoes.admit(&cookie, now));
        let echoing = echoes.expect(cookie);
        assert!(echoes.admit(&cookie, now));
        assert!(!echoes.admit(&Cookie([6; 16]), now));
        drop(echoing);
        assert!(!echoes.admit(&cookie, now));
    }

    #[test]
    fn echoes_without_end_are_answered_at_a_bounded_rate() {
        let (echoes, cookie) = (Echoes::default(), Cookie([5; 16]));
        let _echoing = echoes.expect(cookie);
        let now = Instant::now() + Duration::from_secs(1);
        let answered = |at| (0..1000).filter(|_| echoes.admit(&cookie, at)).count();
        assert_eq!(answered(now), AT_ONCE as usize);
        assert_eq!(answered(now + 10 * EVERY), 10);
        assert_eq!(answered(now + Duration::from_secs(60)), AT_ONCE as usize);
    }
}
