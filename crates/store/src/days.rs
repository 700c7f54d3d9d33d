//! What stays of deleted results: for each day and target, how many results had each value. So nothing is averaged: the
//! counts of two parts of a day add up to those of the day, and its median and range are read from them.
//!
//! A value has three digits, as in reports.

use goodput_model::{BitRate, Kind};
use serde::{Deserialize, Serialize};

use crate::entry::Traffic;
use crate::wanted::{Wanted, occurring};

/// The kinds of [`Day::kinds`] in SQL.
pub(crate) fn summed_kinds() -> String {
    format!("('{}')", Day::kinds().join("', '"))
}

/// The quantities, by their names in the database.
const GOODPUT: &str = "goodput";
const ROUND_TRIP: &str = "round-trip";
const LOST: &str = "lost";
pub(crate) const LIMIT: &str = "limit";

/// All of them, that of every result first.
pub(crate) const QUANTITIES: [&str; 4] = [GOODPUT, ROUND_TRIP, LOST, LIMIT];

/// What identifies a count.
const KEY: &str = "target, day, kind, transport, direction, flows, quantity, value";

/// Adds the results in `gone` (what is before `quantity` in [`KEY`], then `rule`, `goodput_bits_per_s`, `round_trip_s`,
/// `lost_share`) to the table `days`. `digits` writes a number with three digits, like `9.41e+08`. In order, so that two
/// that add at once never wait for each other in a circle.
///
/// A number exactly between two such texts may become either: SQLite rounds 100500000 up, PostgreSQL to the even digit. Each
/// does so always. A day that goes from one to the other keeps its texts.
pub(crate) fn sum_up(days: &str, digits: fn(&str) -> String) -> String {
    let row = "target, day, kind, transport, direction, flows";
    let [goodput, round_trip, lost] =
        ["goodput_bits_per_s", "round_trip_s", "lost_share"].map(digits);
    format!(
        "INSERT INTO {days} AS known ({KEY}, results)
         SELECT {KEY}, count(*) FROM (
            SELECT {row}, '{GOODPUT}' AS quantity, {goodput} AS value FROM gone
            UNION ALL SELECT {row}, '{ROUND_TRIP}', {round_trip} FROM gone WHERE round_trip_s IS NOT NULL
            UNION ALL SELECT {row}, '{LOST}', {lost} FROM gone WHERE lost_share IS NOT NULL
            UNION ALL SELECT {row}, '{LIMIT}', rule FROM gone
         ) AS each_value WHERE true
         GROUP BY {KEY} ORDER BY {KEY}
         ON CONFLICT ({KEY}) DO UPDATE SET results = known.results + excluded.results"
    )
}

/// Adds a count of another history to the table `days`, unless this one has as many: to add it again changes nothing. The
/// columns of [`KEY`] and the number are parameters, from 1 on; `value` begins their names.
pub(crate) fn add_count(days: &str, value: char) -> String {
    let values: Vec<_> = (1..=9).map(|number| format!("{value}{number}")).collect();
    format!(
        "INSERT INTO {days} AS known ({KEY}, results) VALUES ({})
         ON CONFLICT ({KEY}) DO UPDATE SET results = excluded.results WHERE excluded.results > known.results",
        values.join(", ")
    )
}

/// Deletes the days before one, the parameter 1, from the table `days`.
pub(crate) fn delete_before(days: &str, value: char) -> String {
    format!("DELETE FROM {days} WHERE {}", older(days, value))
}

/// How many days the table `days` has before one, the parameter 1, as [`Day`]s.
pub(crate) fn number_before(days: &str, value: char) -> String {
    format!(
        "SELECT count(*) FROM (SELECT DISTINCT target, day, kind, transport, direction, flows
         FROM {days} WHERE {}) AS each_day",
        older(days, value)
    )
}

/// What is of a day before the parameter 1. The key leads to the days of a target.
fn older(days: &str, value: char) -> String {
    format!("target IN ({}) AND day < {value}1", occurring(days, "target"))
}

/// The days that are read at once. A day has a row for each value: up to thousands.
pub(crate) const MAX_DAYS: u32 = 31;

