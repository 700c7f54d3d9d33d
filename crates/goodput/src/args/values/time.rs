//! Lengths of time, as typed: `30`, `30s`, `500ms`, `2m`, `1h30m`, `1d`, `2w`. A number alone is in seconds, except where such a
//! time would be absurd: there it is refused.

use jiff::SignedDuration;

use super::unfit;

/// Seconds above which a time was mistyped: a year.
const MAX_TIME_S: f64 = 366.0 * 86_400.0;

/// Seconds above zero, and at most a year.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn seconds(text: &str) -> Result<f64, String> {
    within(text, "a time above 0 and at most a year", f64::MIN_POSITIVE)
}

/// Seconds between two reported intervals: 0, for none, or at least 0.1.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn interval(text: &str) -> Result<f64, String> {
    if parsed(text) == Some(0.0) {
        return Ok(0.0);
    }
    within(text, "0 or a time of at least 100ms and at most a year", 0.1)
}

/// Seconds between two looks at connections: at least 0.1.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn refresh(text: &str) -> Result<f64, String> {
    within(text, "a time of at least 100ms and at most a year", 0.1)
}

/// How long one arm's turn within a connection counts: at least 0.3 seconds, of which receivers report tenths.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn turn(text: &str) -> Result<f64, String> {
    within(text, "a time of at least 300ms and at most a year", 0.3)
}

/// Seconds of a time that is usually far below a second, so that a number without a unit would be a mistake.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn with_unit(text: &str) -> Result<f64, String> {
    refuse_bare(text, ["ms", "s"])?;
    seconds(text)
}

/// Microseconds that a socket polls its device (SO_BUSY_POLL, socket(7)): 0, or a time with a unit, at most a second.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn busy_poll(text: &str) -> Result<u32, String> {
    if text == "0" {
        return Ok(0);
    }
    refuse_bare(text, ["us", "ms"])?;
    let microseconds = text.parse::<SignedDuration>().ok().map(|time| time.as_micros());
    let within = microseconds.filter(|us| (0..=1_000_000).contains(us));
    within
        .and_then(|us| us.try_into().ok())
        .ok_or_else(|| unfit(text, "a time from 0 to 1s", "it like 50us"))
}

/// Seconds between two tests of a target: at least one, and at most a year.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn every(text: &str) -> Result<f64, String> {
    let time = parsed(text).filter(|seconds| (1.0..=MAX_TIME_S).contains(seconds));
    time.ok_or_else(|| {
        unfit(text, "a time of at least 1s and at most a year", "it like 15m, 1h or 1d")
    })
}

/// Seconds that results are kept: at least an hour, and at most a century. A number without a unit would be a mistake.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn age(text: &str) -> Result<f64, String> {
    refuse_bare(text, ["d", "h"])?;
    let time = parsed(text).filter(|seconds| (3600.0..=100.0 * MAX_TIME_S).contains(seconds));
    let noun = "an age of at least 1h and at most a century";
    time.ok_or_else(|| unfit(text, noun, "it like 90d, 12w or 48h"))
}

/// Refuses a number alone, with the units that may be meant: other options would read seconds, the kernel microseconds.
fn refuse_bare(text: &str, [small, large]: [&str; 2]) -> Result<(), String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => {
            Err(format!("{text} has no unit; write {text}{small} or {text}{large}"))
        }
        _ => Ok(()),
    }
}

fn within(text: &str, noun: &str, least_s: f64) -> Result<f64, String> {
    let time = parsed(text).filter(|seconds| (least_s..=MAX_TIME_S).contains(seconds));
    time.ok_or_else(|| unfit(text, noun, "it like 10, 2.5s, 500ms or 2m"))
}

/// Seconds since a moment in the past: above zero, and at most a century. A number without a unit would be a mistake.
pub(super) fn past(text: &str) -> Option<f64> {
    let has_unit = text.parse::<f64>().is_err();
    parsed(text).filter(|seconds| has_unit && *seconds > 0.0 && *seconds <= 100.0 * MAX_TIME_S)
}

/// The seconds of a time in any unit, days of 24 hours and weeks included.
fn parsed(text: &str) -> Option<f64> {
    let plain = || text.parse().ok();
    let with_units = || Some(text.parse::<SignedDuration>().ok()?.as_secs_f64());
    plain().or_else(with_units).or_else(|| with_days(text))
}

