//! The days of deleted results.

use goodput_model::Seconds;
use goodput_store::{Day, Traffic};

use super::style::plain;
use super::table::Table;

/// A row for each day.
pub fn table(days: &[Day]) -> Table {
    let headings =
        ["day", "results", "traffic", "median", "least", "most", "round trip", "limit", "target"];
    let mut table = Table::new(&headings).breaking_the_last_column();
    for day in days {
        let [median, least, most] = day.goodputs().map(|rate| rate.to_string());
        let round_trip = day.round_trip_s.map(|spread| Seconds(spread.median).to_string());
        table.row(&[
            &plain(&day.day),
            &day.results.to_string(),
            &day.traffic.as_ref().map(Traffic::way).unwrap_or_default(),
            &median,
            &least,
            &most,
            &round_trip.unwrap_or_default(),
            &limit(day),
            &plain(&day.target),
        ]);
    }
    table
}

/// The most frequent limit, and how many results had it if not all did.
fn limit(day: &Day) -> String {
    let limit = plain(&day.limit);
    match day.limited == day.results {
        true => limit,
        false => format!("{limit} ({} of {})", day.limited, day.results),
    }
}
