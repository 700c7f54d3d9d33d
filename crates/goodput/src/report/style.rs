//! Colours, used sparingly: the verdict, and what is good or bad. `anstream` drops them if the
//! output is no terminal.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

/// The one thing to see first.
pub fn strong(text: impl Display) -> String {
    paint(Style::new().bold(), text)
}

/// Labels and the small print.
pub fn faint(text: impl Display) -> String {
    paint(Style::new().dimmed(), text)
}

/// An improvement.
pub fn good(text: impl Display) -> String {
    paint(AnsiColor::Green.on_default().bold(), text)
}

/// A limit or a change for the worse.
pub fn bad(text: impl Display) -> String {
    paint(AnsiColor::Red.on_default().bold(), text)
}

fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}