/// The newest of the wanted days of one target.
#[derive(Debug, Clone)]
pub(crate) struct Part<'a> {
    pub target: &'a str,
    pub kind: Option<&'a str>,
    /// The first day.
    pub from: &'a str,
    /// What is after the last day.
    pub until: String,
    /// The largest number of days.
    pub most: u32,
}

impl<'a> Part<'a> {
    /// The first part of what a search asks for. A day of which only a part is asked for fits.
    pub fn first(target: &'a str, wanted: &'a Wanted) -> Self {
        let from = wanted.from.as_deref().unwrap_or_default();
        Self {
            target,
            kind: wanted.kind.as_deref(),
            from: from.get(..DAY.len()).unwrap_or(from),
            until: match &wanted.until {
                Some(until) => after_the_last_day(until).into(),
                // Unicode's last character is after every day.
                None => char::MAX.into(),
            },
            most: wanted.limit.min(MAX_DAYS),
        }
    }
}

/// How a day is written.
const DAY: &str = "2026-01-31";

/// What follows a day in the time of its beginning.
const MIDNIGHT: &str = "T00:00:00Z";

/// What is after the last day that begins before a time, in their order.
fn after_the_last_day(until: &str) -> &str {
    match until.split_at_checked(DAY.len()) {
        Some((day, time)) if time <= MIDNIGHT => day,
        _ => until,
    }
}

/// What is counted in a [`Part`] of the table `days`, the newest day first. The key leads to the target and its days, and
/// only what is of one day is sorted. `value` begins the name of a parameter: target, kind, from, until and most, from 1
/// on.
pub(crate) fn counts(days: &str, value: char) -> String {
    let fits =
        format!("target = {value}1 AND ({value}2 IS NULL OR kind = {value}2) AND day < {value}4");
    format!(
        "SELECT day, target, kind, transport, direction, flows, quantity, value, results
         FROM {days} WHERE {fits} AND day >= (SELECT min(day) FROM (
            SELECT DISTINCT day FROM {days} WHERE {fits} AND day >= {value}3
            ORDER BY day DESC LIMIT {value}5
         ) AS newest)
         ORDER BY day DESC, kind, transport, direction, flows, quantity, value"
    )
}

/// How many results had a value.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub of: Of,
    pub quantity: String,
    pub value: String,
    pub results: u64,
}

/// What results are of that are summed up together, in the order of [`KEY`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Of {
    pub target: String,
    pub day: String,
    pub kind: String,
    pub transport: String,
    pub direction: String,
    pub flows: i64,
}

/// The deleted results of a day: whole ones, of one target, kind of command and kind of traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Day {
    /// The day in UTC: `2026-01-31`.
    pub day: String,
    /// The target, as typed by the user.
    pub target: String,
    /// `test` or `attach`.
    pub kind: String,
    /// How they were measured; `None` if an older goodput kept them.
    pub traffic: Option<Traffic>,
    /// Number of results.
    pub results: u64,
    /// Goodput, bits per second.
    pub goodput: Spread,
    /// Round-trip time under load, seconds; `None` if no result had it.
    pub round_trip_s: Option<Spread>,
    /// Share of the datagrams that were lost, or of the payload that was sent again, 0 to 1.
    pub lost_share: Option<Spread>,
    /// The most frequent limit, or `none`.
    pub limit: String,
    /// Number of results with this limit.
    pub limited: u64,
}

/// A place in the list of the days of one target: that of a day. It stays where it is, whatever is added or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayPosition {
    /// The day in UTC: `2026-01-31`.
    pub day: String,
    /// Kind of command, protocol, direction and number of flows, as the history has them.
    pub of: (String, String, String, u32),
}

impl DayPosition {
    /// The place of a day.
    pub fn of(day: &Day) -> Self {
        let (kind, transport, direction, flows) = day.key();
        let of = (kind.into(), transport.into(), direction.into(), flows);
        Self { day: day.day.clone(), of }
    }

    /// What is after this day, and before the next one: times of a day go on with a T.
    pub(crate) fn until(&self) -> String {
        format!("{}U", self.day)
    }

    /// Whether a day comes after this place: an older one, or one of the same date.
    pub(crate) fn is_before(&self, other: &Day) -> bool {
        let (kind, transport, direction, flows) = &self.of;
        let own = (kind.as_str(), transport.as_str(), direction.as_str(), *flows);
        other.day < self.day || (other.day == self.day && other.key() > own)
    }
}

