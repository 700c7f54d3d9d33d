//! Two results beside each other: how much the second differs, and the charts of one kind in one row.

use goodput_model::{Difference, Record};
use maud::{Markup, html};

use crate::coded::coded;
use crate::figure::Figure;
use crate::one_run;
use crate::section::section;

/// What two results show together, as a part of a page that has [`crate::style`]. `figures` are those of
/// [`crate::figures_of_both`].
pub fn side_by_side(records: [&Record; 2], [first, second]: [Vec<Figure>; 2]) -> Markup {
    let of_one_run = ["first", "second"].into_iter().zip(records);
    let of_one_run = of_one_run.filter_map(|(name, record)| Some((name, one_run::which(record)?)));
    html! {
        p { (coded(&change(records))) }
        p { "Charts beside each other have the same scales." }
        @for (name, run) in of_one_run { p { "Of the " (name) " result, the charts over time show one run. " (run) "." } }
        @for [one, other] in pairs(first, second) {
            div.pair { (side("first", one)) (side("second", other)) }
        }
    }
}

fn change([first, second]: [&Record; 2]) -> String {
    if [first, second].into_iter().any(|record| one_run::which(record).is_some()) {
        return "No ratio: a result of several runs has its own answer.".into();
    }
    let [from, to] = [first, second].map(|record| record.result.goodput_bits_per_s.0);
    if from <= 0.0 {
        return "The first result received nothing, so there is no ratio.".into();
    }
    let [one, other] = [first, second].map(|record| record.plan.traffic());
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
