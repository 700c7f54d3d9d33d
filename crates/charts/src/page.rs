//! One self-contained page: it loads nothing, runs no script, and opens from a mail.

use goodput_model::finding::RIVAL;
use goodput_model::{Finding, Kind, Permanent, Record, ShapingTest, Verdict, counted};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::answered::{Answered, answered, lead};
use crate::coded::coded;
use crate::figure::{Figure, Of};
use crate::limit::{Limited, without_limit};
use crate::pair::side_by_side;
use crate::section::{heading, rows, section_at};
use crate::words::capital;
use crate::{one_run, palette, words};

/// Readable on a phone and in print, on light and on dark paper.
const STYLE: &str = include_str!("page.css");

/// The style of a page that shows results: of its text, and of the pictures in it.
pub fn style() -> String {
    [STYLE, palette::RULES].concat()
}

/// Nothing may be loaded or run, whatever a hostile peer had written into a record.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// A result, and what is shown of it.
#[derive(Debug, Clone)]
pub struct Shown<'a> {
    /// The result.
    pub record: &'a Record,
    /// What the command printed, without control sequences.
    pub text: String,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// The page of one or several results. The figures of two should be those of [`crate::figures_of_both`]: they stand beside each other.
pub fn page(results: &[Shown]) -> String {
    let title = match results {
        [one] => title(one.record),
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
                style { (PreEscaped(style())) }
            }
            body {
                main {
                    @if results.len() > 1 { h1 { (title) } (contents(results)) }
                    @match results {
                        [first, second] => (both([first, second])),
                        _ => @for (number, shown) in results.iter().enumerate() {
                            (result(if results.len() > 1 { 2 } else { 1 }, number + 1, shown))
                        }
                    }
                }
                footer { "Made by goodput " (env!("CARGO_PKG_VERSION")) "." }
            }
        }
    };
    page.into_string()
}

/// What a result is about, in one line, and its answer.
pub fn title(record: &Record) -> String {
    let answer = lead(record).unwrap_or(record.result.goodput_bits_per_s.to_string());
    format!("{}: {answer}", subject(record))
}

/// What a result is about: what was done, and with which traffic. A heading that its answer follows.
pub fn subject(record: &Record) -> String {
    let what = match record.kind {
        Kind::Test => "test",
        Kind::Attach => "watched connection",
        Kind::Compare => "comparison",
        Kind::FindRate => "highest rate",
        Kind::Shaping => "shaping",
        Kind::Tune => "tuning",
    };
    format!("{what} of {}, {}", record.target, record.plan.traffic())
}

/// The columns of an overview of several results.
pub const OVERVIEW: [&str; 5] = ["result", "started", "traffic", "answer", "limited by"];

/// The row of a result in it.
pub fn in_overview(record: &Record) -> [String; 5] {
    [
        record.target.clone(),
        record.started.clone(),
        record.plan.traffic(),
        lead(record).unwrap_or(record.result.goodput_bits_per_s.to_string()),
        match &*record.verdict.limit {
            Verdict::NO_LIMIT => without_limit(&record.verdict.summary).0.into(),
            _ => record.verdict.summary.clone(),
        },
    ]
}

fn contents(results: &[Shown]) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-label="All results" {
            table {
                caption { "All results" }
                tr { @for heading in OVERVIEW { th scope="col" { (heading) } } }
                @for (number, Shown { record, .. }) in results.iter().enumerate() {
                    @let [target, rest @ ..] = in_overview(record);
                    tr {
                        td { a href={ "#result-" (number + 1) } { (target) } }
                        @for cell in rest { td { (coded(&cell)) } }
                    }
                }
            }
        }
    }
}

/// What each of two results is, then their figures in pairs.
fn both(results: [&Shown; 2]) -> Markup {
    html! {
        @for (number, shown) in results.iter().enumerate() { (article(2, number + 1, shown, &html! {})) }
        h2 { "Side by side" }
        (side_by_side(results.map(|one| one.record), results.map(|one| one.figures.clone())))
    }
}

/// A result whose heading has this level, with its figures.
fn result(level: u8, number: usize, shown: &Shown) -> Markup {
    let prefix = format!("result-{number}-");
    article(level, number, shown, &sections_at(level + 1, &prefix, shown.record, &shown.figures))
}

/// A result whose heading has this level, with this below.
fn article(level: u8, number: usize, Shown { record, text, .. }: &Shown, below: &Markup) -> Markup {
    html! {
        article id={ "result-" (number) } {
            (heading(level, &subject(record)))
            (summary(record))
            (printed(record, text))
            (below)
        }
    }
}

/// What a result is about, what limited it, and what was found.
pub fn summary(record: &Record) -> Markup {
    html! { p.about { (about(record).join(" · ")) } (verdict(record)) }
}