/// Values with three digits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// The largest.
    pub most: f64,
    /// How many results had a value.
    pub results: u64,
}

/// Days from the counts of each, in their order.
pub(crate) fn days(counted: &[Counted]) -> Vec<Day> {
    counted.chunk_by(|a, b| a.of == b.of).filter_map(day).collect()
}

/// Leaves the newest days, at most `most`, those of one day by target.
pub(crate) fn keep_newest(days: &mut Vec<Day>, most: usize) {
    // What is of one day and target stays in its order.
    days.sort_by(|a, b| b.day.cmp(&a.day).then_with(|| a.target.cmp(&b.target)));
    days.truncate(most);
}

fn day(counted: &[Counted]) -> Option<Day> {
    let of = &counted.first()?.of;
    let spread = |quantity: &str| {
        let own = counted.iter().filter(|counted| counted.quantity == quantity);
        Spread::of(own.filter_map(|counted| Some((counted.value.parse().ok()?, counted.results))))
    };
    let limits = counted.iter().filter(|counted| counted.quantity == LIMIT);
    // Of equally frequent ones, the first in the alphabet.
    let limit =
        limits.reduce(|most, other| if other.results > most.results { other } else { most });
    let goodput = spread(GOODPUT)?;
    Some(Day {
        day: of.day.clone(),
        target: of.target.clone(),
        kind: of.kind.clone(),
        traffic: (!of.transport.is_empty()).then(|| Traffic {
            transport: of.transport.clone(),
            direction: of.direction.clone(),
            flows: of.flows.try_into().unwrap_or(0),
        }),
        results: goodput.results,
        goodput,
        round_trip_s: spread(ROUND_TRIP),
        lost_share: spread(LOST),
        limit: limit.map(|limit| limit.value.clone()).unwrap_or_default(),
        limited: limit.map_or(0, |limit| limit.results),
    })
}

impl Spread {
    /// That of values, each with the number of results that had it.
    fn of(values: impl Iterator<Item = (f64, u64)>) -> Option<Self> {
        let mut values: Vec<(f64, u64)> = values.filter(|(_, results)| *results > 0).collect();
        values.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let results = values.iter().map(|(_, results)| results).sum();
        let at = |rank: u64| {
            let mut passed = 0;
            values.iter().find_map(|(value, results)| {
                passed += results;
                (passed > rank).then_some(*value)
            })
        };
        let (least, most) = (values.first()?.0, values.last()?.0);
        let median = f64::midpoint(at((results - 1) / 2)?, at(results / 2)?);
        Some(Self { least, median, most, results })
    }
}

impl Day {
    /// Kinds of results that are summed up, by their names: those of a single run.
    pub fn kinds() -> Vec<&'static str> {
        Kind::ALL.into_iter().filter(|kind| kind.is_single_run()).map(Kind::name).collect()
    }

    /// What of it follows the day in the order of the list.
    fn key(&self) -> (&str, &str, &str, u32) {
        let traffic = self.traffic.as_ref();
        let [transport, direction] = traffic.map_or(["", ""], |it| [&it.transport, &it.direction]);
        (&self.kind, transport, direction, traffic.map_or(0, |it| it.flows))
    }

    /// Goodput of the median, least and most.
    pub fn goodputs(&self) -> [BitRate; 3] {
        [self.goodput.median, self.goodput.least, self.goodput.most].map(BitRate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_that_of_all_results_and_not_of_the_values() {
        let spread = |values: &[(f64, u64)]| Spread::of(values.iter().copied());
        let some = |least, median, most, results| Some(Spread { least, median, most, results });
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[(3.0, 1)]), some(3.0, 3.0, 3.0, 1));
        assert_eq!(spread(&[(3.0, 1), (1.0, 1)]), some(1.0, 2.0, 3.0, 2));
        assert_eq!(spread(&[(9.0, 1), (1.0, 2), (2.0, 3)]), some(1.0, 2.0, 9.0, 6));
        assert_eq!(spread(&[(0.0, 100), (5.0, 1)]), some(0.0, 0.0, 5.0, 101));
    }
}
