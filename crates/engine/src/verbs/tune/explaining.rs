//! Explains what a change gained by the cause for which it was proposed.

use goodput_experiment::{Suspect, mechanism};
use goodput_model::Comparison;

/// The arm with the change.
const CHANGED: usize = 1;

/// Checks the mechanism of the `rule` that proposed the change, whatever else limited the first run of the comparison. It
/// stays as it is if the runs have not read the rule's witness, or if the change makes goodput worse.
pub fn explain_by(rule: &str, comparison: &mut Comparison) {
    let Some(arm) = comparison.arms.get_mut(CHANGED) else { return };
    let is_worse = arm.goodput.as_ref().is_some_and(|effect| effect.judgement.is_worse());
    let is_known = arm.mechanism.as_ref().is_some_and(|known| known.rule == rule);
    let is_read = comparison.trials.iter().any(|trial| trial.witnesses.contains_key(rule));
    if is_worse || is_known || !is_read {
        return;
    }
    arm.mechanism = mechanism(&comparison.trials, CHANGED, &Suspect::proposed(rule));
}

#[cfg(test)]
mod tests {
    use goodput_model::{ArmResult, BitRate, Known, Trial};

    use super::*;

    /// Six blocks whose runs name another limit than the rule that proposed the change.
    fn compared() -> Comparison {
        let trial = |block, arm: usize| {
            let [bits_per_s, witness] = [[1e7, 40.0], [1e8, 0.0]][arm];
            Trial {
                limit: "receive-window".into(),
                witnesses: [("sack-off".to_owned(), witness)].into(),
                ..Trial::new(block, arm, Known::Value(BitRate(bits_per_s)))
            }
        };
        let arms = ["0", "1"].map(|value| ArmResult::new(vec![value.into()]));
        let setting = "sysctl.net.ipv4.tcp_sack".parse().unwrap();
        let mut comparison = Comparison::new(vec![setting], arms.into());
        comparison.trials = (1..=6).flat_map(|block| [trial(block, 0), trial(block, 1)]).collect();
        comparison
    }

    #[test]
    fn a_change_is_explained_by_the_rule_that_proposed_it() {
        let mut comparison = compared();
        explain_by("sack-off", &mut comparison);
        let known = comparison.arms[CHANGED].mechanism.clone().unwrap();
        assert_eq!((known.rule.as_str(), known.moved), ("sack-off", Known::Value(true)));
        explain_by("unread", &mut comparison);
        assert_eq!(comparison.arms[CHANGED].mechanism.as_ref().unwrap().rule, "sack-off");
    }
}
