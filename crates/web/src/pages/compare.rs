//! Two results side by side.

use goodput_charts::{Figure, figures_of_both, section};
use goodput_model::{Difference, Known, Record, answer};
use maud::{Markup, html};

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::layout::{plain, table, words};

/// The page.
pub const PAGE: Page = Page::of("/compare", show);

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let ids: Vec<&str> = visit.asked.all("id").collect();
    let [a, b] = ids[..] else {
        let chosen = ids.len();
        return Err(Trouble::bad(format!("choose two results to compare; {chosen} were chosen")));
    };
    let history = visit.program.history()?;
    let get = |id: &str| -> Result<Record, Trouble> {
        let number =
            id.parse().map_err(|_| Trouble::bad(format!("{id:?} is no number of a result")))?;
        Ok(history.get(number)?)
    };
    let (first, second) = (get(a)?, get(b)?);
    let [of_first, of_second] = figures_of_both([&first, &second]);
    Ok(Answer::page(
        format!("Results {a} and {b}"),
        html! {
            (facts([a, b], [&first, &second]))
            p { (words(&change(&first, &second))) }
            p { "Charts beside each other have the same scales." }
            @for [one, other] in pairs(of_first, of_second) {
                div.pair { (side("first", one)) (side("second", other)) }
            }
        },
    ))
}

/// A line of the table: what it is, and of a record.
type Fact = (&'static str, fn(&Record) -> String);

const FACTS: [Fact; 10] = [
    ("started", |r| r.started.clone()),
    ("target", |r| plain(&r.target)),
    ("goodput", |r| r.result.goodput_bits_per_s.to_string()),
    ("limited by", |r| plain(&r.verdict.summary)),
    ("cpu near", |r| percent(&r.result.near.cpu_percent)),
    ("cpu far", |r| percent(&r.result.far.cpu_percent)),
    ("mover", |r| plain(&r.plan.mover)),
    ("traffic", |r| r.plan.traffic()),
    ("flows", |r| r.plan.flows.to_string()),
    ("answer", |r| plain(&answer(r).unwrap_or_else(|| "its goodput".into()))),
];

fn facts(ids: [&str; 2], records: [&Record; 2]) -> Markup {
    let rows = html! {
        tr { th scope="row" { "result" } @for id in ids { td { a href={ "/results/" (id) } { (id) } } } }
        @for (name, of) in FACTS {
            tr { th scope="row" { (name) } @for record in records { td { (of(record)) } } }
        }
    };
    table("Both results", &["", "first", "second"], &rows)
}

fn percent(value: &Known<f64>) -> String {
    value.value().map_or("unknown".into(), |percent| format!("{percent:.0} %"))
}

fn change(a: &Record, b: &Record) -> String {
    let (from, to) = (a.result.goodput_bits_per_s.0, b.result.goodput_bits_per_s.0);
    if from <= 0.0 {
        return "The first result received nothing, so there is no ratio.".into();
    }
    let [one, other] = [a, b].map(|record| record.plan.traffic());
    if one != other {
        return format!("No ratio: {one} and {other} can't be compared.");
    }
    let difference = Difference((to / from - 1.0) * 100.0);
    format!("Goodput {difference}; single runs prove nothing, `goodput compare` does.")
}

/// The figures of both, those of one kind beside each other.
fn pairs(first: Vec<Figure>, mut second: Vec<Figure>) -> Vec<[Option<Figure>; 2]> {
    let mut pairs = Vec::new();
    for figure in first {
        let other = second.iter().position(|other| other.id == figure.id);
        let other = other.map(|at| second.remove(at));
        pairs.push([Some(figure), other]);
    }
    pairs.extend(second.into_iter().map(|figure| [None, Some(figure)]));
    pairs
}

fn side(name: &str, figure: Option<Figure>) -> Markup {
    html! {
        div {
            @match figure {
                Some(figure) => {
                    @let title = format!("{} ({name})", figure.title);
                    (section(&format!("{name}-{}", figure.id), &Figure { title, ..figure }))
                }
                None => p { "The " (name) " result has no such figure." }
            }
        }
    }
}
