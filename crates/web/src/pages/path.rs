//! One path, by all results of its target.

use std::collections::BTreeSet;

use goodput_charts::{Moment, over_time, section};
use goodput_model::Seconds;
use goodput_store::{Day, DayPosition, Entry, MAX_NAMES, Store, Wanted};
use jiff::Timestamp;
use maud::{Markup, html};

use super::history::{
    BEFORE, Found, LATER, found, kind, later, limited, place, place_of, traffic, way,
};
use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::asked::{Asked, link};
use crate::layout::{self, NONE_YET, limit, name, plain, table, time, words};
use crate::program::{PathChange, Program};

/// Results that are shown, the newest, and rows of days on a page.
const ROWS: u32 = 500;

/// The field that asks for the days after a place in their list.
const DAYS_BEFORE: &str = "days_before";

/// The page.
pub const PAGE: Page = Page { in_navigation: Some("Paths"), ..Page::of("/path", show) };

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let history = visit.program.history()?;
    let Some(target) = visit.asked.field("target") else {
        return Ok(Answer::page("Paths", targets(&history.targets()?)));
    };
    let program = &**visit.program;
    let shown = part(visit.asked, &history, target)?;
    let watched = history.watched_among(&shown.results)?;
    let changes = program.path_changes(&history, target)?;
    Ok(Answer::page(
        format!("The path to {target}"),
        html! {
            @if let (Which::Newest, Some(_)) = (shown.which, &shown.older) {
                p { "These are the newest " (ROWS) " results. " (shown.older_results(target)) " have pages of their own." }
            }
            @if shown.has_later { (later(&link("/path", &[("target", target), (LATER, "1")]))) }
            (chart(target, &shown))
            (changed(&changes))
            @if !shown.results.is_empty() { (list(&shown, &watched, program)) }
            (past(&shown.days, program))
            (shown.pages(target))
        },
    ))
}

/// Which part of a path a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// The newest results and days.
    Newest,
    /// Results before others.
    OlderResults,
    /// Results that began later than now.
    LaterResults,
    /// Days before others.
    OlderDays,
}

/// What a page shows of a path.
struct Shown {
    which: Which,
    results: Vec<Entry>,
    /// Whether there are others, which began later than now.
    has_later: bool,
    /// Where the results before these begin, if there are some.
    older: Option<String>,
    days: Vec<Day>,
    /// Where the days before these begin, if there are some.
    older_days: Option<String>,
}

/// The part that is asked for.
fn part(asked: &Asked, history: &Store, target: &str) -> Result<Shown, Trouble> {
    let (before, days_before) = (place(asked)?, place_of_days(asked)?);
    let which = match (&before, &days_before) {
        _ if asked.field(LATER).is_some() => Which::LaterResults,
        (None, None) => Which::Newest,
        (Some(_), _) => Which::OlderResults,
        (None, Some(_)) => Which::OlderDays,
    };
    let most = ROWS as usize;
    let mut shown = Found { results: Vec::new(), has_later: false };
    if which != Which::OlderDays {
        let target = Some(target.into());
        let wanted = Wanted { target, before, limit: ROWS + 1, ..Wanted::default() };
        shown = found(history, asked, wanted)?;
    }
    let Found { mut results, has_later } = shown;
    let more = results.len() > most;
    results.truncate(most);
    let mut days = match which {
        Which::OlderResults | Which::LaterResults => Vec::new(),
        Which::Newest | Which::OlderDays => {
            history.days_after(target, days_before.as_ref(), most + 1)?
        }
    };
    let more_days = days.len() > most;
    days.truncate(most);
    if results.is_empty() && days.is_empty() {
        return Err(Trouble::unknown(match (which, &days_before) {
            (Which::Newest, _) => format!("there is no result of {target:?}"),
            (Which::LaterResults, _) => format!("no result of {target:?} began later than now"),
            (_, Some(place)) => {
                format!("there are no days of {target:?} before {:?}", place.day)
            }
            (_, None) => format!("there is no older result of {target:?}"),
        }));
    }
    let older = results.last().filter(|_| more).map(place_of);
    let older_days = days.last().filter(|_| more_days).map(in_link);
    Ok(Shown { which, results, has_later, older, days, older_days })
}