/// What the command printed: the proof, every response and the numbers that no chart has. Several runs have their answer
/// there, so it is open.
pub fn printed(record: &Record, text: &str) -> Markup {
    html! {
        details.printed open[one_run::which(record).is_some()] {
            summary { "The report, as it was printed" }
            pre tabindex="0" { (text) }
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
    about.push(format!("{}, {}", record.plan.traffic(), counted(record.plan.flows, "flow")));
    about.push(format!("{} counted", words::seconds(record.result.duration_s)));
    about
}

fn verdict(record: &Record) -> Markup {
    html! {
        section.verdict {
            @if let Some(answered) = answered(record) { (answer_block(&answered)) }
            @if let Some(shaping) = &record.shaping { (confirmed(shaping)) }
            @match one_run::which(record) {
                Some(run) => p { (run) ": " (record.result.goodput_bits_per_s) "." },
                None => p.number { (record.result.goodput_bits_per_s) },
            }
            @for verdict in std::iter::once(&record.verdict).chain(&record.verdict_reverse) {
                @let Limited { before, limit, after } = Limited::of(record, verdict);
                p { (before) strong { (coded(&limit)) } (coded(&after)) }
            }
            @if let Some(why) = &record.incomplete { p.doubt { "Incomplete: " (coded(why)) } }
            @for doubt in &record.doubts { p.doubt { "Doubt: " (coded(doubt)) } }
            @for finding in &record.findings { (found(finding)) }
        }
    }
}

/// What several runs found, and how to keep it.
fn answer_block(answered: &Answered) -> Markup {
    html! {
        p.answer { strong { (coded(&answered.lead)) } }
        @for line in &answered.lines { p { (coded(line)) } }
        @if let Some(tried) = &answered.tried { div.wide tabindex="0" role="group" aria-label="What was tried" { (rows("What was tried", tried)) } }
        @if !answered.commands.is_empty() {
            p { "To keep it:" }
            @for command in answered.commands { pre tabindex="0" { (command) } }
        }
        (for_good(&answered.permanent))
    }
}

/// The files that keep a change over a reboot.
fn for_good(permanent: &[&Permanent]) -> Markup {
    html! {
        @for permanent in permanent { p { "For good, in " (coded(&permanent.file)) ":" } pre tabindex="0" { (permanent.lines) } }
    }
}

/// Whether a shaper gives its rate.
pub fn in_words(shaping: &ShapingTest) -> String {
    format!("{}.", capital(&goodput_model::answer::shaped(shaping)))
}

/// What a finding's advice is.
pub fn label(advice: &str) -> &'static str {
    if advice.starts_with(RIVAL) { "or else" } else { "to try" }
}

/// Whether a shaper gives its rate, and why.
fn confirmed(shaping: &ShapingTest) -> Markup {
    html! { p.answer { strong { (in_words(shaping)) } } ul { @for reason in &shaping.reasons { li { (coded(reason)) } } } }
}

fn found(finding: &Finding) -> Markup {
    html! {
        details open[finding.confidence > goodput_model::Confidence::Possible] {
            summary {
                (coded(&finding.summary)) " — " (finding.sureness())
                @if let Some(rate) = finding.predicted_bits_per_s.value() { ", next limit " (rate) }
            }
            ul { @for witness in &finding.evidence { li { (coded(&witness.text)) } } }
            @for change in &finding.changes {
                p { "To try: " code { (change.setting) "=" (change.to) } ": " (coded(&change.why)) }
            }
            @for advice in &finding.advice { p { (capital(label(advice))) ": " (coded(advice)) } }
            (for_good(&finding.permanent.iter().collect::<Vec<_>>()))
        }
    }
}

/// All figures of a record, as a part of a page that has [`style`]: what all its runs say, then those of one run, folded if
/// they are not all.
pub fn sections(record: &Record, figures: &[Figure]) -> Markup {
    sections_at(2, "", record, figures)
}

fn sections_at(level: u8, prefix: &str, record: &Record, figures: &[Figure]) -> Markup {
    let (of_all, of_one): (Vec<_>, Vec<_>) = figures.iter().partition(|one| one.of == Of::All);
    let shown = |figures: &[&Figure]| {
        html! {
            @for figure in figures { (section_at(level, &format!("{prefix}{}", figure.id), figure)) }
        }
    };
    html! {
        (shown(&of_all))
        @match one_run::which(record).filter(|_| !of_one.is_empty()) {
            None => (shown(&of_one)),
            Some(run) => details.one-run open[of_all.is_empty()] {
                summary { "Charts of one run. " (run) }
                (shown(&of_one))
            }
        }
    }
}
