//! Two results beside each other: how much the second differs, and the charts of one kind in one row.

use goodput_model::Record;
use goodput_model::answer::difference;
use maud::{Markup, html};

use crate::coded::coded;
use crate::figure::Figure;
use crate::one_run;
use crate::section::section;
use crate::words::capital;

/// What two results show together, as a part of a page that has [`crate::style`]. `figures` are those of
/// [`crate::figures_of_both`].
pub fn side_by_side(records: [&Record; 2], [first, second]: [Vec<Figure>; 2]) -> Markup {
    html! {
        @for sentence in before(records) { p { (coded(&sentence)) } }
        @for [one, other] in pairs(first, second) {
            div.pair { (side("first", one)) (side("second", other)) }
        }
    }
}

/// What is said before the charts of two results.
pub fn before(records: [&Record; 2]) -> Vec<String> {
    let differ = format!("{}.", capital(&difference(records[0], records[1])));
    let one_run = |(name, record)| {
        let run = one_run::which(record)?;
        Some(format!("Of the {name} result, the charts over time show one run. {run}."))
    };
    let of_one_run = ["first", "second"].into_iter().zip(records).filter_map(one_run);
    let same = "Charts beside each other have the same scales.".into();
    [differ, same].into_iter().chain(of_one_run).collect()
}

/// The figures of both, those of one kind beside each other.
pub fn pairs(first: Vec<Figure>, mut second: Vec<Figure>) -> Vec<[Option<Figure>; 2]> {
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
