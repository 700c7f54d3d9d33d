//! One self-contained page: it loads nothing, runs no script, and opens from a mail.

use goodput_model::{Confirmation, Finding, Kind, Record, ShapingTest, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figure::{Figure, Table};
use crate::words;

/// Readable on a phone and in print, on light and on dark paper.
const STYLE: &str = include_str!("page.css");

/// Nothing may be loaded or run, whatever a hostile peer had written into a record.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page of one or several results, each with its figures.
pub fn page(results: &[(&Record, Vec<Figure>)]) -> String {
    let title = match results {
        [(record, _)] => title(record),
        several => format!("{} results", several.len()),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "goodput: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    @if results.len() > 1 { h1 { (title) } (contents(results)) }
                    @for (number, (record, figures)) in results.iter().enumerate() {
                        (result(number + 1, record, figures))
                    }
                }
                footer { "Made by goodput " (env!("CARGO_PKG_VERSION")) "." }
            }
        }
    };
    page.into_string()
}

/// What a result is about, in one line.
pub fn title(record: &Record) -> String {
    let what = match record.kind {
        Kind::Test => "test",
        Kind::Attach => "watched connection",
        Kind::Compare => "comparison",
        Kind::FindRate => "highest rate",
        Kind::Shaping => "shaping",
        Kind::Tune => "tuning",
    };
    format!("{what} of {}: {}", record.target, record.result.goodput_bits_per_s)
}

fn contents(results: &[(&Record, Vec<Figure>)]) -> Markup {
    html! {
        table {
            tr { th { "result" } th { "started" } th { "goodput" } th { "limited by" } }
            @for (number, (record, _)) in results.iter().enumerate() {
                tr {
                    td { a href={ "#result-" (number + 1) } { (record.target) } }
                    td { (record.started) }
                    td { (record.result.goodput_bits_per_s) }
                    td { (record.verdict.summary) }
                }
            }
        }
    }
}

fn result(number: usize, record: &Record, figures: &[Figure]) -> Markup {
    html! {
        article id={ "result-" (number) } {
            h1 { (title(record)) }
            p.about { (about(record).join(" · ")) }
            (verdict(record))
            @for figure in figures { (drawn(number, figure)) }
        }
    }
}

/// When, between whom, and how.
pub fn about(record: &Record) -> Vec<String> {
    let mut about = vec![record.started.clone()];
    let ends = [("near", &record.ends.near), ("far", &record.ends.far)];
    for (name, end) in ends {
        about.extend(
            end.value().map(|end| format!("{name}: {}, {}", end.host.name, end.host.kernel)),
        );
    }
    let flows = record.plan.flows;
    about.push(format!("{flows} flow{}", if flows == 1 { "" } else { "s" }));
    about.push(format!("{} seconds counted", words::short(record.result.duration_s)));
    about
}

fn verdict(record: &Record) -> Markup {
    html! {
        section.verdict {
            p.number { (record.result.goodput_bits_per_s) }
            @if let Some(shaping) = &record.shaping { (confirmed(shaping)) }
            @for verdict in std::iter::once(&record.verdict).chain(&record.verdict_reverse) {
                p { (limited(record, verdict)) strong { (verdict.summary) } " (" (verdict.end) ")." }
            }
            @for doubt in &record.doubts { p.doubt { "Doubt: " (doubt) } }
            @for finding in &record.findings { (found(finding)) }
        }
    }
}

/// The words before what limits; of two directions, which one.
fn limited(record: &Record, verdict: &Verdict) -> String {
    match record.verdict_reverse {
        None => "Limited by ".into(),
        Some(_) => format!("Sent by the {} host: limited by ", verdict.sender),
    }
}

/// Whether a shaper gives its rate, and why.
fn confirmed(shaping: &ShapingTest) -> Markup {
    let told = shaping.told_bits_per_s;
    let words = match shaping.confirmation {
        Confirmation::Confirmed => format!("It gives the {told} that it was told."),
        Confirmation::Missed => format!("It does not give the {told} that it was told."),
        Confirmation::Inconclusive => format!("Whether it gives {told} is not known."),
    };
    html! { p { strong { (words) } } ul { @for reason in &shaping.reasons { li { (reason) } } } }
}

fn found(finding: &Finding) -> Markup {
    html! {
        details open[finding.confidence > goodput_model::Confidence::Possible] {
            summary {
                (finding.summary) " — " (format!("{:?}", finding.confidence).to_lowercase())
                @if let Some(rate) = finding.predicted_bits_per_s.value() { ", next limit " (rate) }
            }
            ul { @for witness in &finding.evidence { li { (witness.text) } } }
            @for change in &finding.changes {
                p { "Try " code { (change.setting) "=" (change.to) } ": " (change.why) }
            }
            @for advice in &finding.advice { p { (advice) } }
            @for permanent in &finding.permanent { p { (permanent.file) } pre { (permanent.lines) } }
        }
    }
}

fn drawn(number: usize, figure: &Figure) -> Markup {
    html! {
        section id={ "result-" (number) "-" (figure.id) } {
            h2 { (figure.title) }
            @match &figure.svg {
                Some(svg) => {
                    figure { (PreEscaped(svg)) figcaption { (figure.alt) } }
                    @if !figure.table.rows.is_empty() {
                        details { summary { "Numbers" } (numbers(&figure.table)) }
                    }
                }
                None => { p { (figure.alt) } @if !figure.table.rows.is_empty() { (numbers(&figure.table)) } }
            }
        }
    }
}

fn numbers(table: &Table) -> Markup {
    html! {
        div.wide {
            table {
                tr { @for column in &table.columns { th scope="col" { (column) } } }
                @for row in &table.rows { tr { @for cell in row { td { (cell) } } } }
            }
        }
    }
}
