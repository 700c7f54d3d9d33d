//! What could limit this host.

use goodput_model::{CheckReport, Confidence, Finding, counted};
use maud::{Markup, html};

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::layout::{plain, table, words};

/// The page.
pub const PAGE: Page = Page { in_navigation: Some("Check"), ..Page::of("/check", show) };

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let report = visit.program.check().map_err(Trouble::failed)?;
    Ok(Answer::page("What could limit this host", body(&report)))
}

fn body(report: &CheckReport) -> Markup {
    let host = &report.host;
    let devices = report.devices.join(", ");
    let (found, could): (Vec<_>, Vec<_>) =
        report.findings.iter().partition(|finding| finding.confidence > Confidence::Possible);
    html! {
        p.about {
            (plain(&host.name)) " · " (plain(&host.kernel)) " · " (counted(host.cpus, "CPU")) " · devices: " (plain(&devices))
        }
        p { "goodput has read settings and counters, and has sent nothing." }
        @if found.is_empty() { p { "Nothing was seen to do harm." } }
        @else { h2 { (found.len()) " found" } }
        @for finding in found { (one(finding)) }
        @if could.is_empty() { p { "No setting or counter could limit this host, as far as it could be decided." } }
        @else { h2 { (could.len()) @if could.len() == 1 { " possible limit" } @else { " possible limits" } } }
        @for finding in could { (one(finding)) }
        @if !report.undecided.is_empty() { h2 { (report.undecided.len()) " could not be decided" } }
        @let rows = html! { @for undecided in &report.undecided {
            tr { td { (undecided.rule) } td { (words(&undecided.because)) } }
        } };
        @if !report.undecided.is_empty() { (table("Checks that could not decide", &["Check", "Why"], &rows)) }
    }
}

fn one(finding: &Finding) -> Markup {
    html! {
        details {
            summary { (words(&finding.summary)) }
            ul { @for witness in &finding.evidence { li { (words(&witness.text)) } } }
            @for change in &finding.changes {
                p { "Try " code { "goodput settings set " (change.setting) "=" (change.to) } ": " (words(&change.why)) }
            }
            @for advice in &finding.advice { p { (words(advice)) } }
        }
    }
}
