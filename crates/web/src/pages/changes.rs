//! Every change of a setting on record, and what is to be put back.

use maud::{Markup, html};

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::layout::{plain, table, time, words};

/// The page.
pub const PAGE: Page = Page { in_navigation: Some("Changes"), ..Page::of("/changes", show) };

/// Puts back what interrupted runs left.
pub const UNDO: Page = Page::change("/undo", undo);

/// The columns of the log.
const COLUMNS: [&str; 7] =
    ["Time (UTC)", "Setting", "From", "To", "What", "Network namespace", "Run"];

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let left = visit.program.leftovers();
    let changes = visit.program.changes().map_err(Trouble::failed)?;
    let rows = html! {
        @for change in &changes {
            tr {
                td { (time(&change.time)) }
                td { code { (plain(&change.setting)) } }
                td { (plain(&change.from)) }
                td { (plain(&change.to)) }
                td { (plain(&change.what)) }
                td { (plain(&change.place)) }
                td { (plain(&change.run)) }
            }
        }
    };
    Ok(Answer::page(
        "Changes of settings",
        html! {
            h2 { "To put back" }
            (leftovers(visit, &left))
            h2 { "Log" }
            @if changes.is_empty() { p { "goodput has changed no setting here yet." } }
            @else { (table("Changes, the newest first", &COLUMNS, &rows)) }
        },
    ))
}

fn leftovers(visit: &Visit, left: &[String]) -> Markup {
    html! {
        @if left.is_empty() { p { "No interrupted run left anything changed on this host." } }
        @else {
            ul { @for sentence in left { li { (words(sentence)) } } }
            @if visit.who.known { (visit.who.form("/undo", "Put everything back", &html! {})) }
            @else { p { a href="/login" { "Log in" } " to put it back." } }
        }
        p { code { "goodput settings undo" } " also puts back what runs left on hosts reached by SSH and at file servers." }
    }
}

fn undo(visit: &Visit) -> Result<Answer, Trouble> {
    let done = visit.program.undo().map_err(Trouble::failed)?;
    Ok(Answer::page(
        "Put back",
        html! {
            @if done.is_empty() { p { "There was nothing to put back." } }
            ul { @for line in &done { li { (words(line)) } } }
            p { a href="/changes" { "All changes" } }
        },
    ))
}
