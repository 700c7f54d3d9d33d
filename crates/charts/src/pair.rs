//! Two results beside each other: how much the second differs, and the charts of one kind in one row.

use goodput_model::Record;
use goodput_model::answer::difference;
use maud::{Markup, html};

use crate::coded::coded;
use crate::figure::Figure;
use crate::kin::Kin;
use crate::one_run;
use crate::section::section;
use crate::words::capital;

/// What the two results are called.
pub const NAMES: [&str; 2] = ["first", "second"];

/// What two results show together, as a part of a page that has [`crate::style`]. `figures` are those of
/// [`crate::figures_of_both`].
pub fn side_by_side(records: [&Record; 2], figures: [Vec<Figure>; 2]) -> Markup {
    let Sides { pairs, alone } = sides(records, figures);
    html! {
        @for sentence in before(records) { p { (coded(&sentence)) } }
        @for [one, other] in pairs {
            div.pair { (side(NAMES[0], one)) (side(NAMES[1], other)) }
        }
        @for (name, figures) in NAMES.into_iter().zip(alone) {
            @if !figures.is_empty() {
                h2 { (only(name)) }
                div.pair { @for figure in figures { (side(name, figure)) } }
            }
        }
    }
}

/// The heading of figures that only one result has.
pub fn only(name: &str) -> String {
    format!("Only the {name} result has these")
}

/// What is said before the charts of two results.
pub fn before(records: [&Record; 2]) -> Vec<String> {
    let differ = format!("{}.", capital(&difference(records[0], records[1])));
    let one_run = |(name, record)| {
        let run = one_run::which(record)?;
        Some(format!("Of the {name} result, the charts over time show one run. {run}."))
    };
    let of_one_run = NAMES.into_iter().zip(records).filter_map(one_run);
    let same = "Charts beside each other have the same scales.".into();
    let shared = Kin::of(records).shared().map(|sender| {
        format!("Both results have the direction in which the {sender} host sends: its charts stand beside each other.")
    });
    [differ, same].into_iter().chain(shared).chain(of_one_run).collect()
}

/// The figures of two results.
pub struct Sides {
    /// Those of one kind, which stand beside each other.
    pub pairs: Vec<[Figure; 2]>,
    /// Those that only one result has.
    pub alone: [Vec<Figure>; 2],
}

/// What stands beside what.
pub fn sides(records: [&Record; 2], [first, mut second]: [Vec<Figure>; 2]) -> Sides {
    let kin = Kin::of(records);
    let (mut pairs, mut alone) = (Vec::new(), Vec::new());
    for figure in first {
        match second.iter().position(|other| kin.are([&figure.id, &other.id])) {
            Some(at) => pairs.push([figure, second.remove(at)]),
            None => alone.push(figure),
        }
    }
    Sides { pairs, alone: [alone, second] }
}

fn side(name: &str, figure: Figure) -> Markup {
    let title = format!("{} ({name})", figure.title);
    html! { div { (section(&format!("{name}-{}", figure.id), &Figure { title, ..figure })) } }
}
