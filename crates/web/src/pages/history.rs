//! The list of results, with a search.

use std::collections::BTreeSet;

use goodput_model::Kind;
use goodput_store::{Entry, Names, Position, Store, StoreError, Traffic, WATCH, Wanted};
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::asked::{Asked, link};
use crate::layout::{self, NONE_YET, limit, name, plain, time, words};
use crate::program::Program;

/// Results on a page.
const ROWS: u32 = 50;

/// The page.
pub const PAGE: Page = Page { in_navigation: Some("History"), ..Page::of("/", show) };

/// The fields of the search.
const FIELDS: [&str; 7] = ["q", "by", "kind", "limit", "from", "until", LATER];

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let program = &**visit.program;
    let history = program.history()?;
    let wanted = wanted(visit.asked)?;
    let Found { results: mut found, has_later } = found(&history, visit.asked, wanted)?;
    let more = found.len() > ROWS as usize;
    found.truncate(ROWS as usize);
    let watched = history.watched_among(&found)?;
    let names = history.names()?;
    let nothing = match found.is_empty() {
        true => Some(nothing(visit.asked, &history)?),
        false => None,
    };
    let older = found.last().filter(|_| more).map(|last| page_link(visit.asked, last));
    Ok(Answer::page(
        "History",
        html! {
            (search(visit.asked, &names, program))
            @if has_later { (later(&with_fields(visit.asked, (LATER, "1")))) }
            @match nothing {
                Some(nothing) => p { (words(nothing)) },
                None => (list(&found, &watched, has_several(&names), program)),
            }
            (pages(visit.asked, older.as_deref()))
        },
    ))
}

fn wanted(asked: &Asked) -> Result<Wanted, Trouble> {
    let text = |name| asked.field(name).map(str::to_owned);
    let wanted = Wanted {
        before: place(asked)?,
        text: text("q"),
        limited_by: text("limit"),
        measured_by: text("by"),
        from: day(asked, "from")?,
        // Behind all times of the day: they go on with a T.
        until: day(asked, "until")?.map(|day| day + "U"),
        limit: ROWS + 1,
        ..Wanted::default()
    };
    if wanted.ends_before_it_begins() {
        return Err(Trouble::bad("the first day is after the last one; exchange them"));
    }
    Ok(wanted.of_kind(asked.field("kind")))
}

/// The field that asks for the results that began later than now.
pub const LATER: &str = "later";

/// How far a time may be ahead, seconds: clocks that are kept right differ by less.
const AHEAD_S: i64 = 300;

/// Results that a page shows.
pub struct Found {
    pub results: Vec<Entry>,
    /// Whether there are others, which began later than now.
    pub has_later: bool,
}

/// What is searched for. Results of a clock that was ahead would be the first for as long as it was ahead: they are shown if
/// they are asked for, or if there are no others.
pub fn found(history: &Store, asked: &Asked, wanted: Wanted) -> Result<Found, StoreError> {
    let soon = Timestamp::now() + SignedDuration::from_secs(AHEAD_S);
    let soon = soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let Some(later) = wanted.later(&soon) else {
        return Ok(Found { results: history.search(&wanted)?, has_later: false });
    };
    let results = match asked.field(LATER) {
        Some(_) => Vec::new(),
        None => history.search(&wanted.by(&soon))?,
    };
    if results.is_empty() {
        return Ok(Found { results: history.search(&later)?, has_later: false });
    }
    let one = Wanted { limit: 1, ..later };
    let has_later = one.before.is_none() && !history.search(&one)?.is_empty();
    Ok(Found { results, has_later })
}

/// Says that there are results of later times, and leads to them.
pub fn later(link: &str) -> Markup {
    html! {
        p.doubt {
            "Some results began later than now: a clock was ahead. They are not in this list. "
            a href=(link) { "Show them" }
        }
    }
}

/// The field that asks for the results after a place in the list.
pub const BEFORE: &str = "before";

/// The place in the list in the field [`BEFORE`], if it has one.
pub fn place(asked: &Asked) -> Result<Option<Position>, Trouble> {
    let Some(place) = asked.field(BEFORE) else { return Ok(None) };
    let parts = place.rsplit_once(',').and_then(|(started, id)| Some((started, id.parse().ok()?)));
    let position = parts.map(|(started, id)| Position { started: started.into(), id });
    position.map(Some).ok_or_else(|| {
        Trouble::bad(format!("{place:?} is no place in the list; begin at its first page"))
    })
}

/// What [`place`] reads: that of a result.
pub fn place_of(entry: &Entry) -> String {
    format!("{},{}", entry.started, entry.id)
}

/// The day in the field `name`, if it has one.
pub fn day(asked: &Asked, name: &str) -> Result<Option<String>, Trouble> {
    let Some(day) = asked.field(name) else { return Ok(None) };
    // A day as ISO 8601 writes it, which sorts like the times of the results.
    match day.parse::<jiff::civil::Date>() {
        Ok(day) => Ok(Some(day.to_string())),
        Err(_) => Err(Trouble::bad(format!("{day:?} is no day; write it like 2026-01-31"))),
    }
}

/// Whether more than one site or host measured: who did is then worth a column.
fn has_several(names: &Names) -> bool {
    names.measured_by.len() > 1
}

