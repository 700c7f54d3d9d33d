//! The report of a check: what did harm, what could do harm, and what could not be decided.

use goodput_diagnose::check::is_seen;
use goodput_model::{CheckReport, Finding, Known, Seconds, counted};

use super::labelled::{line, undecided};
use super::test::Detail;
use super::{remedy, style};

/// The whole report.
pub fn text(report: &CheckReport, detail: Detail) -> String {
    let mut out = String::new();
    let host = &report.host;
    line(
        &mut out,
        "host",
        &format!("{}, {}, {}", host.name, host.kernel, counted(host.cpus, "CPU")),
    );
    let devices = match &report.devices[..] {
        [] => "none".to_string(),
        some => some.join(", "),
    };
    line(&mut out, "devices", &devices);
    if let Known::Value(seconds) = report.watched_s {
        line(&mut out, "watched", &Seconds(seconds).to_string());
    }
    report.findings.iter().for_each(|finding| one(&mut out, finding, detail.verbose));
    if detail.undecided {
        undecided(&mut out, &report.undecided);
    }
    line(&mut out, "total", &summary(report, detail));
    out
}

/// A finding with its first remedy, or with all of them and how to make the changes permanent.
fn one(out: &mut String, finding: &Finding, every_remedy: bool) {
    let (label, summary) = match is_seen(finding) {
        true => ("found", style::bad(&finding.summary)),
        false => ("could limit", finding.summary.clone()),
    };
    line(out, label, &format!("{summary}   ({})", finding.rule));
    match every_remedy {
        true => remedy::all(out, finding),
        false => remedy::first(out, finding),
    }
}

fn summary(report: &CheckReport, detail: Detail) -> String {
    let found = report.findings.iter().filter(|finding| is_seen(finding)).count();
    let could = report.findings.len() - found;
    let unread = report.undecided.len();
    let why = if detail.undecided || unread == 0 { "" } else { " (--undecided says why)" };
    let more = if detail.verbose || found + could == 0 { "" } else { "; -v shows every remedy" };
    format!("{found} found, {could} could limit, {unread} could not be decided{why}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Host, Undecided};

    #[test]
    fn nothing_found_is_said_and_what_could_not_be_decided_is_counted() {
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
        let plain = anstream::adapter::strip_str(&text(&report, Detail::default())).to_string();
        let last = plain.lines().last().unwrap();
        for fact in ["0 found", "0 could limit", "1 could not be decided", "--undecided"] {
            assert!(last.contains(fact), "{fact} in {last}");
        }
    }
}
