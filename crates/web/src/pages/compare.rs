//! Two results side by side.

use goodput_charts::{figures_of_both, side_by_side};
use goodput_model::{Known, Record, answer};
use maud::{Markup, html};

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::layout::{plain, table};

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
        Ok(visit.program.in_words(history.get(number)?))
    };
    let (first, second) = (get(a)?, get(b)?);
    Ok(Answer::page(
        format!("Results {a} and {b}"),
        html! {
            (facts([a, b], [&first, &second]))
            (side_by_side([&first, &second], figures_of_both([&first, &second], |_| true)))
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
