//! Round clock times on an axis of seconds since 1970, UTC, which has neither leap seconds nor summer time.

use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;

/// A place on an axis, in its unit, and the label there.
pub type Tick = (f64, String);

/// The longest label of a time.
pub const LONGEST_LABEL: &str = "01-31 12:00";

const HOUR_S: i64 = 3600;
const DAY_S: i64 = 24 * HOUR_S;

/// Steps of less than a month, seconds.
const STEPS_S: [i64; 15] = [
    60,
    2 * 60,
    5 * 60,
    10 * 60,
    15 * 60,
    30 * 60,
    HOUR_S,
    2 * HOUR_S,
    3 * HOUR_S,
    6 * HOUR_S,
    12 * HOUR_S,
    DAY_S,
    2 * DAY_S,
    WEEK_S,
    2 * WEEK_S,
];
const WEEK_S: i64 = 7 * DAY_S;

/// A Monday, at which weeks begin (ISO 8601): 1970 began on a Thursday.
const MONDAY_S: i64 = 4 * DAY_S;

/// Steps of months; twelve and more are years.
const STEPS_MONTHS: [i32; 15] =
    [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12_000, 24_000];

/// At most `most` round times with their labels: minutes, hours, days, weeks, months or years.
pub fn ticks(range: &Range<f64>, most: usize) -> Vec<Tick> {
    let even = STEPS_S.into_iter().map(|step| (step, even(range, step)));
    let fit = even.into_iter().find(|(_, times)| times.size_hint().0 <= most);
    match fit {
        Some((step, times)) => {
            times.map(|at| (at as f64, written(at, format(range, step)))).collect()
        }
        None => by_months(range, most),
    }
}

/// What the times of a range have in common, for the title of its axis: the year, and the zone.
pub fn title(range: &Range<f64>) -> String {
    let [first, last] = [range.start, range.end].map(|at| written(at as i64, "%Y"));
    match first == last {
        true => format!("{first}, UTC"),
        false => format!("{first} to {last}, UTC"),
    }
}

/// Multiples of a step in the range.
fn even(range: &Range<f64>, step: i64) -> impl Iterator<Item = i64> + use<> {
    let offset = if step >= WEEK_S { MONDAY_S } else { 0 };
    let first = ((range.start - offset as f64) / step as f64).ceil() as i64;
    let last = ((range.end - offset as f64) / step as f64).floor() as i64;
    (first..last.saturating_add(1)).map(move |number| number * step + offset)
}

/// Days need no hour, and those of one year no year, which the title has.
fn format(range: &Range<f64>, step: i64) -> &'static str {
    let [first, last] = [range.start, range.end].map(|at| written(at as i64, "%Y"));
    match (step < DAY_S, first == last) {
        (true, _) => "%m-%d %H:%M",
        (false, true) => "%m-%d",
        (false, false) => "%Y-%m-%d",
    }
}

fn by_months(range: &Range<f64>, most: usize) -> Vec<Tick> {
    let [Some(first), Some(last)] = [range.start, range.end].map(month) else { return Vec::new() };
    let in_range = |step: i32| {
        let from = first.div_euclid(step) * step;
        let all = (from..=last).step_by(step as usize).filter_map(begin);
        all.filter(|at| range.contains(&(*at as f64))).collect::<Vec<i64>>()
    };
    let fit = STEPS_MONTHS.into_iter().map(|step| (step, in_range(step)));
    let fit = fit.into_iter().find(|(_, times)| times.len() <= most);
    let (step, times) = fit.unwrap_or_default();
    let format = if step < 12 { "%Y-%m" } else { "%Y" };
    times.into_iter().map(|at| (at as f64, written(at, format))).collect()
}

/// The month of a time, counted from the year 0.
fn month(seconds: f64) -> Option<i32> {
    let day = Timestamp::from_second(seconds as i64).ok()?.to_zoned(TimeZone::UTC).date();
    Some(i32::from(day.year()) * 12 + i32::from(day.month()) - 1)
}

/// When such a month begins.
fn begin(month: i32) -> Option<i64> {
    let year = i16::try_from(month.div_euclid(12)).ok()?;
    let of_year = i8::try_from(month.rem_euclid(12) + 1).ok()?;
    let day: Date = if (1..=9999).contains(&year) { date(year, of_year, 1) } else { return None };
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

fn written(seconds: i64, format: &str) -> String {
    let time = Timestamp::from_second(seconds);
    time.map_or(String::new(), |time| time.strftime(format).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> f64 {
        time.parse::<Timestamp>().unwrap().as_second() as f64
    }

    fn labels(from: &str, to: &str, most: usize) -> Vec<String> {
        ticks(&(at(from)..at(to)), most).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn labels_are_at_round_minutes_hours_days_months_and_years() {
        let minutes = labels("2026-01-02T10:03:21Z", "2026-01-02T10:14:40Z", 7);
        assert_eq!(minutes, ["04", "06", "08", "10", "12", "14"].map(|m| format!("01-02 10:{m}")));
        let hours = labels("2026-01-02T22:41:00Z", "2026-01-03T04:02:00Z", 7);
        assert_eq!(hours[..2], ["01-02 23:00", "01-03 00:00"]);
        let days = labels("2026-01-02T10:00:00Z", "2026-01-05T20:00:00Z", 4);
        assert_eq!(days, ["01-03", "01-04", "01-05"]);
        let weeks = labels("2026-01-01T10:00:00Z", "2026-01-31T20:00:00Z", 5);
        assert_eq!(weeks, ["01-05", "01-12", "01-19", "01-26"], "Mondays");
        let months = labels("2025-11-02T10:00:00Z", "2026-06-05T20:00:00Z", 7);
        assert_eq!(months[..2], ["2025-12", "2026-01"]);
        let years = labels("2020-05-02T10:00:00Z", "2036-01-02T20:00:00Z", 8);
        assert_eq!(years[..2], ["2022", "2024"]);
    }

    #[test]
    fn any_range_has_few_labels() {
        for span in [600.0, 4000.0, 1e5, 3e6, 1e8, 1e10, 2e11] {
            for most in [3, 7] {
                let range = 1.767e9..1.767e9 + span;
                let all = ticks(&range, most);
                assert!((1..=most).contains(&all.len()), "{span} {most}: {all:?}");
                assert!(
                    all.iter().all(|(at, _)| (range.start..=range.end).contains(at)),
                    "{all:?}"
                );
            }
        }
        assert!(ticks(&(1e300..2e300), 7).len() <= 7);
    }

    #[test]
    fn the_title_has_the_zone_and_what_years_these_are() {
        let of = |from, to| title(&(at(from)..at(to)));
        assert_eq!(of("2026-01-02T10:00:00Z", "2026-03-02T10:00:00Z"), "2026, UTC");
        assert_eq!(of("2025-12-31T10:00:00Z", "2026-01-02T10:00:00Z"), "2025 to 2026, UTC");
    }
}
