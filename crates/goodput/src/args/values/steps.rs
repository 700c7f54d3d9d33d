//! `4K..4M`: a range of values, in equal steps of the logarithm; after a first value of 0 they go from 1.

use goodput_model::{BitRate, Bytes, dscp_named};

/// More values than this are no comparison that ends.
const MAX_VALUES: usize = 32;

/// The values of `A,B,C..D,E..F:N`, each once: a range doubles, or has N values, ends included. `spelled` makes of a typed
/// value what its setting prints.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn values(
    text: &str,
    spelled: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim) {
        if part.is_empty() && text.contains(',') {
            return Err(format!("{text:?} has a comma without a value beside it; leave it out"));
        }
        let more = match part.split_once("..") {
            Some((from, to)) => {
                steps(from, to, &spelled).map_err(|why| format!("{part}: {why}"))?
            }
            None => vec![spelled(part)?],
        };
        for value in more {
            if !values.iter().any(|known| is_same(known, &value)) {
                values.push(value);
            }
        }
    }
    match values.len() {
        0..=MAX_VALUES => Ok(values),
        many => Err(format!("{many} values; at most {MAX_VALUES} can be compared")),
    }
}

fn is_same(known: &str, value: &str) -> bool {
    known == value || number(known).is_some_and(|known| number(value) == Some(known))
}

fn steps(
    from: &str,
    to: &str,
    spelled: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let (to, count) = match to.split_once(':') {
        Some((to, count)) => (to, Some(count)),
        None => (to, None),
    };
    let (from, to) = (spelled(from)?, spelled(to)?);
    let example = "write two numbers with the same kind of unit, like 4K..4M or 1mbit..1gbit:5";
    // A code point keeps its name.
    let of_end = |end: &str| number(end).or_else(|| dscp_named(end).map(u64::from));
    let (Some(low), Some(high)) = (of_end(&from), of_end(&to)) else { return Err(example.into()) };
    if high <= low {
        return Err("a range goes from a number to a larger one".into());
    }
    let between = match count {
        None => doubled(low, high),
        Some(count) => spaced(low, high, number_of_values(count)?),
    };
    let between: Vec<String> =
        between.into_iter().map(|value| written(value, &from, &to)).collect();
    Ok([from].into_iter().chain(between).chain([to]).collect())
}

fn number_of_values(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(count @ 2..=32) => Ok(count),
        _ => {
            Err(format!("{text:?} is no number of values; write 2 to {MAX_VALUES} after the colon"))
        }
    }
}

/// A number with the largest of the units K, M and G that divides it, if the ends of its range have such units.
fn written(value: u64, from: &str, to: &str) -> String {
    const UNITS: [(u64, char); 3] = [(1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];
    let has_unit = |end: &str| UNITS.iter().any(|(_, unit)| end.ends_with(*unit));
    let unit = UNITS.iter().find(|(size, _)| value.is_multiple_of(*size));
    match unit.filter(|_| has_unit(from) && has_unit(to)) {
        Some((size, unit)) => format!("{}{unit}", value / size),
        None => value.to_string(),
    }
}

/// What lies between the ends, twice the one before each.
fn doubled(low: u64, high: u64) -> Vec<u64> {
    std::iter::successors(Some(first_step(low)), |value| value.checked_mul(2))
        .take_while(|value| *value < high)
        .filter(|value| *value > low)
        .collect()
}

/// What lies between the ends, `count` values with them, rounded to whole numbers.
fn spaced(low: u64, high: u64, count: u32) -> Vec<u64> {
    let first = first_step(low) as f64;
    let steps = count - 1 - u32::from(low == 0);
    let step = (high as f64 / first).ln() / f64::from(steps);
    let value = |n: u32| (first * (step * f64::from(n)).exp()).round() as u64;
    (0..steps).map(value).filter(|value| (low + 1..high).contains(value)).collect()
}

/// The number from which the steps go: 0 has no logarithm, so that it stands alone before 1.
fn first_step(low: u64) -> u64 {
    low.max(1)
}

/// A whole number, of bytes or of bits per second.
fn number(text: &str) -> Option<u64> {
    let plain = text.parse::<u64>().ok();
    let bytes = || Some(text.parse::<Bytes>().ok()?.0);
    let rate = || Some(text.parse::<BitRate>().ok()?.0.round() as u64);
    plain.or_else(bytes).or_else(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(text: &str) -> Result<Vec<String>, String> {
        super::values(text, |text| Ok(text.into()))
    }

    #[test]
    fn a_range_doubles_or_has_as_many_values_as_asked() {
        assert_eq!(values("4K..64K").unwrap(), ["4K", "8K", "16K", "32K", "64K"]);
        assert_eq!(values("512K..2M").unwrap(), ["512K", "1M", "2M"]);
        assert_eq!(values("4K..64K:3").unwrap(), ["4K", "16K", "64K"]);
        assert_eq!(values("4K..16384").unwrap(), ["4K", "8192", "16384"]);
        assert_eq!(values("1..100:3").unwrap(), ["1", "10", "100"]);
        assert_eq!(values("1..3:9").unwrap(), ["1", "2", "3"], "whole numbers only, each once");
        assert_eq!(values("1mbit..4mbit").unwrap(), ["1mbit", "2000000", "4mbit"]);
        assert_eq!(values("cs1..cs4").unwrap(), ["cs1", "16", "cs4"]);
    }

    #[test]
    fn a_range_from_zero_goes_on_from_one() {
        assert_eq!(values("0..10").unwrap(), ["0", "1", "2", "4", "8", "10"]);
        assert_eq!(values("0..100:4").unwrap(), ["0", "1", "10", "100"]);
        assert_eq!(values("0..256:2").unwrap(), ["0", "256"]);
        assert_eq!(values("0..1").unwrap(), ["0", "1"]);
    }

    #[test]
    fn a_baseline_before_a_range_stays_first() {
        assert_eq!(values("16K, 4K..32K").unwrap(), ["16K", "4K", "8K", "32K"]);
        assert_eq!(values("on,off").unwrap(), ["on", "off"]);
    }

    #[test]
    fn what_is_no_range_says_what_to_write() {
        for (text, why) in [
            ("on..off", "write two numbers"),
            ("4M..4K", "to a larger one"),
            ("1..8:1", "2 to 32"),
            ("1200,,1300", "a comma without a value"),
            ("1..8:x", "2 to 32"),
            ("1..18446744073709551615", "at most 32"),
        ] {
            let said = values(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn each_end_of_a_range_is_spelled_as_the_setting_prints_it() {
        let spelled = |text: &str| match text.strip_suffix("ms") {
            Some(number) => Ok(format!("{number}000")),
            None if text == "1ns" => Err("too short".into()),
            None => Ok(text.into()),
        };
        let micros = |text: &str| super::values(text, spelled);
        assert_eq!(micros("5ms..20ms").unwrap(), ["5000", "10000", "20000"]);
        assert_eq!(micros("1ms,50,1000").unwrap(), ["1000", "50"]);
        assert_eq!(micros("1,1ns"), Err("too short".into()));
    }

    proptest! {
        #[test]
        fn any_text_gives_values_or_a_reason(text in "[0-9a-zA-Z.,:]{0,24}") {
            if let Ok(values) = values(&text) {
                prop_assert!(values.len() <= MAX_VALUES);
            }
        }
    }
}
