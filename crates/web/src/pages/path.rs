//! One path, by all results of its target.

use std::collections::BTreeSet;

use goodput_charts::{Moment, over_time, section};
use goodput_model::Seconds;
use goodput_store::{Day, Entry, MAX_NAMES, Wanted};
use maud::{Markup, html};

use super::history::{kind, limited, traffic, way};
use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::asked::link;
use crate::layout::{NONE_YET, limit, plain, table, time, words};
use crate::program::{PathChange, Program};

/// Results that are shown, the newest.
const ROWS: u32 = 500;

/// The page.
pub const PAGE: Page = Page { in_navigation: Some("Paths"), ..Page::of("/path", show) };

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let history = visit.program.history()?;
    let Some(target) = visit.asked.field("target") else {
        return Ok(Answer::page("Paths", targets(&history.targets()?)));
    };
    let wanted = Wanted { target: Some(target.into()), limit: ROWS, ..Wanted::default() };
    let found = history.search(&wanted)?;
    let days = history.days(&wanted)?;
    if found.is_empty() && days.is_empty() {
        return Err(Trouble::unknown(format!("there is no result of {target:?}")));
    }
    let moment = |entry: &Entry| Moment {
        started: entry.started.clone(),
        goodput: entry.goodput,
        series: traffic(entry),
    };
    // The number of a command with several runs is that of one of them, perhaps with a setting that was made worse.
    let of_one_run = |entry: &&Entry| Day::KINDS.contains(&&*entry.kind);
    let moments: Vec<_> =
        found.iter().filter(of_one_run).map(moment).chain(days.iter().map(noon)).collect();
    let watched = history.watched_among(&found)?;
    let changes = visit.program.path_changes(&history, target)?;
    let chart = match over_time(&plain(target), &moments) {
        Ok(figure) => section("over-time", &figure),
        Err(why) => {
            html! { p.doubt { "The chart could not be drawn: " (words(&why.to_string())) "." } }
        }
    };
    Ok(Answer::page(
        format!("The path to {target}"),
        html! {
            (chart)
            (changed(&changes))
            (list(&found, &watched, &**visit.program))
            (past(&days, &**visit.program))
        },
    ))
}

/// A day of deleted results, as one of them at its noon.
fn noon(day: &Day) -> Moment {
    let [goodput, ..] = day.goodputs();
    Moment { started: format!("{}T12:00:00Z", day.day), goodput, series: way(day.traffic.as_ref()) }
}

fn targets(targets: &[String]) -> Markup {
    html! {
        @if targets.is_empty() { p { (words(NONE_YET)) } }
        ul { @for target in targets { li { a href=(link("/path", &[("target", target)])) { (plain(target)) } } } }
        @if targets.len() >= MAX_NAMES {
            p { "At most " (MAX_NAMES) " targets are listed; " a href="/" { "search the history" } " for others." }
        }
    }
}

/// What the tests of watches show: since when the path gives more or less, and what changed with it.
fn changed(changes: &[PathChange]) -> Markup {
    html! {
        @if !changes.is_empty() { h2 { "Changes that watches found" } }
        @for PathChange { since, amount, before, after, with_it, records: [first, second] } in changes.iter().rev() {
            h3 { "Since " (time(since)) "the path gives " (plain(amount)) }
            p { "Before: " (words(before)) ". Since: " (words(after)) ". "
                a href={ "/compare?id=" (first) "&id=" (second) } { "Compare" } }
            @if with_it.is_empty() { p { "Nothing else that either end reports changed with it." } }
            @else { p { "Changed with it:" } ul { @for fact in with_it { li { (words(fact)) } } } }
        }
    }
}

fn list(found: &[Entry], watched: &BTreeSet<i64>, program: &dyn Program) -> Markup {
    let rows = html! {
        @for entry in found {
            tr {
                td { a href={ "/results/" (entry.id) } { (entry.id) } }
                td { (time(&entry.started)) }
                td { (traffic(entry)) }
                td.rate { (entry.goodput) }
                td { (limited(entry, program)) }
                td { (kind(entry, watched)) }
            }
        }
    };
    let caption = match found.len() {
        1 => "The only result".into(),
        several => format!("The newest {several} results"),
    };
    table(&caption, &["Number", "Started (UTC)", "Traffic", "Goodput", "Limit", "Kind"], &rows)
}

/// What stays of deleted results.
fn past(days: &[Day], program: &dyn Program) -> Markup {
    let rows = html! {
        @for day in days {
            @let [median, least, most] = day.goodputs();
            tr {
                td { (plain(&day.day)) }
                td { (day.results) }
                td { (way(day.traffic.as_ref())) }
                td { (plain(&day.kind)) }
                td.rate { (median) }
                td { (least) " to " (most) }
                td { @if let Some(spread) = day.round_trip_s { (Seconds(spread.median)) } }
                td { (limit(&day.limit, program)) @if day.limited < day.results { " (" (day.limited) ")" } }
            }
        }
    };
    let columns = [
        "Day (UTC)",
        "Results",
        "Traffic",
        "Kind",
        "Median goodput",
        "Goodput",
        "Median round trip",
        "Most frequent limit",
    ];
    html! { @if !days.is_empty() { (table("Days of deleted results, in the chart by their median", &columns, &rows)) } }
}
