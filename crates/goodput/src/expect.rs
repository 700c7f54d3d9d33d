//! `--expect`: what a result must satisfy, for scripts.

use std::str::FromStr;

use goodput_model::{BitRate, Record, Verdict};

use crate::args::unfit;

/// One expectation: `>=900mbit`, `<1gbit`, `limit=none`, `limit!=path-loss`.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation {
    /// The goodput is at least this.
    AtLeast(BitRate),
    /// The goodput is at most this.
    AtMost(BitRate),
    /// The verdict is this rule (`none` for no limit found).
    Limit(String),
    /// The verdict is not this rule.
    NotLimit(String),
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = |text: &str| text.parse::<BitRate>().map_err(|e| e.to_string());
        if let Some(limit) = text.strip_prefix("limit!=") {
            return known_limit(limit).map(Self::NotLimit);
        }
        if let Some(limit) = text.strip_prefix("limit=") {
            return known_limit(limit).map(Self::Limit);
        }
        match (text.strip_prefix(">="), text.strip_prefix("<=")) {
            (Some(least), _) => rate(least).map(Self::AtLeast),
            (_, Some(most)) => rate(most).map(Self::AtMost),
            _ => {
                Err(unfit(text, "a condition", "\">=RATE\", \"<=RATE\", limit=RULE or limit!=RULE"))
            }
        }
    }
}

fn known_limit(id: &str) -> Result<String, String> {
    let known = goodput_diagnose::rules::ALL.iter().map(|rule| rule.id).chain([Verdict::NO_LIMIT]);
    if known.clone().any(|known| known == id) {
        return Ok(id.into());
    }
    let help = goodput_model::meant(id, known)
        .unwrap_or_else(|| "write none, or a name that `goodput list rules` lists".into());
    Err(format!("there is no rule {id:?}; {help}"))
}

impl Expectation {
    /// The expectation and the result, if they differ.
    pub fn miss(&self, record: &Record) -> Option<String> {
        let (goodput, limit) = (record.result.goodput_bits_per_s, &record.verdict.limit);
        match self {
            Self::AtLeast(least) if goodput < *least => {
                Some(format!("expected at least {least}, got {goodput}"))
            }
            Self::AtMost(most) if goodput > *most => {
                Some(format!("expected at most {most}, got {goodput}"))
            }
            Self::Limit(wanted) if wanted != limit => {
                Some(format!("expected the limit {wanted}, got {limit}"))
            }
            Self::NotLimit(unwanted) if unwanted == limit => {
                Some(format!("expected any limit but {unwanted}"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_forms_are_read() {
        let rate = |mbit: f64| BitRate(mbit * 1e6);
        assert_eq!(">=900mbit".parse(), Ok(Expectation::AtLeast(rate(900.0))));
        assert_eq!("<=1M".parse(), Ok(Expectation::AtMost(rate(1.0))));
        assert_eq!("limit=none".parse(), Ok(Expectation::Limit("none".into())));
        assert_eq!("limit!=path-loss".parse(), Ok(Expectation::NotLimit("path-loss".into())));
    }

    #[test]
    fn a_misspelt_rule_is_answered_with_the_nearest() {
        let error = "limit=path-los".parse::<Expectation>().unwrap_err();
        assert!(error.contains("path-loss"), "{error}");
        let far = "limit=nosuchrule".parse::<Expectation>().unwrap_err();
        assert!(far.ends_with("write none, or a name that `goodput list rules` lists"), "{far}");
        assert!("900mbit".parse::<Expectation>().is_err());
    }
}
