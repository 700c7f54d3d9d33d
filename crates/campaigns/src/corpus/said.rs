//! Findings of judged runs: how probable each was said to be, from what, and whether it was right.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::truth::{Planted, Ran, is_of_the_machine};

/// One finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Probability of being right by today's weights, 0 to 1.
    pub probability: f64,
    /// What the probability is made from, by name.
    pub features: BTreeMap<String, f64>,
    /// Whether it names what was planted; on a healthy path, whether such a path may have this cause.
    pub is_right: bool,
}

/// What of a run's line this is about.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    features: Vec<Option<BTreeMap<String, f64>>>,
    record: Option<Record>,
}

#[derive(Deserialize)]
struct Record {
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    rule: String,
    end: Option<String>,
    probability: Option<serde_json::Value>,
}

/// The findings of a run that have a probability, but for those of which nobody can say whether they are right.
pub fn said(line: &str, ran: &Ran) -> Result<Vec<Said>> {
    let line: Line =
        serde_json::from_str(line).with_context(|| format!("read the findings of {}", ran.case))?;
    let findings = line.record.map(|record| record.findings).unwrap_or_default();
    let said = |(finding, features): (Finding, Option<BTreeMap<String, f64>>)| {
        if is_of_the_machine(ran, &finding.rule) {
            return None;
        }
        Some(Said {
            probability: finding.probability.as_ref()?.as_f64()?,
            features: features?,
            is_right: is_right(&ran.planted, &finding),
        })
    };
    Ok(findings.into_iter().zip(line.features).filter_map(said).collect())
}

/// What a run's line shows of each quantity that a threshold is fitted to.
pub fn measured(line: &str) -> Result<BTreeMap<String, f64>> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(default)]
        measured: BTreeMap<String, f64>,
    }
    Ok(serde_json::from_str::<Line>(line).context("read what a run measured")?.measured)
}

fn is_right(planted: &Planted, finding: &Finding) -> bool {
    match planted {
        Planted::One { rules, end } => {
            rules.contains(&finding.rule) && (end.is_none() || *end == finding.end)
        }
        Planted::Several(rules) | Planted::Nothing(rules) => rules.contains(&finding.rule),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_right_if_it_names_what_was_planted_where_it_was() {
        let finding = |rule: &str, end: &str| {
            format!(r#"{{"rule":"{rule}","end":"{end}","probability":0.9}}"#)
        };
        let found = [finding("a", "near"), finding("a", "far"), finding("b", "near")].join(",");
        let line = format!(
            r#"{{"case":"x","expected":{{"limit":["a"],"end":"near"}},"features":[{{"held":0.5}},{{}},null],"record":{{"findings":[{found}]}}}}"#
        );
        let said = said(&line, &Ran::parse(&line).unwrap()).unwrap();
        assert_eq!(said.iter().map(|one| one.is_right).collect::<Vec<_>>(), [true, false]);
        assert_eq!((said[0].probability, said[0].features["held"]), (0.9, 0.5));
    }
}
