//! The days of deleted results as another history takes them: the counts themselves, a day in a line of JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::days::{Counted, LIMIT, Of, QUANTITIES};

/// What is counted of the deleted results of a day, of one target, kind of command and kind of traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayCounts {
    /// The day in UTC: `2026-01-31`.
    pub day: String,
    /// The target, as typed by the user.
    pub target: String,
    /// `test` or `attach`.
    pub kind: String,
    /// `tcp` or `udp`; empty if an older goodput kept the results.
    pub transport: String,
    /// `send`, `reverse` or `both`; empty like `transport`.
    pub direction: String,
    /// Number of flows; 0 like `transport`.
    pub flows: u32,
    /// Of each quantity (`goodput` in bits per second, `round-trip` in seconds, `lost` as a share, `limit`), how many results
    /// had each value. Numbers have three digits: `9.41e+08`.
    pub counts: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Most results that a count of another history may have: a test each second of a day and target, from ten thousand hosts.
const MAX_RESULTS: u64 = 1_000_000_000;

impl DayCounts {
    /// Whether a line of JSON is a day, and not a record.
    pub fn is_one(json: &str) -> bool {
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "day")]
            _day: String,
            #[serde(rename = "counts")]
            _counts: serde::de::IgnoredAny,
        }
        serde_json::from_str::<Head>(json).is_ok()
    }

    /// Reads a line of JSON that another goodput wrote. Its texts are as they are there.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn read(json: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(json).map_err(|why| why.to_string())?;
        let mut counts: BTreeMap<_, BTreeMap<String, u64>> = BTreeMap::new();
        for (quantity, values) in &read.counts {
            if !QUANTITIES.contains(&quantity.as_str()) {
                return Err(format!("{quantity:?} is no quantity of a day"));
            }
            for (value, results) in values {
                if !(1..=MAX_RESULTS).contains(results) {
                    return Err(format!("{results} is no number of results"));
                }
                let value = if quantity == LIMIT { value.clone() } else { three_digits(value)? };
                *counts.entry(quantity.clone()).or_default().entry(value).or_default() += results;
            }
        }
        Ok(Self { counts, ..read })
    }

    /// The number of its results.
    pub fn results(&self) -> u64 {
        self.counts.get(QUANTITIES[0]).map_or(0, |values| values.values().sum())
    }

    /// Each day of these counts, in their order.
    pub(crate) fn of(counted: &[Counted]) -> Vec<Self> {
        counted.chunk_by(|a, b| a.of == b.of).filter_map(Self::one).collect()
    }

    fn one(counted: &[Counted]) -> Option<Self> {
        let Of { day, target, kind, transport, direction, flows } = counted.first()?.of.clone();
        let mut counts: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for Counted { quantity, value, results, .. } in counted {
            counts.entry(quantity.clone()).or_default().insert(value.clone(), *results);
        }
        let flows = flows.try_into().unwrap_or(0);
        Some(Self { day, target, kind, transport, direction, flows, counts })
    }

    /// As the database has them.
    pub(crate) fn counted(&self) -> Vec<Counted> {
        let of = Of {
            day: self.day.clone(),
            target: self.target.clone(),
            kind: self.kind.clone(),
            transport: self.transport.clone(),
            direction: self.direction.clone(),
            flows: self.flows.into(),
        };
        let one = |quantity: &String, (value, results): (&String, &u64)| Counted {
            of: of.clone(),
            quantity: quantity.clone(),
            value: value.clone(),
            results: *results,
        };
        let each = |(quantity, values): (_, &BTreeMap<_, _>)| {
            values.iter().map(|count| one(quantity, count)).collect::<Vec<_>>()
        };
        self.counts.iter().flat_map(each).collect()
    }
}

/// A number as databases write it with three digits (`printf('%.2e')`): `9.41e+08`.
fn three_digits(text: &str) -> Result<String, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let number = number.ok_or_else(|| format!("{text:?} is no value of a result"))?;
    let short = format!("{number:.2e}");
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    Ok(format!("{digits}e{sign}{exponent:0>2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"day":"2026-01-31","target":"nas","kind":"test","transport":"tcp","direction":"send","flows":1,
        "counts":{"goodput":{"9.41e+08":12,"941000000":1},"limit":{"policer":13},"round-trip":{"1.20e-02":13}}}"#;

    #[test]
    fn a_day_is_read_as_it_was_written_and_its_numbers_have_one_form() {
        let day = DayCounts::read(ONE).unwrap();
        assert_eq!((day.results(), &day.counts["goodput"]["9.41e+08"]), (13, &13));
        let json = serde_json::to_string(&day).unwrap();
        assert_eq!(DayCounts::read(&json).unwrap(), day);
        assert_eq!(DayCounts::of(&day.counted()), [day]);
        assert!(DayCounts::is_one(&json) && !DayCounts::is_one("{}") && !DayCounts::is_one(""));
    }

    #[test]
    fn numbers_have_the_form_of_the_databases() {
        let written = |text: &str| three_digits(text).unwrap();
        assert_eq!(written("0"), "0.00e+00");
        assert_eq!(written("0.0123"), "1.23e-02");
        assert_eq!(written("1e-100"), "1.00e-100");
        assert_eq!(written("94.1e10"), "9.41e+11");
    }

    #[test]
    fn what_is_no_day_is_refused_with_the_reason() {
        for (from, to, why) in [
            ("round-trip", "colour", "no quantity"),
            ("9.41e+08", "NaN", "no value"),
            ("9.41e+08", "-1", "no value"),
            (":12,", ":0,", "no number"),
            (":12,", ":99999999999,", "no number"),
            ("\"flows\":1", "\"flows\":-1", "invalid"),
        ] {
            let text = ONE.replace(from, to);
            let said = DayCounts::read(&text).unwrap_err();
            assert!(said.contains(why), "{to}: {said}");
        }
    }
}
