//! The matrix of a mesh: what is known of each pair, and what explains the slow ones.

use goodput_fleet::{
    CELL_VALUES, Cause, Cell, CellValue, Explanation, Matrix, SLOW_PERCENT, Surveyed,
    left_out_in_words,
};
use goodput_model::Known;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::history::day;
use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::asked::Asked;
use crate::layout::{limit, plain, table, words};
use crate::program::{MeshAsked, Program};

/// The page.
pub const PAGE: Page = Page { in_navigation: Some("Matrix"), ..Page::of("/matrix", show) };

/// Days that are looked at, unless the visitor says.
const DAYS: i64 = 30;
/// A pair without a test; a site with itself, and what the mesh does not have.
const NO_TEST: &str = "·";
const NO_PAIR: &str = "–";

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    let (value, wanted) = (value(visit.asked)?, wanted(visit.asked)?);
    let history = visit.program.history()?;
    let found = visit.program.mesh(&history, &wanted).map_err(Trouble::failed)?;
    Ok(Answer::page(
        "Matrix",
        html! {
            (form(value, &wanted))
            @match &found.matrix {
                Known::Missing(why) => p {
                    (words(&format!("Since {}, {why}; `goodput history import` takes in the results of other hosts.", wanted.since)))
                },
                Known::Value(matrix) => (shown(matrix, value, &**visit.program)),
            }
            (notes(&found))
        },
    ))
}

/// What the cells show.
fn value(asked: &Asked) -> Result<&'static CellValue, Trouble> {
    let id = asked.field("show").unwrap_or(CELL_VALUES[0].id);
    let found = CELL_VALUES.iter().find(|value| value.id == id);
    let ids = CELL_VALUES.map(|value| value.id).join(", ");
    found.ok_or_else(|| Trouble::bad(format!("{id:?} is nothing to show; choose one of {ids}")))
}

fn wanted(asked: &Asked) -> Result<MeshAsked, Trouble> {
    let since = match day(asked, "from")? {
        Some(day) => day,
        None => {
            let begin = Timestamp::now() - SignedDuration::from_hours(24 * DAYS);
            begin.strftime("%Y-%m-%d").to_string()
        }
    };
    let typed = asked.field("slow").map_or(Ok(SLOW_PERCENT), str::parse);
    let slow_percent = typed.ok().filter(|percent| *percent > 0.0 && *percent < 100.0);
    let slow_percent =
        slow_percent.ok_or_else(|| Trouble::bad("`slow` is a number above 0 and below 100"))?;
    Ok(MeshAsked { since, slow_percent })
}

fn form(value: &CellValue, wanted: &MeshAsked) -> Markup {
    html! {
        form.search method="get" action="/matrix" {
            p { label for="show" { "Show" }
                select #show name="show" {
                    @for one in &CELL_VALUES {
                        option value=(one.id) selected[one.id == value.id] { (one.title) }
                    }
                } }
            p { label for="from" { "Tests since (UTC)" }
                input #from type="date" name="from" value=(wanted.since); }
            p { label for="slow" { "Slow from (%)" }
                input #slow type="number" name="slow" min="0.1" max="99.9" step="0.1" value=(wanted.slow_percent); }
            p { button type="submit" { "Show" } }
        }
    }
}

fn shown(matrix: &Matrix, value: &CellValue, program: &dyn Program) -> Markup {
    let naming = |rule: &str| limit(rule, program);
    let quoted = |rule: &str| format!("“{}”", limit(rule, program));
    html! {
        p.about { (plain(&matrix.in_words())) "." }
        @match &matrix.explanation {
            Known::Missing(why) => p { (words(&format!("What explains slow pairs is unknown: {why}."))) },
            Known::Value(explanation) => (explained(matrix, explanation, &quoted)),
        }
        (grid(matrix, |cell| (value.shown)(cell, &naming).map(|text| plain(&text)), value.title))
        @let listed: Vec<Cell<'_>> = matrix.slow_cells().collect();
        @if !listed.is_empty() { (pairs(&listed, &naming)) }
    }
}

fn explained(
    matrix: &Matrix,
    explanation: &Explanation,
    naming: &dyn Fn(&str) -> String,
) -> Markup {
    let slow = explanation.slow.len();
    let (undecided, why_undecided) = explanation.undecided_in_words();
    let unexplained = explanation.unexplained.iter().map(|[from, to]| format!("{from} → {to}"));
    let unexplained = unexplained.collect::<Vec<_>>().join(", ");
    html! {
        h2 { "What explains the slow pairs" }
        @if let Some(slow) = matrix.slow_in_words() { p { (slow) "." } }
        ul {
            @for cause in &explanation.causes { (reason(cause, slow, naming)) }
            @if !unexplained.is_empty() {
                li { "No cause: " (plain(&unexplained)) "; " (explanation.spread_in_words()) "." }
            }
            @if !undecided.is_empty() {
                li { "Undecided: " (plain(&undecided.join(", "))) "; " (why_undecided) "." }
            }
        }
    }
}

fn reason(cause: &Cause, slow: usize, naming: &dyn Fn(&str) -> String) -> Markup {
    html! {
        li {
            strong { (plain(&cause.claim(slow))) } ": " (plain(&cause.evidence(naming))) "."
            @if !cause.records.is_empty() { " Records:" }
            @for id in &cause.records { " " a href={ "/results/" (id) } { (id) } }
        }
    }
}

/// Who sends has a row, who receives a column.
fn grid(matrix: &Matrix, text: impl Fn(&Cell<'_>) -> Option<String>, title: &str) -> Markup {
    let names = matrix.sites.iter().map(|name| plain(name));
    let columns: Vec<String> = [String::from("From")].into_iter().chain(names).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows = html! {
        @for (sender, cells) in matrix.rows() {
            tr {
                th scope="row" { (plain(sender)) }
                @for cell in cells { (square(matrix, cell, &text)) }
            }
        }
    };
    let caption = format!("{title}, from each site to each (a dot: unknown)");
    table(&caption, &columns, &rows)
}

fn square(
    matrix: &Matrix,
    cell: Option<Cell<'_>>,
    text: &impl Fn(&Cell<'_>) -> Option<String>,
) -> Markup {
    let Some(cell) = cell else { return html! { td { (NO_PAIR) } } };
    let known = text(&cell);
    html! {
        td {
            @match (known, cell.record.value()) {
                (Some(known), Some(id)) => a href={ "/results/" (id) } { (known) },
                (known, _) => (known.as_deref().unwrap_or(NO_TEST)),
            }
            // Colour alone would say nothing to many.
            @if matrix.is_slow(&cell) { " " strong.slow { "slow" } }
        }
    }
}

/// All that is known of these cells.
fn pairs(cells: &[Cell<'_>], naming: &dyn Fn(&str) -> String) -> Markup {
    let columns: Vec<_> =
        ["From", "To"].into_iter().chain(CELL_VALUES.map(|one| one.title)).collect();
    let rows = html! {
        @for cell in cells {
            tr {
                td { (plain(cell.sender)) }
                td { (plain(cell.receiver)) }
                @for value in &CELL_VALUES {
                    td { ((value.shown)(cell, naming).map_or(NO_TEST.into(), |text| plain(&text))) }
                }
            }
        }
    };
    table("Slow pairs", &columns, &rows)
}

/// What says nothing, and what can't be read.
fn notes(found: &Surveyed) -> Markup {
    let left_out = left_out_in_words(&found.left_out);
    html! {
        @if found.matrix.value().is_some() && !left_out.is_empty() { p { "Left out: " (left_out) "." } }
        @for why in &found.unreadable { p.doubt { (words(why)) } }
    }
}
