//! A change of a path, for a page in a browser.

use goodput_web::PathChange;

use super::text::{amount, side, sides, with_it};
use super::{Changed, Event};
use crate::report::change_point::ChangePoint;
use crate::report::shifted::Shifted;
use crate::report::style::plain;

/// A change for a page in a browser; none for other events.
pub fn for_a_page(event: &Event) -> Option<PathChange> {
    match event {
        Event::Changed(change) => Some(changed_for_a_page(change)),
        Event::Shifted(shift) => Some(shifted_for_a_page(shift)),
        _ => None,
    }
}

fn changed_for_a_page(change: &Changed) -> PathChange {
    let Changed { found, percent, low_percent, high_percent, .. } = change;
    let again = if found.takes_back.is_some() { "as before again: " } else { "" };
    let (amount, tests) = (format!("gives {again}{}", amount(*percent)), found.tests);
    let amount = format!("{amount} ({low_percent:+.0} to {high_percent:+.0} %, {tests} tests)");
    let sides = [
        side(&change.before_bits_per_s.to_string(), found.limit_before.as_ref()),
        side(&change.since_bits_per_s.to_string(), found.limit_since.as_ref()),
    ];
    for_the_page(found, amount, sides)
}

fn shifted_for_a_page(shift: &Shifted) -> PathChange {
    let again = if shift.found.takes_back.is_some() { ", as before again" } else { "" };
    for_the_page(&shift.found, format!("{}{again}", shift.what()), sides(shift))
}

/// Who found it, if that is another host.
fn by(found: &ChangePoint) -> String {
    let by = |host: &String| format!(", found by a watch on {}", plain(host));
    found.of_host.as_ref().map(by).unwrap_or_default()
}

fn for_the_page(found: &ChangePoint, amount: String, [before, after]: [String; 2]) -> PathChange {
    PathChange {
        since: found.since.clone(),
        whose: found.subject(),
        amount: amount + &by(found),
        before,
        after,
        with_it: found.test.iter().chain(&found.changed).map(with_it).collect(),
        records: found.records(),
    }
}
