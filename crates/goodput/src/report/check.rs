//! The report of a check: what was seen to harm, what could, and what could not be told.

use std::fmt::Write;

use goodput_diagnose::check::is_seen;
use goodput_model::{CheckReport, Finding, Known};

use super::style;

/// Width of the labels on the left.
const LABEL: usize = 12;

/// The whole report.
pub fn text(report: &CheckReport, show_undecided: bool) -> String {
    let mut out = String::new();
    let host = &report.host;
    line(&mut out, "host", &format!("{}, {}, {} CPUs", host.name, host.kernel, host.cpus));
    let devices = match &report.devices[..] {
        [] => "none worth a look".to_string(),
        some => some.join(", "),
    };
    line(&mut out, "devices", &devices);
    if let Known::Value(seconds) = report.watched_s {
        line(&mut out, "watched", &format!("{seconds:.1} s"));
    }
    report.findings.iter().for_each(|finding| one(&mut out, finding));
    if show_undecided {
        let mut label = "undecided";
        for undecided in &report.undecided {
            line(&mut out, label, &format!("{}: {}", undecided.rule, undecided.because));
            label = "";
        }
    }
    line(&mut out, "in all", &summary(report, show_undecided));
    out
}

fn line(out: &mut String, label: &str, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}{text}", style::faint(format!("{label:LABEL$}")));
}

fn one(out: &mut String, finding: &Finding) {
    let (label, summary) = match is_seen(finding) {
        true => ("found", style::bad(&finding.summary)),
        false => ("could limit", finding.summary.clone()),
    };
    line(out, label, &format!("{summary}   ({})", finding.rule));
    let mut label = "  to try";
    for change in &finding.changes {
        line(out, label, &change.to_string());
        label = "";
    }
    for advice in &finding.advice {
        line(out, label, advice);
        label = "";
    }
    let mut label = "  for good";
    for permanent in &finding.permanent {
        let lines = permanent.lines.lines().collect::<Vec<_>>().join("; ");
        line(out, label, &format!("in {}: {lines}", permanent.file));
        label = "";
    }
}

fn summary(report: &CheckReport, shown: bool) -> String {
    let found = report.findings.iter().filter(|finding| is_seen(finding)).count();
    let could = report.findings.len() - found;
    let unread = report.undecided.len();
    let how = if shown || unread == 0 { "" } else { " (--undecided says why)" };
    format!("{found} found, {could} could limit, {unread} could not be told{how}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Host, Undecided};

    #[test]
    fn nothing_found_is_said_and_what_could_not_be_told_is_counted() {
        let host =
            Host { name: "box".into(), kernel: "Linux 6.1".into(), goodput: "0".into(), cpus: 2 };
        let report = CheckReport {
            format: 1,
            started: "2026-01-01T00:00:00Z".into(),
            host,
            devices: vec!["eth0".into()],
            watched_s: Known::missing("counters were read once"),
            findings: Vec::new(),
            undecided: vec![Undecided { rule: "a".into(), because: "b".into() }],
        };
        let plain = anstream::adapter::strip_str(&text(&report, false)).to_string();
        let last = plain.lines().last().unwrap();
        assert_eq!(
            last,
            "in all      0 found, 0 could limit, 1 could not be told (--undecided says why)"
        );
    }
}