/// The place in the list of days in the field [`DAYS_BEFORE`], if it has one.
fn place_of_days(asked: &Asked) -> Result<Option<DayPosition>, Trouble> {
    let Some(place) = asked.field(DAYS_BEFORE) else { return Ok(None) };
    serde_json::from_str(place).map(Some).map_err(|_| {
        Trouble::bad(format!("{place:?} is no place in the list of days; begin at its first page"))
    })
}

/// What [`place_of_days`] reads: the place of a day. As JSON, because its parts are any text.
fn in_link(day: &Day) -> String {
    serde_json::to_string(&DayPosition::of(day)).unwrap_or_default()
}

/// The goodput of single runs, and that of days.
fn chart(target: &str, shown: &Shown) -> Markup {
    let moment = |entry: &Entry| Moment {
        started: entry.started.clone(),
        goodput: entry.goodput,
        series: traffic(entry),
        results: 1,
        range: [entry.goodput; 2],
    };
    // The number of a command with several runs is that of one of them, perhaps with a setting that was made worse.
    let kinds = Day::kinds();
    let of_one_run = |entry: &&Entry| kinds.contains(&&*entry.kind);
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let noons = shown.days.iter().map(|day| noon(day, &now));
    let moments: Vec<_> =
        shown.results.iter().filter(of_one_run).map(moment).chain(noons).collect();
    match over_time(&plain(target), &moments) {
        Ok(figure) => section("over-time", &figure),
        Err(why) => {
            html! { p.doubt { "The chart could not be drawn: " (words(&why.to_string())) "." } }
        }
    }
}

impl Shown {
    /// A link to the results before these; nothing if there are none.
    fn older_results(&self, target: &str) -> Markup {
        let later = if self.which == Which::LaterResults { "1" } else { "" };
        html! {
            @if let Some(older) = &self.older {
                a href=(link("/path", &[("target", target), (LATER, later), (BEFORE, older)])) rel="next" { "Older results" }
            }
        }
    }

    /// Links to the other parts.
    fn pages(&self, target: &str) -> Markup {
        let are_old = self.which != Which::Newest;
        html! {
            @if are_old || self.older.is_some() || self.older_days.is_some() {
                nav aria-label="More of this path" {
                    ul {
                        @if are_old { li { a href=(link("/path", &[("target", target)])) rel="first" { "Newest" } } }
                        @if self.older.is_some() { li { (self.older_results(target)) } }
                        @if let Some(place) = &self.older_days {
                            li { a href=(link("/path", &[("target", target), (DAYS_BEFORE, place)])) rel="next" { "Older days" } }
                        }
                    }
                }
            }
        }
    }

    fn caption(&self) -> String {
        match (self.which, self.results.len()) {
            (Which::OlderResults, 1) => "One older result".into(),
            (Which::OlderResults, several) => format!("{several} older results"),
            (Which::LaterResults, 1) => "One result that began later than now".into(),
            (Which::LaterResults, several) => {
                format!("{several} results that began later than now")
            }
            (_, 1) if !self.has_later => "The only result".into(),
            (_, 1) => "The newest result".into(),
            (_, several) if self.older.is_none() && !self.has_later => {
                format!("All {several} results")
            }
            (_, several) => format!("The newest {several} results"),
        }
    }
}

/// A day of deleted results, at its noon; today's may have been deleted before.
fn noon(day: &Day, now: &str) -> Moment {
    let noon = format!("{}T12:00:00Z", day.day);
    let [goodput, range @ ..] = day.goodputs();
    Moment {
        started: noon.min(now.into()),
        goodput,
        series: way(day.traffic.as_ref()),
        results: day.results,
        range,
    }
}

fn targets(targets: &[String]) -> Markup {
    html! {
        @if targets.is_empty() { p { (words(NONE_YET)) } }
        ul { @for target in targets { li { a href=(link("/path", &[("target", target)])) { (name(target)) } } } }
        @if targets.len() >= MAX_NAMES {
            p { "At most " (MAX_NAMES) " targets are listed; " a href="/" { "search the history" } " for others." }
        }
    }
}

