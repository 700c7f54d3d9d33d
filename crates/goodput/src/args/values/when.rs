//! Times in the past, as typed: a date, a time, or an age.

use jiff::{SignedDuration, Timestamp};

use super::{time, unfit};

/// How records write times, with as much as was typed: a prefix compares like the whole.
const FORM: &str = "dddd-dd-ddTdd:dd:dd";

/// What a time that is typed in part begins with.
const FIRST: &str = "0000-01-01T00:00:00Z";

/// A time as the beginning of a record's time (RFC 3339, UTC).
///
/// # Errors
/// A sentence that says what to write instead.
pub fn since(text: &str) -> Result<String, String> {
    let typed = text.trim_end_matches('Z').replace(' ', "T");
    let fits = |(c, form): (char, char)| if form == 'd' { c.is_ascii_digit() } else { c == form };
    let is_long_enough = [4, 7, 10, 13, 16, 19].contains(&typed.chars().count());
    let is_a_time = || {
        let rest = FIRST.get(typed.len()..).unwrap_or_default();
        format!("{typed}{rest}").parse::<Timestamp>().is_ok()
    };
    if is_long_enough && typed.chars().zip(FORM.chars()).all(fits) && is_a_time() {
        return Ok(typed);
    }
    let age = time::age(text).ok().and_then(|age| SignedDuration::try_from_secs_f64(age).ok());
    let begin = age.and_then(|age| Timestamp::now().saturating_sub(age).ok());
    let write = "it like 2026-11-24, 2026-11-24T14:05 or 7d";
    let begin = begin.ok_or_else(|| unfit(text, "a time in UTC or an age", write))?;
    Ok(begin.strftime("%Y-%m-%dT%H:%M:%S").to_string())
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
            "yesterday",
            "24.11.2026",
            "2026-11-2",
            "7",
            "%",
            "2026-11-24T14:05:00.5",
            "2026-13",
            "2026-02-30",
            "2026-11-24T25",
        ] {
            assert!(since(wrong).unwrap_err().contains("7d"), "{wrong}");
        }
    }
}
