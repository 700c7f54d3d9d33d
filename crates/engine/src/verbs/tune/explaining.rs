//! Explains what a change gained by the cause for which it was proposed.

use goodput_experiment::{Suspect, mechanism};
use goodput_model::{Comparison, Known, Mechanism};

/// The arm with the change.
const CHANGED: usize = 1;

/// Explains the arm by a cause whose witness moved: that of a rule that proposed one of its changes, the first of `rules`
/// first, or else what limited the first run of the comparison. If none moved, the first rule stands there unconfirmed, also
/// if no run could read its witness: what limited the first run is no reason for the change. It stays as it is if the change
/// makes goodput worse.
pub fn explain_by(rules: &[String], comparison: &mut Comparison) {
    let trials = &comparison.trials;
    let Some(arm) = comparison.arms.get_mut(CHANGED) else { return };
    if arm.goodput.as_ref().is_some_and(|effect| effect.judgement.is_worse()) {
        return;
    }
    let of_first_run = arm.mechanism.take();
    let explained = |rule: &String| {
        let known = of_first_run.clone().filter(|known| known.rule == *rule);
        known.or_else(|| mechanism(trials, CHANGED, &Suspect::proposed(rule)))
    };
    let mut known: Vec<Mechanism> = rules.iter().filter_map(explained).collect();
    known.extend(of_first_run);
    let is_confirmed = |cause: &Mechanism| *cause.confirmed() == Known::Value(true);
    let best = known.iter().position(is_confirmed).unwrap_or(0);
    arm.mechanism = (best < known.len()).then(|| known.swap_remove(best));
}

#[cfg(test)]
mod tests {
    use goodput_model::{ArmResult, BitRate, Trial};

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

    fn explained(rules: &[&str], comparison: &mut Comparison) -> (String, Known<bool>) {
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        explain_by(&rules, comparison);
        let known = comparison.arms[CHANGED].mechanism.clone().unwrap();
        (known.rule, known.moved)
    }

    #[test]
    fn a_change_is_explained_by_the_rule_that_proposed_it() {
        let mut comparison = compared();
        let moved = ("sack-off".to_owned(), Known::Value(true));
        assert_eq!(explained(&["sack-off"], &mut comparison), moved);
        assert_eq!(explained(&["unread"], &mut comparison), moved);
    }

    #[test]
    fn a_rule_whose_witness_saw_nothing_explains_nothing_if_another_one_did() {
        let mut comparison = compared();
        for trial in &mut comparison.trials {
            trial.witnesses.insert("queue-too-short".into(), 0.0);
        }
        let (moved, not) = (Known::Value(true), Known::Value(false));
        let both = explained(&["queue-too-short", "sack-off"], &mut comparison);
        assert_eq!(both, ("sack-off".into(), moved.clone()));
        let first_run = explained(&["queue-too-short"], &mut comparison);
        assert_eq!(first_run, ("sack-off".into(), moved));
        let changed = &mut comparison.arms[CHANGED];
        if let Some(known) = &mut changed.mechanism {
            (known.rule, known.moved) = ("server-or-path".into(), Known::Value(false));
        }
        let (rule, unread) = explained(&["shaper-burst"], &mut comparison);
        assert_eq!(rule, "shaper-burst", "its witness is at a far end that reports nothing");
        assert!(matches!(unread, Known::Missing(_)), "{unread:?}");
        comparison.arms[CHANGED].mechanism = None;
        let none = explained(&["queue-too-short"], &mut comparison);
        assert_eq!(none, ("queue-too-short".into(), not));
    }
}
