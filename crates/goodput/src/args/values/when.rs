//! Times in the past, as typed: a date, a time, or how long ago.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{time, unfit};

/// How records write times, with as much as was typed: a prefix compares like the whole.
const FORM: &str = "dddd-dd-ddTdd:dd:dd";

/// What a time that is typed in part begins with.
const FIRST: &str = "0000-01-01T00:00:00Z";

/// How records write a time, to the second.
const WHOLE: &str = "%Y-%m-%dT%H:%M:%S";

/// A time as the beginning of a record's time (RFC 3339, UTC).
///
/// # Errors
/// A sentence that says what to write instead.
pub fn since(text: &str) -> Result<String, String> {
    since_at(text, Timestamp::now())
}

/// The same at the moment `now`.
fn since_at(text: &str, now: Timestamp) -> Result<String, String> {
    let typed = text.trim().trim_end_matches(['Z', 'z']).replace([' ', 't'], "T");
    let fits = |(c, form): (char, char)| if form == 'd' { c.is_ascii_digit() } else { c == form };
    let is_long_enough = [4, 7, 10, 13, 16, 19].contains(&typed.chars().count());
    let is_a_time = || {
        let rest = FIRST.get(typed.len()..).unwrap_or_default();
        format!("{typed}{rest}").parse::<Timestamp>().is_ok()
    };
    if is_long_enough && typed.chars().zip(FORM.chars()).all(fits) && is_a_time() {
        return Ok(typed);
    }
    let begin = whole(text).or_else(|| named(text, now)).or_else(|| ago(text, now));
    let write = "it like 2026-11-24, 2026-11-24T14:05, 14:05, yesterday, 30m or 7d";
    let begin = begin.ok_or_else(|| unfit(text, "a time in UTC, or how long ago", write))?;
    Ok(begin.strftime(WHOLE).to_string())
}

/// A whole time with a zone (`2026-11-24T14:05:00+01:00`), or seconds since 1970 (`@1764000000`), as `date` prints them.
fn whole(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    match text.strip_prefix('@') {
        Some(seconds) => Timestamp::from_second(seconds.parse().ok()?).ok(),
        None => text.parse().ok(),
    }
}

/// A day by its name, or a time of today: all in UTC.
fn named(text: &str, now: Timestamp) -> Option<Timestamp> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let text = text.trim();
    let at = match text {
        "now" => return Some(now),
        "today" => today.at(0, 0, 0, 0),
        "yesterday" => today.yesterday().ok()?.at(0, 0, 0, 0),
        _ if text.contains(':') => today.to_datetime(text.parse::<Time>().ok()?),
        _ => return None,
    };
    Some(at.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// How long ago: `30m`, `7d`, `2 hours ago`.
fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let long = text.trim().trim_end_matches("ago").trim_end();
    let seconds = SignedDuration::try_from_secs_f64(time::past(long)?).ok()?;
    now.saturating_sub(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_beginning_of_a_records_time_or_an_age() {
        assert_eq!(since("2026-11-24"), Ok("2026-11-24".into()));
        assert_eq!(since("2026-11-24 14:05"), Ok("2026-11-24T14:05".into()));
        assert_eq!(since("2026-11-24T14:05:00Z"), Ok("2026-11-24T14:05:00".into()));
        assert!(since("7d").unwrap() < since("1d").unwrap());
        for wrong in [
            "",
            "tomorrow",
            "24.11.2026",
            "2026-11-2",
            "7",
            "0m",
            "-5m",
            "%",
            "ago",
            "2026-13",
            "2026-02-30",
            "2026-11-24T25",
            "25:00",
            "@x",
        ] {
            assert!(since(wrong).unwrap_err().contains("7d"), "{wrong}");
        }
    }

    #[test]
    fn a_time_may_be_written_as_people_write_it() {
        let now = "2026-11-27T15:20:07Z".parse().unwrap();
        for (text, expected) in [
            ("30m", "2026-11-27T14:50:07"),
            ("90s", "2026-11-27T15:18:37"),
            ("2h", "2026-11-27T13:20:07"),
            ("2 hours ago", "2026-11-27T13:20:07"),
            ("7d", "2026-11-20T15:20:07"),
            ("1w", "2026-11-20T15:20:07"),
            ("1d12h", "2026-11-26T03:20:07"),
            ("now", "2026-11-27T15:20:07"),
            ("today", "2026-11-27T00:00:00"),
            ("yesterday", "2026-11-26T00:00:00"),
            ("14:05", "2026-11-27T14:05:00"),
            ("2026-11-24T14:05:00+01:00", "2026-11-24T13:05:00"),
            ("2026-11-24 14:05:00.5Z", "2026-11-24T14:05:00"),
            ("@1764000000", "2025-11-24T16:00:00"),
        ] {
            assert_eq!(since_at(text, now).as_deref(), Ok(expected), "{text}");
        }
    }
}
