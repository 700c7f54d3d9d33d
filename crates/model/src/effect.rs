//! How much better or worse one arm of a comparison is than another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::burden::Burden;
use crate::counted::counted;
use crate::difference::Difference;

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

    /// The same of a quantity, in plain words if less of it is better: `+3.2 %`, or `82.9 % less delay`.
    pub fn difference_of(&self, burden: Option<Burden>) -> String {
        burden.map_or_else(|| self.difference().to_string(), |of| of.difference(self.difference()))
    }

    /// The ends of the interval, with `digits` after the point: `+1.0 to +2.5 %`. Both are in the unit of the difference.
    pub fn interval(&self, digits: usize) -> String {
        let is_factor = self.difference().is_factor();
        let ends = [self.low_percent, self.high_percent].map(Difference);
        let [low, high] = ends.map(|end| end.written(is_factor, digits));
        let low = low.strip_suffix(Difference::unit(is_factor)).unwrap_or(&low);
        format!("{low} to {high}")
    }

    /// The same of a quantity, in plain words if less of it is better: `80.1 to 84.2 % less`.
    pub fn interval_of(&self, burden: Option<Burden>) -> String {
        match burden {
            Some(of) if !self.difference().is_factor() => {
                of.interval(Difference(self.low_percent), Difference(self.high_percent))
            }
            _ => self.interval(1),
        }
    }

    /// The difference with its interval after what was `judged`: `better: +3.2 % (95.0 % interval +2.1 to +4.0 %, n = 6
    /// pairs)`. If less is better, `burden` names what of.
    ///
    /// An interval of too few pairs for the claim may exclude zero. Then the words say why nothing is claimed.
    pub fn in_words(&self, judged: &str, burden: Option<Burden>) -> String {
        let excludes_zero = self.low_percent > 0.0 || self.high_percent < 0.0;
        let too_few = if self.judgement == Judgement::Inconclusive && excludes_zero {
            ", too few pairs for a claim"
        } else {
            ""
        };
        let adjusted =
            if self.adjusted_for.is_empty() { "" } else { ", adjusted for the host's speed" };
        format!(
            "{judged}{too_few}: {} ({} % interval {}, n = {}{adjusted})",
            self.difference_of(burden),
            level(self.confidence_percent),
            self.interval_of(burden),
            counted(self.n, "pair")
        )
    }
}

/// A level of confidence, percent: with one digit after the point, or with as many more as tell it from 100.
fn level(percent: f64) -> String {
    let texts = (1..=6).map(|digits| format!("{percent:.digits$}"));
    let mut uncertain = texts.filter(|text| !text.starts_with("100"));
    uncertain.next().unwrap_or_else(|| format!("{percent:.1}"))
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
    fn no_interval_is_certain() {
        let said = [93.75, 95.0, 99.94, 99.96, 99.9987, 100.0].map(level);
        assert_eq!(said, ["93.8", "95.0", "99.9", "99.96", "99.999", "100.0"]);
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
            .in_words("said", None)
        };
        let few = words(23.0, Judgement::Inconclusive);
        assert!(few.starts_with("said, too few pairs for a claim: +25.0 % (93.8 %"), "{few}");
        assert!(words(-3.0, Judgement::Inconclusive).starts_with("said: "));
        assert!(words(23.0, Judgement::Better).starts_with("said: "));
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

    #[test]
    fn what_is_better_if_there_is_less_of_it_is_said_so() {
        let effect = Effect {
            percent: -82.9,
            low_percent: -84.2,
            high_percent: -80.1,
            confidence_percent: 96.9,
            n: 6,
            adjusted_for: Vec::new(),
            judgement: Judgement::Better,
        };
        let said = effect.in_words("better", Some(Burden::less("delay")));
        let plain = "better: 82.9 % less delay (96.9 % interval 80.1 to 84.2 % less, n = 6 pairs)";
        assert_eq!(said, plain);
        let more = Effect { percent: 1900.0, low_percent: 1100.0, high_percent: 2900.0, ..effect };
        let said = more.in_words("worse", Some(Burden::less("delay")));
        assert!(
            said.starts_with("worse: 20.0 times the delay (96.9 % interval 12.0 to 30.0 times"),
            "{said}"
        );
    }
}
