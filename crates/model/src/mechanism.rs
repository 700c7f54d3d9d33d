//! Why an arm of a comparison differs: whether the cause that a verdict named has really changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::BitRate;

/// How much a limit lets through: a window, a buffer, a bucket or a rate. More of it gives more goodput, as long as
/// nothing else limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitAmount {
    /// What it is, with its unit at the end: `receive_window_bytes`.
    pub name: String,
    /// How much it is, in this unit.
    pub value: f64,
    /// Whether the goodput is in proportion to it, as long as nothing else limits.
    pub is_proportional: bool,
}

/// The evidence for the cause of a difference: a rule names what limits the baseline, or the arm if the arm is worse.
/// In the other one of the two, the rule's witness is lower, and something else limits; or the rule still limits, but its
/// cause lets more through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mechanism {
    /// The rule that limited the baseline; with `limits_arm`, this arm.
    pub rule: String,
    /// Whether the rule limits this arm, because the arm is worse than the baseline.
    #[serde(default, skip_serializing_if = "is_off")]
    pub limits_arm: bool,
    /// The rule's witness in the baseline's runs: the median, or that of all their events if it counts some.
    pub witness_before: Known<f64>,
    /// The same in this arm's runs.
    pub witness_after: Known<f64>,
    /// Whether the witness is lower where the rule does not limit: in this arm; with `limits_arm`, in the baseline.
    pub moved: Known<bool>,
    /// What the rule's cause lets through, if the rule limits both and its cause has an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<AmountChange>,
    /// The rule that limits most of this arm's runs; with `limits_arm`, most of the baseline's.
    pub next_limit: String,
    /// Goodput that is to be expected in this arm, bits per second; with `limits_arm`, in the baseline. The verdict
    /// predicted it for a path without this limit. If the rule limits both, it is in proportion to the amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_bits_per_s: Option<BitRate>,
    /// Whether the symptom came back when the baseline followed the arm; with `limits_arm`, whether it went away.
    #[serde(default = "unchecked")]
    pub reversed: Known<bool>,
}

impl Mechanism {
    /// Whether the difference comes from this cause: its witness moved, or else its amount.
    #[must_use]
    pub fn confirmed(&self) -> &Known<bool> {
        match &self.amount {
            Some(amount) if self.moved != Known::Value(true) => &amount.moved,
            _ => &self.moved,
        }
    }
}

/// How the amount of one cause differs between the baseline and an arm, if this cause limits both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AmountChange {
    /// What it is, with its unit at the end: `receive_window_bytes`.
    pub name: String,
    /// Median of the amount in the baseline's runs.
    pub before: f64,
    /// Median of the amount in this arm's runs.
    pub after: f64,
    /// Whether both the amount and the goodput are higher in this arm, in more blocks than by chance; with
    /// `limits_arm`, in the baseline.
    pub moved: Known<bool>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_off(flag: &bool) -> bool {
    !flag
}

fn unchecked() -> Known<bool> {
    Known::missing("an older goodput made this record")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_confirmed_by_its_witness_or_else_by_its_amount() {
        let confirmed = |witness: Known<bool>, amount: Option<Known<bool>>| {
            let amount = amount.map(|moved| AmountChange {
                name: "receive_window_bytes".into(),
                before: 65536.0,
                after: 131_072.0,
                moved,
            });
            let mechanism = Mechanism {
                rule: "receive-window".into(),
                limits_arm: false,
                witness_before: Known::Value(98.0),
                witness_after: Known::Value(97.0),
                moved: witness,
                amount,
                next_limit: "receive-window".into(),
                predicted_bits_per_s: None,
                reversed: unchecked(),
            };
            mechanism.confirmed().clone()
        };
        let [yes, no] = [true, false].map(Known::Value);
        assert_eq!(confirmed(yes.clone(), Some(no.clone())), yes);
        assert_eq!(confirmed(no.clone(), Some(yes.clone())), yes);
        assert_eq!(confirmed(no.clone(), None), no);
        assert_eq!(confirmed(Known::missing("nobody read it"), Some(no.clone())), no);
    }
}
