//! What is wrong, said once until it changes: whoever tries again every few seconds would otherwise fill the log.

use anyhow::Error;

use crate::{exit, screen};

/// What was said last, and has not passed.
#[derive(Default)]
pub(super) struct Trouble(Option<String>);

impl Trouble {
    /// Says it, unless it was said.
    pub fn say(&mut self, why: &Error) {
        let why = exit::in_words(why);
        if self.0.as_ref() != Some(&why) {
            screen::say(format_args!("goodput: {why}"));
            self.0 = Some(why);
        }
    }

    /// It has passed: the next one is said, even if it is the same.
    pub fn is_over(&mut self) {
        self.0 = None;
    }
}
