//! The lines of a report: a label on the left, and beside it what is said.

use std::fmt::Write;

use goodput_model::{Finding, Undecided};

use super::{permanent, style};

/// Width of the labels.
const WIDTH: usize = 12;

/// One line.
pub(super) fn line(out: &mut String, label: &str, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}{text}", style::faint(format!("{label:WIDTH$}")));
}

/// A line for each text, under one label.
pub(super) fn lines(out: &mut String, label: &str, texts: impl IntoIterator<Item = String>) {
    for (number, text) in texts.into_iter().enumerate() {
        line(out, if number == 0 { label } else { "" }, &text);
    }
}

/// What a finding says of its end: changes and advice, and how they outlive a reboot.
pub(super) fn remedy(out: &mut String, finding: &Finding) {
    let changes = finding.changes.iter().map(ToString::to_string);
    lines(out, "  to try", changes.chain(finding.advice.iter().cloned()));
    lines(out, "  for good", permanent::lines(&finding.permanent));
}

/// Rules that could not decide, with their reasons.
pub(super) fn undecided(out: &mut String, rules: &[Undecided]) {
    lines(out, "undecided", rules.iter().map(|one| format!("{}: {}", one.rule, one.because)));
}
