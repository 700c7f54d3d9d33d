//! Who holds a name: an agent its site, the coordinator its lease. A key of the bus says so; it expires unless its holder
//! writes it again.

/// What someone who wants a key has seen of its holder.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rival {
    /// The first revision of the key that was seen.
    first: Option<u64>,
    /// The revision that was seen last, and since when, seconds by the clock of who looks.
    last: Option<(u64, f64)>,
}

impl Rival {
    /// Looks at the key, whose `revision` grows with each renewal. Returns whether its holder is certainly alive: it has
    /// renewed the key since the first look. A holder that was killed renews nothing, and its key expires.
    pub fn is_alive(&mut self, revision: u64) -> bool {
        *self.first.get_or_insert(revision) != revision
    }

    /// Looks at the key at `now_s`, seconds by the own clock, which may begin anywhere. Returns whether its holder is certainly
    /// gone: it has not renewed the key for twice the time after which it expires. A server whose clock was set back lets
    /// nothing expire until its clock is where it was.
    pub fn is_gone(&mut self, revision: u64, now_s: f64, expiry_s: f64) -> bool {
        match self.last {
            Some((seen, since_s)) if seen == revision => now_s - since_s > 2.0 * expiry_s,
            _ => {
                self.last = Some((revision, now_s));
                false
            }
        }
    }

    /// The key could not be looked at: its holder may have been away for the same reason.
    pub fn is_out_of_sight(&mut self) {
        self.last = None;
    }
}

/// Whether a holder may still act as such, this many seconds after it asked for the last renewal that succeeded. The key
/// expires `expiry_s` after that renewal, which was no earlier than the question. Half of the time is left for what the
/// holder began before, and for clocks of different speed.
pub fn is_sure(since_renewal_s: f64, expiry_s: f64) -> bool {
    since_renewal_s < expiry_s / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const EXPIRY_S: f64 = 12.0;
    const BEAT_S: f64 = 3.0;

    #[test]
    fn a_holder_is_alive_once_its_key_is_renewed() {
        let mut rival = Rival::default();
        assert!(!rival.is_alive(7), "it may have been killed just now");
        assert!(!rival.is_alive(7) && rival.is_alive(8));
    }

    /// With whatever clock: only times between two looks count, and only those of who looks.
    #[test]
    fn a_key_that_a_server_with_a_slow_clock_keeps_is_free_all_the_same() {
        for began_s in [0.0, -5.0 * 3600.0, 1.7e9] {
            let mut rival = Rival::default();
            let mut look = |revision, s: f64| rival.is_gone(revision, began_s + s, EXPIRY_S);
            assert!(!look(7, 0.0) && !look(7, 20.0), "it may come back");
            assert!(!look(8, 22.0) && !look(8, 45.0), "it has renewed");
            assert!(look(8, 47.0));
        }
    }

    #[test]
    fn who_can_t_be_looked_at_is_not_gone() {
        let mut rival = Rival::default();
        assert!(!rival.is_gone(7, 0.0, EXPIRY_S));
        rival.is_out_of_sight();
        assert!(!rival.is_gone(7, 100.0, EXPIRY_S), "the server was away for both");
        assert!(rival.is_gone(7, 125.0, EXPIRY_S));
    }

    /// Two that want one key, in virtual time: a bus that expires, a first holder that is cut off at any moment and comes
    /// back. At no time are both sure.
    #[test]
    fn never_are_two_sure_of_one_key() {
        for cut_s in 0..40 {
            for back_s in cut_s..60 {
                let reaches = |holder: usize, now: i32| holder == 1 || now < cut_s || now >= back_s;
                let mut key: Option<(usize, f64)> = None;
                let mut asked: BTreeMap<usize, f64> = BTreeMap::new();
                for now in 0..90 {
                    let now_s = f64::from(now);
                    key = key.filter(|(_, written_s)| now_s - written_s < EXPIRY_S);
                    for holder in [0, 1] {
                        let is_due = (f64::from(now) % BEAT_S) == holder as f64;
                        let is_free = key.is_none_or(|(other, _)| other == holder);
                        if is_due && is_free && reaches(holder, now) {
                            key = Some((holder, now_s));
                            asked.insert(holder, now_s);
                        }
                    }
                    let sure = asked.values().filter(|at_s| is_sure(now_s - **at_s, EXPIRY_S));
                    assert!(sure.count() <= 1, "cut at {cut_s} s, back at {back_s} s: {now} s");
                }
            }
        }
    }
}
