//! What is wrong, said once until it changes: whoever tries again every few seconds would otherwise fill the log.

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
        self.tell(format!("{}; trying again", exit::in_words(&why)));
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
}
