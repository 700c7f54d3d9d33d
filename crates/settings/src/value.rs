//! Values as people write them: sizes, switches and plain words, with errors that show how.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use goodput_model::traffic_class::MAX_DSCP;
use goodput_model::{BitRate, Bytes, SettingRef, dscp_typed};

use crate::error::SettingError;
use crate::setting::{Setting, Unit};

/// The word that stands for the kernel's own choice.
pub const DEFAULT: &str = "default";

/// Longest name of a congestion control: `TCP_CA_NAME_MAX` less the final zero byte
/// (include/net/tcp.h).
pub const CONGESTION_NAME_MAX: usize = 15;

/// An error for an invalid value.
pub fn bad(setting: &SettingRef, value: &str, why: impl Into<String>) -> SettingError {
    SettingError::BadValue { setting: setting.clone(), value: value.into(), why: why.into() }
}

/// `default` as `None`, anything else through `parse`.
pub fn or_default<T>(
    value: &str,
    parse: impl FnOnce(&str) -> Result<T, SettingError>,
) -> Result<Option<T>, SettingError> {
    if value == DEFAULT { Ok(None) } else { parse(value).map(Some) }
}

/// A size of at least one byte and at most `max_bytes`.
pub fn size(setting: &SettingRef, value: &str, max_bytes: u64) -> Result<u64, SettingError> {
    let bytes = value.parse::<Bytes>().map_err(|e| bad(setting, value, e.to_string()))?.0;
    if bytes == 0 || bytes > max_bytes {
        return Err(bad(setting, value, format!("it must be 1 to {max_bytes} bytes")));
    }
    Ok(bytes)
}

/// A plain number within `range`.
pub fn number<N>(
    setting: &SettingRef,
    value: &str,
    range: &RangeInclusive<N>,
) -> Result<N, SettingError>
where
    N: FromStr + PartialOrd + Display,
{
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    match value.parse() {
        Ok(number) if digits && range.contains(&number) => Ok(number),
        _ => {
            let number = counted(setting);
            let why =
                format!("it must be a whole {number} from {} to {}", range.start(), range.end());
            Err(bad(setting, value, why))
        }
    }
}

/// What a number is called: a time is counted in steps, whatever unit a person wrote.
fn counted(setting: &SettingRef) -> String {
    match crate::lookup::find_for(setting).ok().and_then(Setting::unit) {
        Some(Unit::Time { word, .. }) => format!("number of {word}"),
        _ => "number".into(),
    }
}

/// A differentiated services code point, by its number or its name.
pub fn code_point(setting: &SettingRef, value: &str) -> Result<u8, SettingError> {
    let why = || format!("it must be 0 to {MAX_DSCP}, or a name like ef, af41 or cs1");
    dscp_typed(value).ok_or_else(|| bad(setting, value, why()))
}

/// Whether the kernel made another number of `value` than was asked for, and not only another spelling of it. Of several
/// numbers, one that differs is enough; what is no number is never rounded.
pub fn is_rounded(value: &str, effective: &str) -> bool {
    let asked: Vec<&str> = value.split_whitespace().collect();
    let made: Vec<&str> = effective.split_whitespace().collect();
    let lack = |these: &[&str], others: &[&str]| {
        others.iter().any(|word| !these.iter().any(|known| is_same_number(known, word)))
    };
    let are_numbers = asked.iter().chain(&made).all(|word| is_number(word));
    are_numbers && (lack(&asked, &made) || lack(&made, &asked))
}

/// Whether a change from `before` to `wanted`, whose outcome nobody has read, may have left `now`: another number that
/// the kernel made of `wanted`. Rounding and clamping keep the order of numbers, and `before` was in effect; so what they
/// make of a larger number is not smaller than `before`, and the other way round.
pub fn may_have_become(before: &str, wanted: &str, now: &str) -> bool {
    let [from, to, is] = [before, wanted, now].map(numbers);
    let (Some(to), Some(is)) = (to, is) else { return false };
    let keeps_order = |from: &[f64]| {
        let sides = from.iter().zip(&to).zip(&is);
        // Products of differences: below zero if they are on different sides.
        sides.clone().all(|((from, to), is)| (to - from) * (is - from) >= 0.0)
            && sides.clone().all(|((from, to), is)| to != from || is == from)
    };
    // A word like `default` is on no side, and a number may become two.
    let comparable = from.filter(|from| from.len() == to.len() && to.len() == is.len());
    is_rounded(wanted, now) && comparable.is_none_or(|from| keeps_order(&from))
}

