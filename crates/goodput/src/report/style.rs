//! Colours, used sparingly: the verdict, and what is good or bad. `anstream` drops them if the
//! output is not a terminal.

use std::borrow::Cow;
use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use goodput_model::{is_plain, plain_char};

/// How [`strong`] text begins: the escape sequence for bold (ECMA-48, SGR 1).
pub const STRONG_BEGINS: &str = "\x1b[1m";
/// How [`faint`] text begins (SGR 2).
pub const FAINT_BEGINS: &str = "\x1b[2m";

/// Text that a far end or a file may have chosen: what would forge a line, paint the screen or turn the writing is
/// replaced.
pub fn plain(text: &str) -> String {
    text.chars().map(plain_char).collect()
}

/// Whole lines of output with their styles, in which nothing else changes the screen: the last guard before a terminal, for what
/// no [`plain`] has seen.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let stays = |c: char| is_plain(c) || c == '\n';
    if text.chars().all(stays) {
        return text.into();
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (taken, kept) = match style_columns(rest) {
            Some(columns) => (columns, true),
            None => (c.len_utf8(), stays(c)),
        };
        clean.push_str(if kept { &rest[..taken] } else { "\u{fffd}" });
        rest = &rest[taken..];
    }
    clean.into()
}

/// Length of the style that the text begins with (ECMA-48, SGR), if it begins with one.
fn style_columns(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    numbers[end..].starts_with('m').then_some("\x1b[".len() + end + 1)
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
    fn lines_keep_their_styles_and_nothing_else_that_changes_the_screen() {
        let own = format!("{}\tä\n", strong(bad("x")));
        assert_eq!(harmless(&own), own);
        let evil = format!("{}\x1b[2J\x1b]0;a\u{7}\r\u{9b}1m\u{202e}\x1b[1", faint("b"));
        let clean = format!("{}?[2J?]0;a???1m??[1", faint("b")).replace('?', "\u{fffd}");
        assert_eq!(harmless(&evil), clean);
    }

    #[test]
    fn strong_and_faint_text_begin_as_they_say() {
        assert!(strong("x").starts_with(STRONG_BEGINS) && faint("x").starts_with(FAINT_BEGINS));
    }
}
