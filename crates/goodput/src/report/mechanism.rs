//! The mechanism check of one arm in words: whether it changed what the diagnosis named.

use goodput_model::{ArmResult, BitRate, Known, Mechanism};

use super::style;

/// How far the goodput may be from the prediction, as a share of the prediction: the next limit is only an estimate.
const AS_PREDICTED: f64 = 0.10;

/// The lines of one arm, with their labels: the witness, the next limit, the reversal.
pub fn lines(arm: &ArmResult) -> Vec<(&'static str, String)> {
    let Some(mechanism) = &arm.mechanism else { return Vec::new() };
    let mut lines = vec![("because", because(mechanism))];
    if mechanism.moved == Known::Value(true) {
        lines.push(("next", next(mechanism, &arm.goodput_bits_per_s)));
        lines.extend(reversal(mechanism).map(|line| ("reversal", line)));
    }
    lines
}

fn because(mechanism: &Mechanism) -> String {
    let value = |known: &Known<f64>| match known {
        Known::Value(value) => format!("{value:.1}"),
        Known::Missing(why) => format!("unknown ({why})"),
    };
    let moved = match &mechanism.moved {
        Known::Value(true) => style::good("confirmed"),
        Known::Value(false) => "NOT confirmed: the witness did not change".into(),
        Known::Missing(why) => return format!("{} unknown: {why}", mechanism.rule),
    };
    let rule = goodput_diagnose::rules::ALL.iter().find(|rule| rule.id == mechanism.rule);
    format!(
        "{}, {moved}: {} {} → {}",
        mechanism.rule,
        rule.map_or("witness", |rule| rule.witness_name).replace('_', " "),
        value(&mechanism.witness_before),
        value(&mechanism.witness_after),
    )
}

fn next(mechanism: &Mechanism, goodput: &Known<BitRate>) -> String {
    let limit = if mechanism.next_limit == mechanism.rule {
        format!("{} still limits", mechanism.rule)
    } else {
        format!("the next limit is {}", mechanism.next_limit)
    };
    let (Some(predicted), Known::Value(goodput)) = (mechanism.predicted_bits_per_s, goodput) else {
        return limit;
    };
    let is_near = (goodput.0 / predicted.0 - 1.0).abs() <= AS_PREDICTED;
    let compared = if is_near { "as predicted" } else { "NOT as predicted" };
    format!("{limit}; {compared}: {goodput} of {predicted}")
}

fn reversal(mechanism: &Mechanism) -> Option<String> {
    match &mechanism.reversed {
        Known::Value(true) => {
            Some("confirmed: the symptom came back whenever the baseline followed".into())
        }
        Known::Value(false) => {
            Some("NOT confirmed: the symptom did not come back when the baseline followed".into())
        }
        Known::Missing(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(moved: bool, next_limit: &str, goodput: f64) -> ArmResult {
        let mechanism = Mechanism {
            rule: "shaper-burst".into(),
            witness_before: Known::Value(202.2),
            witness_after: Known::Value(6.7),
            moved: Known::Value(moved),
            next_limit: next_limit.into(),
            predicted_bits_per_s: Some(BitRate(95e6)),
            reversed: Known::Value(true),
        };
        ArmResult {
            mechanism: Some(mechanism),
            goodput_bits_per_s: Known::Value(BitRate(goodput)),
            ..ArmResult::new(vec!["125K".into()])
        }
    }

    #[test]
    fn a_proof_has_its_witness_its_next_limit_and_its_reversal() {
        let lines = lines(&arm(true, "shaper-rate", 94e6));
        let labels: Vec<_> = lines.iter().map(|(label, _)| *label).collect();
        assert_eq!(labels, ["because", "next", "reversal"]);
        assert!(lines[0].1.contains("202.2 → 6.7"), "{lines:?}");
        for fact in ["shaper-rate", "as predicted", "94 Mbit/s of 95 Mbit/s"] {
            assert!(lines[1].1.contains(fact), "{fact} in {lines:?}");
        }
    }

    #[test]
    fn what_was_not_predicted_and_what_did_not_move_is_said() {
        let lines_of = |arm| lines(&arm);
        let other = lines_of(arm(true, "shaper-burst", 50e6));
        assert!(other[1].1.starts_with("shaper-burst still limits; NOT as predicted"), "{other:?}");
        let still = lines_of(arm(false, "shaper-burst", 50e6));
        assert_eq!(still.len(), 1);
        assert!(still[0].1.contains("NOT confirmed"));
    }
}
