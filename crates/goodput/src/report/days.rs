//! The days of deleted results.

use goodput_model::Seconds;
use goodput_store::Day;

use super::style::plain;
use super::table::Table;

/// A row for each day.
pub fn table(days: &[Day]) -> Table {
    let headings = [
        "day",
        "results",
        "kind",
        "traffic",
        "median",
        "least",
        "most",
        "round trip",
        "limit",
        "target",
    ];
    let mut table = Table::new(&headings).breaking_the_last_column();
    for day in days {
        let [median, least, most] = day.goodputs().map(|rate| rate.to_string());
        let round_trip = day.round_trip_s.map(|spread| Seconds(spread.median).to_string());
        table.row(&[
            &plain(&day.day),
            &day.results.to_string(),
            &plain(&day.kind),
            &day.traffic.as_ref().map(|traffic| plain(&traffic.to_string())).unwrap_or_default(),
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

#[cfg(test)]
mod tests {
    use goodput_store::{Spread, Traffic};

    use super::*;

    #[test]
    fn rows_of_one_day_differ_in_their_kind_or_traffic() {
        let day = |kind: &str, flows: u32| Day {
            day: "2026-01-31".into(),
            target: "nas".into(),
            kind: kind.into(),
            traffic: Some(Traffic { transport: "tcp".into(), direction: "send".into(), flows }),
            results: 96,
            goodput: Spread { least: 1e6, median: 2e6, most: 3e6, results: 96 },
            round_trip_s: None,
            lost_share: None,
            limit: "path-rate".into(),
            limited: 12,
        };
        let text = table(&[day("test", 1), day("test", 4), day("attach", 4)]).within(None);
        let rows: Vec<_> = text.lines().skip(1).collect();
        for (row, own) in rows.iter().zip([
            ["test ", "TCP forward, 1 flow "],
            ["test ", "TCP forward, 4 flows "],
            ["attach ", "TCP forward, 4 flows "],
        ]) {
            assert!(own.iter().all(|text| row.contains(*text)), "{text}");
            assert!(row.contains("path-rate (12 of 96)"), "{text}");
        }
        assert_eq!(rows.len(), 3, "{text}");
    }
}