/// What the tests of watches show: since when the path gives more or less, or takes longer, and what changed with it.
fn changed(changes: &[PathChange]) -> Markup {
    html! {
        @if !changes.is_empty() { h2 { "Changes that watches found" } }
        @for PathChange { since, whose, amount, before, after, with_it, records: [first, second] } in changes.iter().rev() {
            h3 { "Since " (time(since)) (whose) " " (plain(amount)) }
            p { "Before: " (words(before)) ". Since: " (words(after)) ". "
                a href={ "/compare?id=" (first) "&id=" (second) } { "Compare" } }
            @if with_it.is_empty() { p { "Nothing else that either end reports changed with it." } }
            @else { p { "Changed with it:" } ul { @for fact in with_it { li { (words(fact)) } } } }
        }
    }
}

fn list(shown: &Shown, watched: &BTreeSet<i64>, program: &dyn Program) -> Markup {
    let rows = html! {
        @for entry in &shown.results {
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
    layout::list(
        &shown.caption(),
        &["Number", "Started (UTC)", "Traffic", "Goodput", "Limit", "Kind"],
        &rows,
    )
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
                td {
                    (limit(&day.limit, program))
                    @if day.limited < day.results { " (" (day.limited) " of " (day.results) ")" }
                }
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

#[cfg(test)]
mod tests {
    use goodput_store::{Spread, Traffic};

    use super::*;

    fn day() -> Day {
        Day {
            day: "2026-01-31".into(),
            target: "nas".into(),
            kind: "test".into(),
            traffic: None,
            results: 96,
            goodput: Spread { least: 1e6, median: 2e6, most: 3e6, results: 96 },
            round_trip_s: None,
            lost_share: None,
            limit: "path-rate".into(),
            limited: 12,
        }
    }

    #[test]
    fn a_day_is_in_the_chart_at_its_noon_and_never_later_than_now() {
        let at = |now: &str| noon(&day(), now).started;
        assert_eq!(at("2026-02-01T09:00:00Z"), "2026-01-31T12:00:00Z");
        assert_eq!(at("2026-01-31T09:00:00Z"), "2026-01-31T09:00:00Z");
    }

    #[test]
    fn a_link_names_the_place_of_a_day_whatever_its_texts_are() {
        let traffic = Some(Traffic { transport: "a,\"&".into(), direction: "ü".into(), flows: 7 });
        let day = Day { traffic, ..day() };
        let fields = vec![(DAYS_BEFORE.into(), in_link(&day))];
        let asked = Asked { fields, ..Asked::default() };
        assert_eq!(place_of_days(&asked).ok().flatten(), Some(DayPosition::of(&day)));
    }

    #[test]
    fn a_page_leads_to_older_results_and_older_days_and_back() {
        let pages = |which, target: &str, older: Option<&str>, day: Option<&str>| {
            let [older, older_days] = [older, day].map(|text| text.map(String::from));
            let (results, days, has_later) = (Vec::new(), Vec::new(), false);
            let shown = Shown { which, results, has_later, older, days, older_days };
            shown.pages(target).into_string()
        };
        let newest = pages(Which::Newest, "a&b", Some("2026,7"), Some("2026-01-31"));
        assert!(newest.contains("/path?target=a%26b&amp;days_before=2026-01-31"), "{newest}");
        assert!(newest.contains("/path?target=a%26b&amp;before=2026%2C7"), "{newest}");
        assert!(!newest.contains(">Newest<"), "{newest}");
        assert!(pages(Which::Newest, "a", None, None).is_empty());
        let later = pages(Which::LaterResults, "a", Some("2036,7"), None);
        assert!(later.contains("/path?target=a&amp;later=1&amp;before=2036%2C7"), "{later}");
        for which in [Which::OlderResults, Which::OlderDays, Which::LaterResults] {
            let oldest = pages(which, "a", None, None);
            assert!(oldest.contains("\"/path?target=a\""), "{oldest}");
            assert!(!oldest.contains("Older"), "{oldest}");
        }
    }

    #[test]
    fn a_day_counts_with_all_its_results() {
        let moment = noon(&day(), "2026-02-01T09:00:00Z");
        assert_eq!((moment.results, moment.goodput.0), (96, 2e6));
        assert_eq!(moment.range.map(|rate| rate.0), [1e6, 3e6]);
    }
}
