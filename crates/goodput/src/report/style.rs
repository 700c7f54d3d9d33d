//! Colours, used sparingly: the verdict, and what is good or bad. `anstream` drops them if the
//! output is not a terminal.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use goodput_model::plain_char;

/// How [`strong`] text begins: the escape sequence for bold (ECMA-48, SGR 1).
pub const STRONG_BEGINS: &str = "\x1b[1m";
/// How [`faint`] text begins (SGR 2).
pub const FAINT_BEGINS: &str = "\x1b[2m";

/// Text that a far end or a file may have chosen: what would forge a line, paint the screen or turn the writing is
/// replaced.
pub fn plain(text: &str) -> String {
    text.chars().map(plain_char).collect()
}

/// The text without its styles.
pub fn without(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// The most important text.
pub fn strong(text: impl Display) -> String {
    paint(Style::new().bold(), text)
}

/// Labels and small print.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strong_and_faint_text_begin_as_they_say() {
        assert!(strong("x").starts_with(STRONG_BEGINS) && faint("x").starts_with(FAINT_BEGINS));
    }
}
