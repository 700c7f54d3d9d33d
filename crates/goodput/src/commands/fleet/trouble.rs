//! What is wrong, said once until it has passed: whoever tries again every few seconds would otherwise fill the log. And since
//! when NATS is away, said once for the whole process: each of its parts would say it in other words.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Error;
use goodput_bus::BusError;
use goodput_fleet::span;

use super::places::BEAT;
use crate::{exit, screen};

/// What was not seen for so long has passed: each try takes a few seconds.
const PASSED: Duration = Duration::from_secs(60);
/// How long what was asked while NATS was away may fail after it is back: no request waits longer for an answer.
const LATE: Duration = Duration::from_secs(20);
/// Whoever had an answer less than this ago reaches NATS: a name or the lease is renewed each [`BEAT`], and a request fails after
/// five seconds without an answer.
const REACHED: Duration = BEAT.saturating_add(Duration::from_secs(1));

/// Whether NATS answers this process.
static NATS: Outage = Outage::new();

/// Troubles beside each other, each said once until it has passed.
#[derive(Debug, Default)]
pub(in crate::commands::fleet) struct Trouble(HashMap<String, Instant>);

impl Trouble {
    /// Says it, unless it was said, and goes on. What the bus refuses for one reason is one trouble, whatever was tried. What
    /// can't pass by itself ends who has it instead.
    ///
    /// # Errors
    /// NATS refuses a right, which another try does not give.
    pub fn pass(&mut self, why: impl Into<Error>) -> Result<(), Error> {
        let why = why.into();
        if is_for_good(&why) {
            return Err(why);
        }
        if self.is_to_be_said(&why, &NATS, Instant::now()) {
            screen::say(format_args!("goodput: {}", trying_again(&why)));
        }
        Ok(())
    }

    fn is_to_be_said(&mut self, why: &Error, nats: &Outage, now: Instant) -> bool {
        if is_away(why) {
            match nats.unanswered(now) {
                Unanswered::Known => return false,
                // Before it was known that NATS is away, this may have looked like a trouble of one stream, and was said.
                Unanswered::New | Unanswered::Alone => {}
            }
        }
        let reason = of_bus(why).find_map(BusError::reason).map(ToOwned::to_owned);
        self.is_new(reason.unwrap_or_else(|| exit::in_words(why)), now)
    }

    /// Says it, unless it was said.
    pub fn say(&mut self, why: &Error) {
        self.say_of(exit::in_words(why), why);
    }

    /// Says it, unless one of this kind was said: whoever causes it may choose the words.
    pub fn say_of(&mut self, kind: impl Into<String>, why: &Error) {
        if self.is_new(kind.into(), Instant::now()) {
            screen::say(format_args!("goodput: {}", exit::in_words(why)));
        }
    }

    /// All has passed: what comes next is said, even if it is the same.
    pub fn is_over(&mut self) {
        self.0.clear();
    }

    /// Notes it, and forgets what has passed. Returns whether it is to be said.
    fn is_new(&mut self, kind: String, now: Instant) -> bool {
        self.0.retain(|_, seen| now.duration_since(*seen) < PASSED);
        self.0.insert(kind, now).is_none()
    }
}

/// NATS has answered: says so if it was said that it was away.
pub(in crate::commands::fleet) fn nats_answers() {
    if let Some(back) = NATS.ends(Instant::now()) {
        screen::say(format_args!("goodput: {back}"));
    }
}

/// When a server answered, and whether it was said that it is away.
struct Outage(Mutex<Heard>);

struct Heard {
    /// When it answered last.
    last: Option<Instant>,
    /// When it was back after it was away.
    back: Option<Instant>,
    is_away: bool,
}

/// What it means that something had no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unanswered {
    /// NATS is away, which is to be said.
    New,
    /// That is known, or what was asked is from before it came back.
    Known,
    /// Others have answers: only what was asked for has none, such as a stream without a leader.
    Alone,
}