fn search(asked: &Asked, names: &Names, program: &dyn Program) -> Markup {
    let given = |name: &str| asked.field(name).unwrap_or_default();
    html! {
        form.search method="get" action="/" role="search" {
            p { label for="q" { "Target" }
                input #q type="search" name="q" value=(given("q")) list="targets"; }
            datalist #targets { @for target in &names.targets { option value=(target) {} } }
            @if has_several(names) {
                p { label for="by" { "Measured by" }
                    select #by name="by" {
                        option value="" { "any" }
                        @for who in &names.measured_by {
                            option value=(who) selected[given("by") == who] { (plain(who)) }
                        }
                    } }
            }
            p { label for="kind" { "Kind" }
                select #kind name="kind" {
                    option value="" { "any" }
                    @for kind in Kind::ALL.map(Kind::name).into_iter().chain([WATCH]) {
                        option value=(kind) selected[given("kind") == kind] { (kind) }
                    }
                } }
            p { label for="limit" { "Limit" }
                select #limit name="limit" {
                    option value="" { "any" }
                    @for rule in &names.limits {
                        option value=(rule) selected[given("limit") == rule] { (limit(rule, program)) }
                    }
                } }
            p { label for="from" { "From (UTC)" } input #from type="date" name="from" value=(given("from")); }
            p { label for="until" { "Until (UTC)" } input #until type="date" name="until" value=(given("until")); }
            p { button type="submit" { "Search" } " " a href="/" { "Show all" } }
        }
    }
}

/// Instead of an empty list.
fn nothing(asked: &Asked, history: &Store) -> Result<&'static str, StoreError> {
    let is_search = FIELDS.iter().any(|name| asked.field(name).is_some());
    Ok(match is_search {
        true => "No result fits this search.",
        false if history.targets()?.is_empty() => NONE_YET,
        false => "All results were deleted. The paths have their days.",
    })
}

fn list(found: &[Entry], watched: &BTreeSet<i64>, with_who: bool, program: &dyn Program) -> Markup {
    let who = if with_who { &["By"][..] } else { &[] };
    let columns = [
        &["Compare", "Number", "Started (UTC)"][..],
        who,
        &["Target", "Traffic", "Goodput", "Limit", "Kind"],
    ];
    let columns = columns.concat();
    let rows = html! { @for entry in found { (row(entry, watched, with_who, program)) } };
    html! {
        form method="get" action="/compare" {
            (layout::list("Results, the newest first", &columns, &rows))
            p { button type="submit" { "Compare two results" } }
        }
    }
}

fn row(entry: &Entry, watched: &BTreeSet<i64>, with_who: bool, program: &dyn Program) -> Markup {
    let id = entry.id;
    html! {
        tr {
            td {
                input type="checkbox" name="id" value=(id) disabled[entry.readable().is_err()]
                    aria-label={ "Compare result " (id) };
            }
            td { a href={ "/results/" (id) } { (id) } }
            td { (time(&entry.started)) }
            @if with_who { td { (name(entry.measured_by.as_deref().unwrap_or("?"))) } }
            td { a href=(link("/path", &[("target", &entry.target)])) { (name(&entry.target)) } }
            td { (traffic(entry)) }
            td.rate { (entry.goodput) }
            td { (limited(entry, program)) }
            td { (kind(entry, watched)) }
        }
    }
}

/// How a result was measured; `unknown` of what an older goodput kept and damaged.
pub fn traffic(entry: &Entry) -> String {
    way(entry.traffic.as_ref())
}

/// The same of any traffic.
pub fn way(traffic: Option<&Traffic>) -> String {
    traffic.map_or("unknown".into(), |traffic| plain(&traffic.to_string()))
}

/// The kind of command, `watch` if the result is one of the `watched`, and what it found if it had several runs.
pub fn kind(entry: &Entry, watched: &BTreeSet<i64>) -> Markup {
    let kind = if watched.contains(&entry.id) { WATCH } else { &entry.kind };
    html! { (name(kind)) @if let Some(answer) = &entry.answer { p { (words(answer)) } } }
}

/// What limited a result, and why its record can't be read if a newer goodput wrote it.
pub fn limited(entry: &Entry, program: &dyn Program) -> Markup {
    html! {
        (name(&limit(&entry.limit, program)))
        @if let Err(why) = entry.readable() { p.doubt { (words(&format!("can't be read: {why}"))) } }
    }
}

/// The same search, from the result after the `last` one of a page on.
fn page_link(asked: &Asked, last: &Entry) -> String {
    with_fields(asked, (BEFORE, &place_of(last)))
}

/// The same search with one more field.
fn with_fields(asked: &Asked, more: (&str, &str)) -> String {
    let given = FIELDS.iter().map(|name| (*name, asked.field(name).unwrap_or_default()));
    link("/", &given.chain([more]).collect::<Vec<_>>())
}

fn pages(asked: &Asked, older: Option<&str>) -> Markup {
    let is_later = asked.field(LATER).is_some();
    let of_search = |name: &&str| *name != LATER;
    let fields = FIELDS.into_iter().filter(of_search);
    let fields: Vec<_> = fields.map(|name| (name, asked.field(name).unwrap_or_default())).collect();
    let newest = asked.field(BEFORE).is_some() || is_later;
    let newest = newest.then(|| link("/", &fields));
    html! {
        @if newest.is_some() || older.is_some() {
            nav aria-label="More results" {
                ul {
                    @if let Some(newest) = newest { li { a href=(newest) rel="first" { "Newest" } } }
                    @if let Some(older) = older { li { a href=(older) rel="next" { "Older" } } }
                }
            }
        }
    }
}
