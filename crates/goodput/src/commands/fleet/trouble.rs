//! What is wrong, said once until it changes: whoever tries again every few seconds would otherwise fill the log.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Error;
use goodput_bus::BusError;

use crate::{exit, screen};

/// What was not seen for so long has passed: each try takes a few seconds.
const PASSED: Duration = Duration::from_secs(60);

/// What was said last and has not passed, and when it was seen last.
#[derive(Debug, Default)]
pub(in crate::commands::fleet) struct Trouble(Option<(String, Instant)>);

impl Trouble {
    /// Says it, unless it was said, and goes on. What can't pass by itself ends who has it instead.
    ///
    /// # Errors
    /// NATS refuses a right, which another try does not give.
    pub fn pass(&mut self, why: impl Into<Error>) -> Result<(), Error> {
        let why = why.into();
        if is_for_good(&why) {
            return Err(why);
        }
        self.tell(trying_again(&why));
        Ok(())
    }

    /// Says it, unless it was said.
    pub fn say(&mut self, why: &Error) {
        self.tell(exit::in_words(why));
    }

    fn tell(&mut self, why: String) {
        if self.is_new(&why, Instant::now()) {
            screen::say(format_args!("goodput: {why}"));
        }
    }

    /// Notes it. Returns whether it is to be said.
    fn is_new(&mut self, why: &str, now: Instant) -> bool {
        let before = self.0.replace((why.to_owned(), now));
        !before.is_some_and(|(said, seen)| said == why && now.duration_since(seen) < PASSED)
    }

    /// It has passed: the next one is said, even if it is the same.
    pub fn is_over(&mut self) {
        self.0 = None;
    }
}

/// Troubles of several kinds beside each other, each said once until it has passed, whatever its words are: many may have one
/// at the same time, or whoever causes it may choose the words.
#[derive(Debug, Default)]
pub(in crate::commands::fleet) struct Troubles(HashMap<String, Instant>);

impl Troubles {
    /// As [`Trouble::pass`]. What the bus refuses for one reason is of one kind.
    ///
    /// # Errors
    /// NATS refuses a right, which another try does not give.
    pub fn pass(&mut self, why: Error) -> Result<(), Error> {
        if is_for_good(&why) {
            return Err(why);
        }
        let mut of_bus = why.chain().filter_map(|why| why.downcast_ref::<BusError>());
        let reason = of_bus.find_map(BusError::reason).map(ToOwned::to_owned);
        let kind = reason.unwrap_or_else(|| exit::in_words(&why));
        if self.is_new(&kind, Instant::now()) {
            screen::say(format_args!("goodput: {}", trying_again(&why)));
        }
        Ok(())
    }

    /// Says it, unless one of this kind was said.
    pub fn say(&mut self, kind: &str, why: &Error) {
        if self.is_new(kind, Instant::now()) {
            screen::say(format_args!("goodput: {}", exit::in_words(why)));
        }
    }

    /// Notes it, and forgets what has passed. Returns whether it is to be said.
    fn is_new(&mut self, kind: &str, now: Instant) -> bool {
        self.0.retain(|_, seen| now.duration_since(*seen) < PASSED);
        self.0.insert(kind.to_owned(), now).is_none()
    }
}

fn trying_again(why: &Error) -> String {
    format!("{}; trying again", exit::in_words(why))
}

/// Whether no other try can go better, as while a right is missing.
fn is_for_good(why: &Error) -> bool {
    let mut of_bus = why.chain().filter_map(|why| why.downcast_ref());
    of_bus.any(|why| matches!(why, BusError::Forbidden { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_bus::{Refusal, Right};

    #[test]
    fn what_can_t_pass_ends_who_has_it_and_anything_else_is_said() {
        let mut trouble = Trouble::default();
        let away = anyhow::anyhow!("the server gave no answer in time");
        trouble.pass(away).unwrap();
        let said = trouble.0.clone().map(|(said, _)| said);
        assert_eq!(said.as_deref(), Some("the server gave no answer in time; trying again"));
        let refusal = Refusal { right: Right::Publish, subject: "x".into() };
        let [operation, user] = ["write x", "the key UX"].map(String::from);
        let refused = BusError::Forbidden { operation, user, refusal };
        let why = trouble.pass(Error::from(refused).context("a task")).unwrap_err();
        assert!(exit::in_words(&why).contains("does not let the key UX publish to x"), "{why:#}");
        trouble.is_over();
        assert_eq!(trouble.0, None);
    }

    #[test]
    fn what_goes_on_is_said_once_and_what_comes_again_is_said_again() {
        let (mut trouble, began) = (Trouble::default(), Instant::now());
        let mut is_new = |why: &str, s| trouble.is_new(why, began + Duration::from_secs(s));
        assert!(is_new("away", 0));
        assert!((1..100).all(|second| !is_new("away", second * 3)), "for as long as it goes on");
        assert!(is_new("full", 300) && is_new("away", 303));
        assert!(is_new("away", 303 + 60), "it had passed");
    }

    #[test]
    fn troubles_beside_each_other_are_said_once_each() {
        let (mut troubles, began) = (Troubles::default(), Instant::now());
        let mut is_new = |kind: &str, s| troubles.is_new(kind, began + Duration::from_secs(s));
        assert!(is_new("away", 0) && is_new("full", 1));
        assert!((1..100).all(|turn| !is_new("away", turn * 3) && !is_new("full", turn * 3)));
        assert!(is_new("away", 297 + 60), "it had passed");
    }

    #[test]
    fn an_outage_of_the_bus_is_one_trouble_whatever_was_tried() {
        let mut troubles = Troubles::default();
        for task in ["t-1", "t-2"] {
            let (operation, why) = (format!("read the outcome of {task}"), "no answer".into());
            troubles.pass(BusError::Request { operation, why }.into()).unwrap();
        }
        assert_eq!(troubles.0.len(), 1, "{troubles:?}");
    }
}
