//! Every change of a setting on record, and what is to be put back.

use maud::{Markup, html};

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::asked::link;
use crate::layout::{plain, table, time, words};
use crate::program::{ChangesPart, LoggedChange};

/// The page.
pub const PAGE: Page = Page { in_navigation: Some("Changes"), ..Page::of("/changes", show) };

/// Puts back what interrupted runs left.
pub const UNDO: Page = Page::change("/undo", undo);

/// Puts back what interrupted runs left at hosts reached by SSH.
pub const UNDO_AT_HOSTS: Page = Page::change("/undo-at-hosts", undo_at_hosts);

/// Takes back one change that stands.
pub const TAKE_BACK: Page = Page::change("/take-back", take_back);

/// Removes the files that keep settings after a reboot.
pub const REMOVE_SAVED: Page = Page::change("/remove-saved", remove_saved);

/// The columns of what stands.
const STANDING: [&str; 5] = ["Time (UTC)", "Setting", "Before", "Now", "Undo"];

/// The columns of the log.
const COLUMNS: [&str; 8] =
    ["Time (UTC)", "Host", "Setting", "From", "To", "What", "Network namespace", "Run"];

/// Changes of the log on a page.
const ROWS: usize = 200;

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let before = visit.asked.field("before").map(str::parse).transpose();
    let before = before.map_err(|_| Trouble::bad("`before` is a place in the log"))?;
    let part = visit.program.changes(before, ROWS).map_err(Trouble::failed)?;
    let now = match before {
        None => now(visit)?,
        Some(_) => html! {},
    };
    Ok(Answer::page(
        "Changes of settings",
        html! {
            (now)
            h2 { "Log" }
            (log(&part.changes, before.is_some()))
            (more(&part, before.is_some()))
        },
    ))
}

/// What is changed now.
fn now(visit: &Visit) -> Result<Markup, Trouble> {
    let left = visit.program.leftovers();
    Ok(html! {
        h2 { "To put back" }
        (leftovers(visit, &left))
        (standing(visit)?)
        (saved(visit))
    })
}

fn log(changes: &[LoggedChange], is_older: bool) -> Markup {
    let rows = html! {
        @for change in changes {
            tr {
                td { (time(&change.time)) }
                td { @if change.host.is_empty() { "this one" } @else { (plain(&change.host)) } }
                td { code { (plain(&change.setting)) } }
                td { (plain(&change.from)) }
                td { (plain(&change.to)) }
                td { (plain(&change.what)) }
                td { (plain(&change.place)) }
                td { (plain(&change.run)) }
            }
        }
    };
    html! {
        @if !changes.is_empty() { (table("Changes, the newest first", &COLUMNS, &rows)) }
        @else if is_older { p { "No older change of a setting is on record." } }
        @else { p { "No change of a setting is on record yet." } }
    }
}

fn more(part: &ChangesPart, is_older: bool) -> Markup {
    let older = part.older.map(|place| link("/changes", &[("before", &place.to_string())]));
    html! {
        @if is_older || older.is_some() {
            nav aria-label="More changes" {
                ul {
                    @if is_older { li { a href="/changes" rel="first" { "Newest" } } }
                    @if let Some(older) = older { li { a href=(older) rel="next" { "Older" } } }
                }
            }
        }
    }
}

fn leftovers(visit: &Visit, left: &[String]) -> Markup {
    html! {
        @if left.is_empty() { p { "No interrupted run left anything changed on this host." } }
        @else {
            ul { @for sentence in left { li { (words(sentence)) } } }
            @if visit.who.known { (visit.who.form("/undo", "Put everything back", &html! {})) }
            @else { p { a href="/login" { "Log in" } " to put it back." } }
        }
        (left_at_hosts(visit))
        p { code { "goodput settings undo" } " also puts back what runs left at file servers." }
    }
}

/// Hosts reached by SSH are asked only on demand: a host that is gone keeps a login waiting.
fn left_at_hosts(visit: &Visit) -> Markup {
    let left = visit.program.left_at_hosts();
    html! {
        @if !left.is_empty() {
            h3 { "At hosts reached by SSH" }
            ul { @for sentence in &left { li { (words(sentence)) } } }
            p { "A host whose connection is lost puts its changes back by itself. To log in and see to it may take a minute for each host." }
            @if visit.who.known {
                (visit.who.form("/undo-at-hosts", "Log in there and put it back", &html! {}))
            }
            @else { p { a href="/login" { "Log in" } " here first." } }
        }
    }
}

fn undo_at_hosts(visit: &Visit) -> Result<Answer, Trouble> {
    Ok(outcome("Put back at hosts reached by SSH", &visit.program.undo_at_hosts()))
}

fn standing(visit: &Visit) -> Result<Markup, Trouble> {
    let standing = visit.program.standing().map_err(Trouble::failed)?;
    let rows = html! {
        @for change in &standing {
            tr {
                td { (time(&change.time)) }
                td { code { (plain(&change.setting)) } }
                td { (plain(&change.from)) }
                td { (plain(&change.to)) }
                td { @if visit.who.known { (visit.who.form("/take-back", "Take back", &fields(change))) } }
            }
        }
    };
    Ok(html! {
        @if !standing.is_empty() {
            h2 { "Still changed" }
            @if !visit.who.known { p { a href="/login" { "Log in" } " to take a change back." } }
            (table("Kept on purpose, until the next boot", &STANDING, &rows))
        }
    })
}

/// What identifies a change that stands: there is one for each setting, and it may be another one by now.
fn fields(change: &LoggedChange) -> Markup {
    html! {
        input type="hidden" name="setting" value=(change.setting);
        input type="hidden" name="time" value=(change.time);
    }
}

fn take_back(visit: &Visit) -> Result<Answer, Trouble> {
    let field = |name| visit.asked.field(name).unwrap_or_default();
    let standing = visit.program.standing().map_err(Trouble::failed)?;
    let is_asked =
        |one: &&LoggedChange| one.setting == field("setting") && one.time == field("time");
    let change = standing.iter().find(is_asked).ok_or_else(|| {
        Trouble::unknown("this change is no longer in effect; the page of changes says what is")
    })?;
    let done = visit.program.take_back(change).map_err(Trouble::failed)?;
    Ok(outcome("Taken back", &[done]))
}

fn saved(visit: &Visit) -> Markup {
    let saved = visit.program.saved();
    html! {
        @if !saved.is_empty() {
            h2 { "Kept after a reboot" }
            ul { @for file in &saved { li { (words(file)) } } }
            @if visit.who.known {
                (visit.who.form("/remove-saved", "Remove these files", &html! {}))
            }
            @else { p { a href="/login" { "Log in" } " to remove these files." } }
        }
    }
}

fn remove_saved(visit: &Visit) -> Result<Answer, Trouble> {
    Ok(outcome("Files that keep settings", &visit.program.remove_saved()))
}

fn undo(visit: &Visit) -> Result<Answer, Trouble> {
    Ok(outcome("Put back", &visit.program.undo().map_err(Trouble::failed)?))
}

fn outcome(title: &str, done: &[String]) -> Answer {
    Answer::page(
        title,
        html! {
            @if done.is_empty() { p { "There was nothing to do." } }
            ul { @for line in done { li { (words(line)) } } }
            p { a href="/changes" { "All changes" } }
        },
    )
}