/// The numbers of a value that has nothing else.
fn numbers(value: &str) -> Option<Vec<f64>> {
    let number = |word: &str| {
        let size = word.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64);
        size.or_else(|| word.parse::<BitRate>().ok().map(|rate| rate.0))
    };
    value.split_whitespace().map(number).collect()
}

/// Whether a value is one number or several.
pub fn is_numeric(value: &str) -> bool {
    !value.trim().is_empty() && value.split_whitespace().all(is_number)
}

fn is_number(word: &str) -> bool {
    word.parse::<Bytes>().is_ok() || word.parse::<BitRate>().is_ok()
}

/// Whether two words can mean the same size, or the same rate.
fn is_same_number(one: &str, other: &str) -> bool {
    let sizes = || Some(one.parse::<Bytes>().ok()? == other.parse::<Bytes>().ok()?);
    let rates = || Some(one.parse::<BitRate>().ok()? == other.parse::<BitRate>().ok()?);
    sizes() == Some(true) || rates() == Some(true)
}

/// `on` or `off`.
pub fn switch(setting: &SettingRef, value: &str) -> Result<bool, SettingError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(bad(setting, value, "it must be on or off")),
    }
}

/// How a switch is printed.
pub fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A short plain word, such as the name of a mover or a congestion control.
pub fn word(setting: &SettingRef, value: &str, max_len: usize) -> Result<String, SettingError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let begins = value.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || value.len() > max_len || !value.chars().all(plain) {
        let why = format!("it must be a name of at most {max_len} letters, digits, - and _");
        return Err(bad(setting, value, why));
    }
    Ok(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_refused_with_the_steps_in_which_it_is_counted() {
        let said = |setting: &str| {
            number(&setting.parse().unwrap(), "3600000", &(1..=120_000)).unwrap_err().to_string()
        };
        let of_time = said("route.rto_min@10.0.0.0/24");
        assert!(
            of_time.ends_with("it must be a whole number of milliseconds from 1 to 120000"),
            "{of_time}"
        );
        let plain = said("link.txqueuelen@eth0");
        assert!(plain.ends_with("it must be a whole number from 1 to 120000"), "{plain}");
        let half = number(&"link.txqueuelen@eth0".parse().unwrap(), "1280.5", &(1..=120_000));
        let half = half.unwrap_err().to_string();
        assert!(half.ends_with("it must be a whole number from 1 to 120000"), "{half}");
    }

    #[test]
    fn rounding_keeps_the_order_of_numbers() {
        for (before, wanted, now) in [
            ("256", "1001", "1024"),
            ("256", "1001", "1000"),
            ("256", "99999", "4096"),
            ("4096", "1001", "1024"),
            ("256", "300", "256"),
            ("default", "203", "200"),
            ("1600", "1601", "1600 1604"),
            ("4096 128 200", "4096 100 300", "4096 128 304"),
            ("1gbit", "33mbit", "32999992bit"),
        ] {
            assert!(may_have_become(before, wanted, now), "{before} {wanted} {now}");
        }
        for (before, wanted, now) in [
            ("256", "1001", "128"),
            ("4096", "1001", "8192"),
            ("4096 128 200", "4096 100 300", "8192 128 304"),
            ("256", "1001", "1001"),
            ("on", "off", "on"),
            ("off", "1001", "on"),
            ("default", "fq", "200"),
        ] {
            assert!(!may_have_become(before, wanted, now), "{before} {wanted} {now}");
        }
    }

    #[test]
    fn another_number_is_rounded_and_another_spelling_is_not() {
        for (asked, made) in [
            ("1000", "1024"),
            ("1601", "1600"),
            ("1601", "1600 1604"),
            ("4096 100 200", "4096 128 200"),
            ("100mbit", "100000008bit"),
        ] {
            assert!(is_rounded(asked, made), "{asked} {made}");
        }
        for (asked, made) in [
            ("1024", "1024"),
            ("64K", "65536"),
            ("1600 1600", "1600"),
            ("0.1gbit", "100mbit"),
            ("on", "off"),
            ("spread", "0 1"),
            ("default", "1500"),
            ("0-1,2", "0-2"),
        ] {
            assert!(!is_rounded(asked, made), "{asked} {made}");
        }
    }
}
