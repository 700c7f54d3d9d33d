//! One path, by all results of its target.

use goodput_charts::{Moment, over_time, section};
use goodput_store::{Entry, MAX_NAMES, Wanted};
use maud::{Markup, html};

use super::history::limited;
use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::asked::link;
use crate::layout::{NONE_YET, plain, table, time, words};
use crate::program::Program;

/// Results that are shown, the newest.
const ROWS: u32 = 500;

/// The page.
pub const PAGE: Page = Page { in_navigation: Some("Paths"), ..Page::of("/path", show) };

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let history = visit.program.history()?;
    let Some(target) = visit.asked.field("target") else {
        return Ok(Answer::page("Paths", targets(&history.names()?.targets)));
    };
    let wanted = Wanted { target: Some(target.into()), limit: ROWS, ..Wanted::default() };
    let found = history.search(&wanted)?;
    if found.is_empty() {
        return Err(Trouble::unknown(format!("there is no result of {target:?}")));
    }
    let moment = |entry: &Entry| Moment { started: entry.started.clone(), goodput: entry.goodput };
    let moments: Vec<_> = found.iter().map(moment).collect();
    let chart = match over_time(&plain(target), &moments) {
        Ok(figure) => section("over-time", &figure),
        Err(why) => {
            html! { p.doubt { "The chart could not be drawn: " (words(&why.to_string())) "." } }
        }
    };
    Ok(Answer::page(
        format!("The path to {target}"),
        html! { (chart) (list(&found, &**visit.program)) },
    ))
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

fn list(found: &[Entry], program: &dyn Program) -> Markup {
    let rows = html! {
        @for entry in found {
            tr {
                td { a href={ "/results/" (entry.id) } { (entry.id) } }
                td { (time(&entry.started)) }
                td.rate { (entry.goodput) }
                td { (limited(entry, program)) }
                td { (plain(&entry.kind)) }
            }
        }
    };
    let caption = format!("The newest {} results", found.len());
    table(&caption, &["Number", "Started (UTC)", "Goodput", "Limit", "Kind"], &rows)
}
