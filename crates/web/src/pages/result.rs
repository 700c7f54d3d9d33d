//! One result: the page of `goodput report`, and the record itself.

use goodput_charts::{figures, printed, sections, subject, summary};
use goodput_model::Record;
use maud::{Markup, html};

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::asked::link;

/// The page.
pub const PAGE: Page = Page::of("/results/{}", show);

/// The record, as `--json` prints it.
pub const RECORD: Page = Page::of("/results/{}/json", record);

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let id: i64 = visit.number()?;
    let record = visit.program.in_words(visit.program.history()?.get(id)?);
    Ok(Answer::page(
        subject(&record),
        html! {
            (links(id, &record))
            (summary(&record))
            (printed(&record, &visit.program.report(&record)))
            (sections(&record, &figures(&record, |_| true)))
        },
    ))
}

fn links(id: i64, record: &Record) -> Markup {
    html! {
        ul.links {
            li { a href=(link("/path", &[("target", &record.target)])) { "This path over time" } }
            li { a href={ "/results/" (id) "/json" } { "The record (JSON)" } }
        }
    }
}

fn record(visit: &Visit) -> Result<Answer, Trouble> {
    let id: i64 = visit.number()?;
    let record = visit.program.history()?.get(id)?;
    let content = record.to_json().map_err(|why| Trouble::failed(why.to_string()))?;
    Ok(Answer::Download { name: format!("goodput-{id}.json"), content })
}
