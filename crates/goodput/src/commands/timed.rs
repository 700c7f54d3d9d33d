//! What a command that runs for months says on standard error, with the time: whoever reads it may come days later.

use std::fmt::Display;

use super::measured;
use crate::report::watch::moment;
use crate::screen;

/// Prints a line with the time of this host.
pub fn say(text: impl Display) {
    screen::say(format_args!("goodput: {}: {text}", moment(&measured::now())));
}