/// The seconds of a time that begins with weeks or days, which the library leaves out because a day may have 23 hours.
fn with_days(text: &str) -> Option<f64> {
    const DAY_S: f64 = 86_400.0;
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, rest) = text.split_at(unit_at);
    let unit_ends = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_ends);
    let unit_s = match unit {
        "d" | "day" | "days" => DAY_S,
        "w" | "week" | "weeks" => 7.0 * DAY_S,
        _ => return None,
    };
    let begin = number.trim().parse::<f64>().ok()? * unit_s;
    let rest = rest.trim_start();
    match rest.parse::<f64>() {
        _ if rest.is_empty() => Some(begin),
        // A number without a unit, behind one with a unit.
        Ok(_) => None,
        Err(_) => Some(begin + parsed(rest)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_polling_has_a_unit() {
        for (text, expected) in
            [("50us", 50), ("1ms", 1000), ("0", 0), ("0us", 0), ("1s", 1_000_000)]
        {
            assert_eq!(busy_poll(text), Ok(expected), "{text}");
        }
        for wrong in ["-1", "2s", "50 000 000", "fast", ""] {
            assert!(busy_poll(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_short_time_without_a_unit_is_refused_with_both_spellings() {
        assert_eq!(with_unit("20"), Err("20 has no unit; write 20ms or 20s".into()));
        assert_eq!(busy_poll("20"), Err("20 has no unit; write 20us or 20ms".into()));
        assert_eq!(with_unit("20ms"), Ok(0.02));
        for wrong in ["0", "0s", "-1", "NaN", "soon"] {
            assert!(with_unit(wrong).unwrap_err().contains("above 0"), "{wrong}");
        }
    }

    #[test]
    fn a_time_may_have_a_unit() {
        for (text, expected) in [
            ("30", 30.0),
            ("2.5", 2.5),
            ("30s", 30.0),
            ("2.5s", 2.5),
            ("500ms", 0.5),
            ("250us", 0.000_25),
            ("2m", 120.0),
            ("2min", 120.0),
            ("1h30m", 5400.0),
            ("1h", 3600.0),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn every_time_may_be_in_days() {
        for read in [every, seconds, refresh, interval, turn, with_unit, age] {
            assert_eq!(read("1d"), Ok(86_400.0));
            assert_eq!(read("1w"), Ok(7.0 * 86_400.0));
        }
        assert_eq!(every("15m"), Ok(900.0));
        assert_eq!(every("1d"), Ok(86_400.0));
        assert_eq!(age("90d"), Ok(90.0 * 86_400.0));
        assert_eq!(age("2w"), Ok(14.0 * 86_400.0));
        assert_eq!(age("90"), Err("90 has no unit; write 90d or 90h".into()));
        for wrong in ["0.5", "500ms", "0d", "-1d", "NaNd", "often", "d", ""] {
            assert!(every(wrong).unwrap_err().contains("15m"), "{wrong}");
        }
        for (text, expected) in
            [("1d12h", 1.5), ("2 days", 2.0), ("1 week 1 day", 8.0), ("1w2d", 9.0), ("1.5d", 1.5)]
        {
            assert_eq!(every(text), Ok(expected * 86_400.0), "{text}");
        }
        for wrong in ["1d5", "1d-", "1h1d", "d1", "1dx", "1 d ago"] {
            assert!(every(wrong).is_err(), "{wrong}");
        }
        for wrong in ["1s", "0d", "40000d", "long"] {
            assert!(age(wrong).unwrap_err().contains("90d"), "{wrong}");
        }
    }

    #[test]
    fn what_is_past_has_any_unit() {
        assert_eq!(
            [past("30m"), past("90s"), past("2h")],
            [Some(1800.0), Some(90.0), Some(7200.0)]
        );
        for wrong in ["7", "0", "0s", "-1h", "", "NaN", "40000d"] {
            assert_eq!(past(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn more_than_a_year_is_refused() {
        assert!(seconds("8784h").is_ok());
        for text in ["inf", "1e300", "1e18", "9000h"] {
            assert!(seconds(text).unwrap_err().contains("at most a year"), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_in_words() {
        for text in ["", "0", "0s", "-1", "-5s", "5s ago", "NaN", "1y", "soon", "5 parsecs"] {
            assert!(seconds(text).unwrap_err().contains("500ms"), "{text}");
        }
    }

    #[test]
    fn an_interval_is_none_or_not_too_short() {
        assert_eq!(interval("0"), Ok(0.0));
        assert_eq!(interval("0s"), Ok(0.0));
        assert_eq!(interval("100ms"), Ok(0.1));
        assert!(interval("50ms").unwrap_err().contains("at least 100ms"));
    }
}
