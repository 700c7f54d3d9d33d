//! A lasting change of a path's round trip or loss, as data and in words.

use goodput_model::Seconds;
use goodput_watch::Quantity;
use serde::{Deserialize, Serialize};

use super::change_point::ChangePoint;

/// A change of another quantity than the goodput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shifted {
    /// When, by which tests, and what changed with it.
    #[serde(flatten)]
    pub found: ChangePoint,
    /// What changed.
    pub quantity: Quantity,
    /// Median before: seconds of the round trip, or the share that was lost, 0 to 1; absent if no record can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_before: Option<f64>,
    /// Median since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_since: Option<f64>,
    /// Of the round trip, the value since divided by that before, without the daily rhythm, and the ends of its 95 %
    /// confidence interval. Of the loss, that of the share that was not lost.
    pub ratio: [f64; 3],
    /// Whether it came with a change that was said already: of the goodput, or of another quantity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_goodput: bool,
    /// Whether the watch has not said it yet, because the goodput may change with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// Whether it had passed before the watch said it: what changed and its return are then both unsaid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed: bool,
}

impl Shifted {
    /// Whether it is told as a change of its own. What is not is kept all the same: it is not to be found again.
    pub fn is_said(&self) -> bool {
        !(self.with_goodput || self.waits || self.passed)
    }

    /// What the path, or a test, has since, as it follows "the path": `has a round trip 3.1 times as long (2.9 to 3.3 times, 8 tests)`.
    pub fn what(&self) -> String {
        let tests = self.found.tests;
        match self.quantity {
            Quantity::RoundTrip => {
                format!("has a {} ({}, {tests} tests)", longer(self.ratio[0]), self.range())
            }
            Quantity::Loss => {
                let word = if self.ratio[0] < 1.0 { "more" } else { "less" };
                format!("loses {word} ({tests} tests)")
            }
        }
    }

    fn range(&self) -> String {
        let [ratio, low, high] = self.ratio;
        match is_times(ratio) {
            true => format!("{low:.1} to {high:.1} times"),
            false => format!("{:+.0} to {:+.0} %", percent(low), percent(high)),
        }
    }

    /// The value before, and since, in words.
    pub fn values(&self) -> [String; 2] {
        let quantity = self.quantity;
        [self.value_before, self.value_since]
            .map(|value| value.map_or_else(|| "unknown".into(), |value| in_words(quantity, value)))
    }
}

/// Whether a ratio is said as times, and not in percent.
fn is_times(ratio: f64) -> bool {
    ratio >= 2.0
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

fn longer(ratio: f64) -> String {
    match ratio {
        ratio if is_times(ratio) => format!("round trip {ratio:.1} times as long"),
        ratio if ratio < 1.0 => format!("round trip {:.0} % shorter", -percent(ratio)),
        ratio => format!("round trip {:.0} % longer", percent(ratio)),
    }
}

fn in_words(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::RoundTrip => Seconds(value).to_string(),
        Quantity::Loss => {
            let percent = value * 100.0;
            format!("{percent:.0$} % lost", decimals(percent))
        }
    }
}

/// Decimals of a percentage: at least two, and enough for two digits that are not zero.
fn decimals(percent: f64) -> usize {
    let first = -percent.log10().floor();
    if percent > 0.0 { (first + 1.0).clamp(2.0, 9.0) as usize } else { 2 }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::report::change_point;

    /// A round trip that is three times as long.
    pub fn example() -> Shifted {
        Shifted {
            found: change_point::tests::example(),
            quantity: Quantity::RoundTrip,
            value_before: Some(0.01),
            value_since: Some(0.031),
            ratio: [3.1, 2.9, 3.3],
            with_goodput: false,
            waits: false,
            passed: false,
        }
    }

    #[test]
    fn what_waits_came_with_another_change_or_passed_is_not_said() {
        assert!(example().is_said());
        for unsaid in [
            Shifted { with_goodput: true, ..example() },
            Shifted { waits: true, ..example() },
            Shifted { passed: true, ..example() },
        ] {
            assert!(!unsaid.is_said(), "{unsaid:?}");
        }
    }

    #[test]
    fn each_quantity_has_its_words_and_units() {
        let what = |quantity, ratio| Shifted { quantity, ratio, ..example() }.what();
        let trip = Quantity::RoundTrip;
        assert_eq!(
            what(trip, [3.1, 2.9, 3.3]),
            "has a round trip 3.1 times as long (2.9 to 3.3 times, 8 tests)"
        );
        assert_eq!(
            what(trip, [1.2, 1.1, 1.3]),
            "has a round trip 20 % longer (+10 to +30 %, 8 tests)"
        );
        assert_eq!(
            what(trip, [0.5, 0.4, 0.6]),
            "has a round trip 50 % shorter (-60 to -40 %, 8 tests)"
        );
        assert_eq!(what(Quantity::Loss, [0.99, 0.98, 0.995]), "loses more (8 tests)");
        assert_eq!(what(Quantity::Loss, [1.01, 1.0, 1.02]), "loses less (8 tests)");
        assert_eq!(example().values(), ["10 ms", "31 ms"]);
        let lost =
            |value| Shifted { quantity: Quantity::Loss, value_since: Some(value), ..example() };
        let words = [0.0, 0.012, 2e-6].map(|value| lost(value).values()[1].clone());
        assert_eq!(words, ["0.00 % lost", "1.20 % lost", "0.00020 % lost"]);
    }
}
