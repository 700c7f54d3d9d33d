//! The lines of a report: a label on the left, and its text.

use std::fmt::Write;

use goodput_model::{Change, EndName, Finding, Undecided};
use goodput_settings::Setting;

use super::{permanent, style};
use crate::shell;

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

/// A finding's remedy: changes and advice, and how to make them permanent.
pub(super) fn remedy(out: &mut String, finding: &Finding) {
    let changes = finding.changes.iter().map(change);
    lines(out, "  to try", changes.chain(finding.advice.iter().cloned()));
    lines(out, "  for good", permanent::lines(&finding.permanent));
}

/// The command that makes a change, with its reason; a change without a command is described.
pub(super) fn change(change: &Change) -> String {
    let Change { setting, to, why, .. } = change;
    let is_plan = goodput_settings::find_for(setting).is_ok_and(Setting::is_plan);
    if is_plan || setting.end == EndName::Far {
        return change.to_string();
    }
    let assignment = shell::word(&format!("{setting}={to}"));
    format!("{}   # {why}", style::strong(format!("goodput settings set {assignment}")))
}

/// Rules that could not decide, with their reasons.
pub(super) fn undecided(out: &mut String, rules: &[Undecided]) {
    lines(out, "undecided", rules.iter().map(|one| format!("{}: {}", one.rule, one.because)));
}
