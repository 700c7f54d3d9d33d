//! How much better or worse one arm of a comparison is than another.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A relative difference with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// Median paired difference, percent of the baseline.
    pub percent: f64,
    /// Lower end of the interval, percent.
    pub low_percent: f64,
    /// Upper end of the interval, percent.
    pub high_percent: f64,
    /// Confidence level of the interval, percent, after correction for looks and arms. "No difference" uses
    /// an interval of its own with twice the error: two one-sided tests (Schuirmann, 1987).
    pub confidence_percent: f64,
    /// Number of pairs of runs.
    pub n: usize,
    /// Conditions of the runs for whose differences the effect was corrected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjusted_for: Vec<String>,
    /// What the interval says, compared with the threshold.
    pub judgement: Judgement,
}

impl Effect {
    /// The median difference, for printing.
    pub fn difference(&self) -> Difference {
        Difference(self.percent)
    }

    /// The ends of the interval, with `digits` after the point: `+1.0 to +2.5 %`. Both are in the unit of the difference.
    pub fn interval(&self, digits: usize) -> String {
        let is_factor = self.difference().is_factor();
        let ends = [self.low_percent, self.high_percent].map(Difference);
        let [low, high] = ends.map(|end| end.written(is_factor, digits));
        let low = low.strip_suffix(Difference::unit(is_factor)).unwrap_or(&low);
        format!("{low} to {high}")
    }

    /// The difference with its interval after what was `judged`: `better: +3.2 % (95.0 % interval +2.1 to +4.0 %, n = 6
    /// pairs)`.
    ///
    /// An interval of too few pairs for the claim may exclude zero. Then the words say why nothing is claimed.
    pub fn in_words(&self, judged: &str) -> String {
        let excludes_zero = self.low_percent > 0.0 || self.high_percent < 0.0;
        let too_few = if self.judgement == Judgement::Inconclusive && excludes_zero {
            ", too few pairs for a claim"
        } else {
            ""
        };
        let adjusted =
            if self.adjusted_for.is_empty() { "" } else { ", adjusted for the host's speed" };
        format!(
            "{judged}{too_few}: {} ({:.1} % interval {}, n = {} pairs{adjusted})",
            self.difference(),
            self.confidence_percent,
            self.interval(1),
            self.n
        )
    }
}

/// A relative difference, percent of the baseline, as people read it: `+3.2 %`, or a factor if it is at least ten
/// times as much: `35 900 times`. The precision of a format is the number of the percentage's digits after the
/// point, 1 by default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference(pub f64);

impl Difference {
    /// Ten times as much. Such percentages are hard to read.
    const FACTOR_FROM_PERCENT: f64 = 900.0;

    fn is_factor(self) -> bool {
        self.0 >= Self::FACTOR_FROM_PERCENT
    }

    /// What stands after the number.
    fn unit(is_factor: bool) -> &'static str {
        if is_factor { " times" } else { " %" }
    }

    fn written(self, is_factor: bool, digits: usize) -> String {
        let unit = Self::unit(is_factor);
        if is_factor {
            return format!("{}{unit}", grouped(self.0 / 100.0 + 1.0));
        }
        let text = format!("{:+.digits$}", self.0);
        // What rounds to zero has no sign.
        let is_zero = !text.contains(|digit: char| ('1'..='9').contains(&digit));
        format!("{}{unit}", if is_zero { &text[1..] } else { &text })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(self.is_factor(), f.precision().unwrap_or(1)))
    }
}

/// Three significant digits, thousands apart: `12.3`, `35 900`.
fn grouped(number: f64) -> String {
    if !number.is_finite() {
        return "countless".into();
    }
    if number < 100.0 {
        return format!("{number:.1}");
    }
    let step = 10_f64.powi(number.log10().floor() as i32 - 2);
    let digits = format!("{:.0}", (number / step).round() * step);
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// What a comparison says about one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The whole interval is beyond the threshold, on the good side.
    Better,
    /// The whole interval is beyond the threshold, on the bad side.
    Worse,
    /// The whole interval is on the good side of zero, but part of it is below the threshold: the effect may be too
    /// small to count.
    BetterPerhapsBelowThreshold,
    /// The whole interval is on the bad side of zero, but part of it is below the threshold.
    WorsePerhapsBelowThreshold,
    /// The whole interval is within the threshold.
    NoDifference,
    /// The interval is too wide to decide.
    Inconclusive,
}

impl Judgement {
    /// Whether the effect is on the bad side, by however little.
    pub fn is_worse(self) -> bool {
        matches!(self, Self::Worse | Self::WorsePerhapsBelowThreshold)
    }

    /// The judgement in words. The caller gives the words for the good and the bad side: "better" and "worse", or
    /// "faster" and "slower".
    pub fn in_words(self, [good, bad]: [&str; 2]) -> String {
        match self {
            Self::Better => good.into(),
            Self::Worse => bad.into(),
            Self::BetterPerhapsBelowThreshold => format!("{good}, perhaps below the threshold"),
            Self::WorsePerhapsBelowThreshold => format!("{bad}, perhaps below the threshold"),
            Self::NoDifference => "no difference".into(),
            Self::Inconclusive => "inconclusive".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_a_sign_unless_it_is_zero() {
        let shown = [3.24, -3.26, 0.04, -0.04, 0.0, -100.0].map(|it| Difference(it).to_string());
        assert_eq!(shown, ["+3.2 %", "-3.3 %", "0.0 %", "0.0 %", "0.0 %", "-100.0 %"]);
        assert_eq!(format!("{:.0}", Difference(-0.4)), "0 %");
    }

    #[test]
    fn an_interval_of_too_few_pairs_does_not_stand_beside_inconclusive_alone() {
        let words = |low_percent, judgement| {
            Effect {
                percent: 25.0,
                low_percent,
                high_percent: 27.0,
                confidence_percent: 93.75,
                n: 5,
                adjusted_for: Vec::new(),
                judgement,
            }
            .in_words("said")
        };
        let few = words(23.0, Judgement::Inconclusive);
        assert!(few.starts_with("said, too few pairs for a claim: +25.0 % (93.8 %"), "{few}");
        assert!(words(-3.0, Judgement::Inconclusive).starts_with("said: "));
        assert!(words(23.0, Judgement::Better).starts_with("said: "));
    }

    #[test]
    fn ten_times_as_much_and_more_is_a_factor() {
        let shown = [899.0, 900.0, 1_234.0, 10_900.0, 3_585_015.0];
        let shown = shown.map(|percent| Difference(percent).to_string());
        assert_eq!(shown, ["+899.0 %", "10.0 times", "13.3 times", "110 times", "35 900 times"]);
    }

    #[test]
    fn an_interval_has_one_unit_and_names_it_once() {
        let interval = |low_percent, percent, high_percent| {
            let judgement = Judgement::Inconclusive;
            let (confidence_percent, adjusted_for) = (95.0, Vec::new());
            Effect {
                percent,
                low_percent,
                high_percent,
                confidence_percent,
                n: 6,
                adjusted_for,
                judgement,
            }
            .interval(1)
        };
        assert_eq!(interval(-0.01, 1.0, 2.5), "0.0 to +2.5 %");
        assert_eq!(interval(1_100.0, 2_000.0, 2_900.0), "12.0 to 30.0 times");
        assert_eq!(interval(367.7, 796.7, 1_730.0), "+367.7 to +1730.0 %");
        assert_eq!(interval(-50.0, 1_000.0, 2_900.0), "0.5 to 30.0 times");
    }
}
