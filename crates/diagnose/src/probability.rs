//! How probable it is that a finding is right: a logistic model, whose weights all rules share.
//!
//! The log odds are the sum of a few [`FEATURES`], each times its weight. `cargo xtask corpus` fits the weights to runs
//! with known faults, and writes `data/fit.json`. The word that a person reads follows from the probability.

use std::sync::LazyLock;

use goodput_model::{Confidence, Finding, Known, Missing, Transport, Verdict};
use serde::Deserialize;

use crate::held_shares::{HeldShares, is_aside};
use crate::view::View;

/// What is known of a finding:
///
/// - `certain`, `likely`, `possible`: 1 if the rule says this of its own evidence, else 0;
/// - `behind`: 1 if another finding is ranked first, else 0;
/// - `rival`: 1 if the evidence for another finding is at least as good, else 0;
/// - `held`: share of the time that the cause held by the account, less a half.
pub const FEATURES: [&str; 6] = ["certain", "likely", "possible", "behind", "rival", "held"];

/// The values of [`FEATURES`].
pub type Features = [f64; FEATURES.len()];

/// The part of `data/fit.json` that a diagnosis needs; docs/corpus.md shows the rest.
#[derive(Deserialize)]
struct Fit {
    weights: Vec<Weight>,
}

#[derive(Deserialize)]
struct Weight {
    feature: String,
    weight: f64,
}

static WEIGHTS: LazyLock<Result<Features, Missing>> =
    LazyLock::new(|| weights(include_str!("../data/fit.json")));

fn weights(fit: &str) -> Result<Features, Missing> {
    let fit: Fit = serde_json::from_str(fit)
        .map_err(|why| Missing::because(format!("the fitted weights can't be read: {why}")))?;
    let mut weights = Features::default();
    for (weight, name) in weights.iter_mut().zip(FEATURES) {
        let fitted = fit.weights.iter().find(|fitted| fitted.feature == name);
        let fitted = fitted.ok_or_else(|| Missing::because(format!("no weight of {name}")))?;
        *weight = fitted.weight;
    }
    Ok(weights)
}

/// Gives each of the ranked findings its probability, and the word that follows from it. If there is none, the word stays
/// the rule's.
pub(crate) fn assign(view: &View, held: HeldShares, findings: &mut [Finding]) {
    let weights = resembles_the_corpus(view).and_then(|()| WEIGHTS.clone());
    let features: Vec<_> =
        (0..findings.len()).map(|place| features(findings, place, held)).collect();
    for (finding, features) in findings.iter_mut().zip(features) {
        let both = weights.clone().and_then(|weights| Ok((weights, features?)));
        finding.probability = both.map(|(weights, features)| logistic(weights, features)).into();
        if let Known::Value(probability) = finding.probability {
            finding.rule_confidence = Some(finding.confidence);
            finding.confidence = Confidence::of(probability);
        }
    }
}

/// The features of each finding of a verdict, as today's probabilities are made from them; `None` for a finding without
/// a probability.
pub fn features_of(findings: &[Finding], verdict: &Verdict) -> Vec<Option<Features>> {
    let held = HeldShares::in_verdict(verdict, Transport::Tcp);
    let of = |place: usize| {
        let known = findings[place].probability.value();
        known.and_then(|_| features(findings, place, held).ok())
    };
    (0..findings.len()).map(of).collect()
}

/// Fails if the corpus has no such measurement: it has TCP between two of our programs.
fn resembles_the_corpus(view: &View) -> Result<(), Missing> {
    view.needs_tcp()?;
    view.needs_start()?;
    for side in view.sides() {
        side.end()?;
        if !side.is_sampled() {
            let why = format!("the {} end counted nothing while payload moved", side.name);
            return Err(Missing::because(why));
        }
    }
    Ok(())
}

fn features(findings: &[Finding], place: usize, held: HeldShares) -> Result<Features, Missing> {
    let own = &findings[place];
    if is_aside(&own.rule) {
        return Err(Missing::because("worth knowing, but not a limit"));
    }
    let share = held.share(&own.rule);
    let share = share.ok_or_else(|| Missing::because("most of the time is not accounted for"))?;
    let is_as_sure = |other: &Finding| evidence(other) >= evidence(own) && !is_aside(&other.rule);
    let mut others = findings.iter().enumerate().filter(|(other, _)| *other != place);
    let flag = |is: bool| f64::from(u8::from(is));
    Ok([
        flag(evidence(own) == Confidence::Certain),
        flag(evidence(own) == Confidence::Likely),
        flag(evidence(own) == Confidence::Possible),
        flag(place > 0),
        flag(others.any(|(_, other)| is_as_sure(other))),
        share - 0.5,
    ])
}

/// What the rule says of its evidence.
fn evidence(finding: &Finding) -> Confidence {
    finding.rule_confidence.unwrap_or(finding.confidence)
}

fn logistic(weights: Features, features: Features) -> f64 {
    let log_odds: f64 = weights.iter().zip(features).map(|(weight, value)| weight * value).sum();
    1.0 / (1.0 + libm::exp(-log_odds))
}

#[cfg(test)]
mod tests {
    use goodput_model::End;

    use super::*;
    use crate::diagnose;
    use crate::testing::Case;

    #[test]
    fn the_fitted_weights_are_read_and_better_evidence_is_more_probable() {
        let weights = weights(include_str!("../data/fit.json")).unwrap();
        assert!(weights[0] > weights[1] && weights[1] > weights[2], "{weights:?}");
        assert!(super::weights("{}").is_err() && super::weights(r#"{"weights":[]}"#).is_err());
    }

    #[test]
    fn log_odds_are_the_weighted_sum() {
        let weights = [3.0, 0.0, 0.0, -1.0, 0.0, 2.0];
        let p = logistic(weights, [1.0, 0.0, 0.0, 1.0, 0.0, -0.5]);
        assert!((p - 1.0 / (1.0 + (-1.0_f64).exp())).abs() < 1e-12, "{p}");
    }

    #[test]
    fn a_finding_has_a_probability_and_its_word() {
        let finding = &diagnose(&Case::receive_window().evidence()).findings[0];
        let probability = *finding.probability.value().unwrap();
        assert_eq!(finding.confidence, Confidence::of(probability));
        assert!(finding.rule_confidence.is_some());
    }

    #[test]
    fn the_features_of_a_record_are_those_of_the_diagnosis() {
        let mut diagnosis = diagnose(&Case::receive_window().evidence());
        let features = features_of(&diagnosis.findings, &diagnosis.verdict)[0].unwrap();
        let weights = WEIGHTS.clone().unwrap();
        let probability = *diagnosis.findings[0].probability.value().unwrap();
        assert_eq!(logistic(weights, features), probability);
        diagnosis.findings[0].probability = Known::missing("x");
        assert!(features_of(&diagnosis.findings, &diagnosis.verdict)[0].is_none());
    }

    #[test]
    fn what_the_corpus_does_not_have_has_the_rules_word_alone() {
        for case in [Case::send_buffer().without_far(), Case::send_buffer().without_far().watched()]
        {
            let finding = &diagnose(&case.evidence()).findings[0];
            assert!(finding.probability.value().is_none() && finding.rule_confidence.is_none());
        }
        let mut configured = Case::send_buffer().evidence();
        let far = configured.far.value().map(|far| End { samples: Vec::new(), ..End::clone(far) });
        configured.far = Known::Value(far.unwrap().into());
        let finding = &diagnose(&configured).findings[0];
        assert!(finding.probability.value().is_none(), "only its settings were read");
    }
}
