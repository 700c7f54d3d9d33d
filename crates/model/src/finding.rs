//! A rule's finding, its evidence and the changes that would help.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::known::Known;
use crate::place::Place;
use crate::units::BitRate;

/// A cause that a rule named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Id of the rule.
    pub rule: String,
    /// Where the cause is: the near end, the far end, or the path between them.
    pub end: Place,
    /// How sure this is, in a word that follows from `probability`; without one, the rule's own word.
    pub confidence: Confidence,
    /// The rule's own word for its evidence, from which `probability` is made; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_confidence: Option<Confidence>,
    /// Probability that this cause limits the measurement, 0 to 1, fitted to random faults.
    #[serde(default = "no_probability")]
    pub probability: Known<f64>,
    /// Share of the time in which the cause limited the flow, percent, if countable.
    pub share_percent: Known<f64>,
    /// Range in which this share lies with 95 % confidence, percent; absent if it is not a share of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_between_percent: Option<[f64; 2]>,
    /// The cause in words, as it follows "limited by".
    pub summary: String,
    /// Evidence for the verdict; never empty.
    pub evidence: Vec<Witness>,
    /// Goodput that the next limit would allow without this one, bits per second.
    pub predicted_bits_per_s: Known<BitRate>,
    /// Changes to try, the best first; empty if nothing needs fixing.
    pub changes: Vec<Change>,
    /// Advice if no setting of goodput helps: commands or text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
    /// Files to write so that the change outlives a reboot, by system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permanent: Vec<Permanent>,
}

fn no_probability() -> Known<f64> {
    Known::missing("this version of goodput computed no probability")
}

impl Finding {
    /// A cause that `rule` found at `end`, of which nothing else is known; `summary` follows "limited by".
    #[must_use]
    pub fn new(rule: &str, end: Place, confidence: Confidence, summary: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            end,
            confidence,
            rule_confidence: None,
            probability: Known::missing("only a measurement has one"),
            share_percent: Known::missing("not countable as a share of time"),
            share_between_percent: None,
            summary: summary.into(),
            evidence: Vec::new(),
            predicted_bits_per_s: Known::missing("not computed"),
            changes: Vec::new(),
            advice: Vec::new(),
            permanent: Vec::new(),
        }
    }

    /// How sure this is, for a person: `86 % (likely)`, or the word alone.
    pub fn sureness(&self) -> String {
        match self.probability {
            // Rounded down: 94.6 % is not yet the 95 % of the next word, and nothing is 100 %.
            Known::Value(probability) => {
                format!("{:.0} % ({})", (probability * 100.0).floor(), self.confidence)
            }
            Known::Missing(_) => self.confidence.to_string(),
        }
    }
}

/// A change that outlives a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Permanent {
    /// The file: a path such as `/etc/sysctl.d/90-goodput.conf` or `FreeBSD /etc/rc.conf`, or words that identify it.
    pub file: String,
    /// The lines to write into the file.
    pub lines: String,
}

/// How advice begins that names a cause with which a finding may be confused, instead of a remedy.
pub const RIVAL: &str = "could also be";

/// How sure a finding is. A rule takes the word that fits its evidence, and a probability the word of its range.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// One witness, or look-alikes not excluded. A probability below 0.8.
    Possible,
    /// Witnesses agree, a look-alike remains. A probability from 0.8.
    Likely,
    /// Counted directly, look-alikes excluded. A probability from 0.95.
    Certain,
}

impl Confidence {
    /// Least probability of what is likely.
    pub const MIN_LIKELY: f64 = 0.8;
    /// Least probability of what is certain.
    pub const MIN_CERTAIN: f64 = 0.95;

    /// The word for a probability, 0 to 1.
    pub fn of(probability: f64) -> Self {
        match probability {
            p if p >= Self::MIN_CERTAIN => Self::Certain,
            p if p >= Self::MIN_LIKELY => Self::Likely,
            _ => Self::Possible,
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        })
    }
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Witness {
    /// Where this was observed.
    pub end: Place,
    /// The observed quantity: a fact's name or a ratio of several.
    pub name: String,
    /// The deciding value, in the unit at the end of the name.
    pub value: f64,
    /// The value in words, with its context.
    pub text: String,
}

/// A rule that could not decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Undecided {
    /// Id of the rule.
    pub rule: String,
    /// Why the rule could not decide.
    pub because: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_follows_from_the_probability() {
        let words = [0.0, 0.799, 0.8, 0.949, 0.95, 1.0].map(Confidence::of);
        use Confidence::{Certain, Likely, Possible};
        assert_eq!(words, [Possible, Possible, Likely, Likely, Certain, Certain]);
    }

    #[test]
    fn a_finding_of_an_older_version_has_its_word_alone() {
        let old = r#"{"rule":"path-loss","end":"path","confidence":"likely","share_percent":{"missing":"x"},
            "summary":"loss","evidence":[],"predicted_bits_per_s":{"missing":"x"},"changes":[]}"#;
        let mut finding: Finding = serde_json::from_str(old).unwrap();
        assert_eq!(finding.sureness(), "likely");
        finding.probability = Known::Value(0.9499);
        assert_eq!(finding.sureness(), "94 % (likely)");
    }
}
