//! The lines of a report: a label on the left, and its text.

use std::fmt::Write;

use goodput_model::Undecided;

use super::style;

/// Width of the labels.
pub(super) const WIDTH_CHARS: usize = 12;

/// One line.
pub(super) fn line(out: &mut String, label: &str, text: &str) {
    // Writing to a String can't fail.
    let _ = writeln!(out, "{}{text}", style::faint(format!("{label:WIDTH_CHARS$}")));
}

/// A line for each text, under one label.
pub(super) fn lines(out: &mut String, label: &str, texts: impl IntoIterator<Item = String>) {
    for (number, text) in texts.into_iter().enumerate() {
        line(out, if number == 0 { label } else { "" }, &text);
    }
}

/// Rules that could not decide, with their reasons.
pub(super) fn undecided(out: &mut String, rules: &[Undecided]) {
    lines(out, "undecided", rules.iter().map(|one| format!("{}: {}", one.rule, one.because)));
}