impl Outage {
    const fn new() -> Self {
        Self(Mutex::new(Heard { last: None, back: None, is_away: false }))
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something had no answer, at `now`.
    fn unanswered(&self, now: Instant) -> Unanswered {
        let mut heard = self.heard();
        let is_within =
            |then: Option<Instant>, time| then.is_some_and(|then| now.duration_since(then) < time);
        if is_within(heard.back, LATE) {
            return Unanswered::Known;
        }
        if !heard.is_away && is_within(heard.last, REACHED) {
            return Unanswered::Alone;
        }
        match mem::replace(&mut heard.is_away, true) {
            true => Unanswered::Known,
            false => Unanswered::New,
        }
    }

    /// It answers, at `now`. Returns what to say if it was said that it does not.
    fn ends(&self, now: Instant) -> Option<String> {
        let mut heard = self.heard();
        let last = heard.last.replace(now);
        mem::take(&mut heard.is_away).then(|| {
            heard.back = Some(now);
            let after = last.map(|last| span(now.duration_since(last).as_secs_f64().round()));
            let after = after.map(|after| format!(", {after} after its last answer"));
            format!("NATS answers again{}", after.unwrap_or_default())
        })
    }
}

fn trying_again(why: &Error) -> String {
    format!("{}; trying again", exit::in_words(why))
}

/// Whether no other try can go better, as while a right is missing.
fn is_for_good(why: &Error) -> bool {
    of_bus(why).any(|why| matches!(why, BusError::Forbidden { .. }))
}

/// Whether the same may succeed later.
pub(in crate::commands::fleet) fn may_pass(why: &Error) -> bool {
    of_bus(why).any(BusError::may_pass)
}

/// Whether it is only that NATS did not answer.
pub(in crate::commands::fleet) fn is_away(why: &Error) -> bool {
    of_bus(why).any(BusError::is_away)
}

fn of_bus(why: &Error) -> impl Iterator<Item = &BusError> {
    why.chain().filter_map(|why| why.downcast_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_bus::{Refusal, Right};

    #[test]
    fn what_can_t_pass_ends_who_has_it_and_anything_else_is_said() {
        let mut trouble = Trouble::default();
        trouble.pass(anyhow::anyhow!("the disk is full")).unwrap();
        assert!(trouble.0.contains_key("the disk is full"), "{trouble:?}");
        assert_eq!(trying_again(&anyhow::anyhow!("x")), "x; trying again");
        let refusal = Refusal { right: Right::Publish, subject: "x".into() };
        let [operation, user] = ["write x", "the key UX"].map(String::from);
        let refused = BusError::Forbidden { operation, user, refusal };
        let why = trouble.pass(Error::from(refused).context("a task")).unwrap_err();
        assert!(exit::in_words(&why).contains("does not let the key UX publish to x"), "{why:#}");
        trouble.is_over();
        assert!(trouble.0.is_empty());
    }

    #[test]
    fn troubles_beside_each_other_are_said_once_each_and_again_when_they_come_again() {
        let (mut trouble, began) = (Trouble::default(), Instant::now());
        let mut is_new =
            |kind: &str, s| trouble.is_new(kind.into(), began + Duration::from_secs(s));
        assert!(is_new("away", 0) && is_new("full", 1));
        assert!((1..100).all(|turn| !is_new("away", turn * 3) && !is_new("full", turn * 3)));
        assert!(is_new("away", 297 + 60), "it had passed");
    }

    #[test]
    fn what_the_bus_refuses_for_one_reason_is_one_trouble_whatever_was_tried() {
        let mut trouble = Trouble::default();
        for task in ["t-1", "t-2"] {
            let (operation, why) = (format!("read the outcome of {task}"), "it is full".into());
            trouble.pass(BusError::Request { operation, why }).unwrap();
        }
        assert_eq!(trouble.0.len(), 1, "{trouble:?}");
    }

    /// The lease is renewed every three seconds, and the outcomes have no leader for ten minutes.
    #[test]
    fn a_stream_that_alone_has_no_leader_is_said_once_and_nothing_is_back() {
        let (outage, began) = (Outage::new(), Instant::now());
        let mut trouble = Trouble::default();
        let why = "the NATS servers are electing their leader".to_owned();
        let operation = "read the outcome of t".into();
        let why = Error::from(BusError::Request { operation, why });
        let said = (0..200).filter(|turn| {
            let now = began + Duration::from_secs(3 * turn);
            assert_eq!(outage.ends(now), None, "it was never away");
            let later = now + Duration::from_secs(2);
            trouble.is_to_be_said(&why, &outage, later)
        });
        assert_eq!(said.collect::<Vec<_>>(), [0]);
    }

    /// Its servers refuse at once while they have no leader: at first, the lease was renewed just before.
    #[test]
    fn an_outage_that_looks_like_a_stream_without_a_leader_at_first_is_said_once() {
        let (outage, began) = (Outage::new(), Instant::now());
        let mut trouble = Trouble::default();
        let why = "the NATS servers are electing their leader".to_owned();
        let operation = "read the outcome of t".into();
        let why = Error::from(BusError::Request { operation, why });
        assert_eq!(outage.ends(began), None);
        let said = (1..60)
            .filter(|s| trouble.is_to_be_said(&why, &outage, began + Duration::from_secs(*s)));
        assert_eq!(said.collect::<Vec<_>>(), [1]);
        assert!(outage.ends(began + Duration::from_secs(60)).is_some(), "its end is said");
    }

    #[test]
    fn an_outage_is_said_once_and_its_end_with_how_long_it_took() {
        let (outage, began) = (Outage::new(), Instant::now());
        let at = |s| began + Duration::from_secs(s);
        assert_eq!(outage.ends(at(0)), None, "nobody has said that it was away");
        assert_eq!([5, 6].map(|s| outage.unanswered(at(s))), [Unanswered::New, Unanswered::Known]);
        let back = outage.ends(at(45));
        assert_eq!(back.as_deref(), Some("NATS answers again, 45 s after its last answer"));
        assert_eq!(outage.ends(at(48)), None);
        assert_eq!(outage.unanswered(at(50)), Unanswered::Known, "asked before it was back");
        assert_eq!(outage.unanswered(at(70)), Unanswered::New);
        let never = Outage::new();
        assert_eq!(never.unanswered(at(0)), Unanswered::New);
        assert_eq!(never.ends(at(9)).as_deref(), Some("NATS answers again"));
    }
}
