//! What tuning tried, what each change gained, and which gains are proven.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::comparison::Comparison;
use crate::effect::Effect;
use crate::known::Known;
use crate::plan::Length;
use crate::response::Response;

/// Results of `goodput tune`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tuning {
    /// What tuning tried to improve.
    pub purpose: Purpose,
    /// Smallest gain for which a change is kept, percent.
    pub min_gain_percent: f64,
    /// Every proposed change, in the order in which they were tried.
    pub steps: Vec<TuningStep>,
    /// Changes that are proven: the last comparison, of all of them against the start, found them better.
    pub proven: Vec<Change>,
    /// Files that keep the proven changes after a reboot, if requested. Files on a host reached by SSH begin with
    /// its address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_in: Vec<String>,
    /// The commands that keep the proven changes, if they are not kept already. Absent in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_keep: Vec<String>,
    /// Length of the runs of the last comparison; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_length: Option<Length>,
    /// Whether only a plan was requested (`--dry-run`). Absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_only: Option<bool>,
    /// Why tuning stopped.
    pub stopped: String,
}

impl Tuning {
    /// Whether only a plan was requested. An older record does not say: it is a plan if there are proposals, and none
    /// was tried. Some may not be permitted.
    pub fn is_plan_only(&self) -> bool {
        self.plan_only.unwrap_or_else(|| self.seems_plan_only())
    }

    fn seems_plan_only(&self) -> bool {
        use TuningOutcome::{NotPermitted, Planned};
        let is_untried = |step: &TuningStep| matches!(step.outcome, Planned | NotPermitted);
        let mut steps = self.steps.iter();
        steps.clone().all(is_untried) && steps.any(|step| step.outcome == Planned)
    }

    /// Why nothing is proven.
    pub fn nothing(&self) -> &'static str {
        let any = |outcome| self.steps.iter().any(|step| step.outcome == outcome);
        if self.steps.is_empty() {
            return "nothing: no change was tried";
        }
        match (any(TuningOutcome::Kept), any(TuningOutcome::NotBetter)) {
            (true, _) => "nothing: what helped in a trial is not proven against the start",
            (_, true) => "nothing: leave the settings as they are",
            (false, false) if any(TuningOutcome::TooFewRuns) => {
                "nothing: too few runs to prove a change"
            }
            (false, false) if any(TuningOutcome::Planned) => "nothing: no change was tried",
            (false, false) => "nothing: no change could be tried",
        }
    }
}

impl TuningStep {
    /// The comparison's effect on what decides, and so on what the change gained.
    pub fn effect(&self) -> Option<&Effect> {
        self.comparison.value()?.arms.get(1)?.primary()
    }

    /// What the change gained, in words: `+12.0 % (+11.1 to +13.2 %)`, or `82.9 % less delay (80.1 to 84.2 % less)`.
    pub fn gained(&self) -> Option<String> {
        let burden = self.comparison.value()?.deciding().burden();
        let effect = self.effect()?;
        Some(format!("{} ({})", effect.difference_of(burden), effect.interval_of(burden)))
    }
}

impl fmt::Display for TuningOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kept => "kept",
            Self::Dropped => "dropped: no longer needed",
            Self::Confirmed => "still needed",
            Self::NotBetter => "not proven better",
            Self::TooFewRuns => "too few runs",
            Self::Planned => "not tried",
            Self::NotPermitted => "not permitted",
            Self::Failed => "not possible",
        })
    }
}

/// One proposed change and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuningStep {
    /// The proposed change.
    pub change: Change,
    /// Id of the rule that proposed the change.
    pub rule: String,
    /// Outcome of the change.
    pub outcome: TuningOutcome,
    /// Comparison with the best state before this change, or why there was none.
    pub comparison: Known<Comparison>,
}

/// Outcome of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TuningOutcome {
    /// The change gained enough, as proven, and was kept for the next steps.
    Kept,
    /// The change helped when it was tried, but made no difference with the changes kept after it. It was dropped.
    Dropped,
    /// The change was kept. Leaving it out again was tried later, and it stayed.
    Confirmed,
    /// The change was not proven to gain enough.
    NotBetter,
    /// The comparison ended before its first look; its few runs prove nothing.
    TooFewRuns,
    /// The change could not be tried.
    Failed,
    /// The change could not be tried, because a privilege is missing at one of the ends.
    NotPermitted,
    /// The change was not tried, because only a plan was requested, or tuning ended before.
    Planned,
}

/// What tuning should improve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// More goodput.
    Throughput,
    /// Shorter round trips under load, without losing goodput.
    Latency,
    /// Less CPU time per byte, without losing goodput.
    Cpu,
    /// Any of the three, if none of the others gets worse.
    Balanced,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Self; 4] = [Self::Throughput, Self::Latency, Self::Cpu, Self::Balanced];

    /// What it is judged by, the response that decides first.
    #[must_use]
    pub fn responses(self) -> &'static [Response] {
        match self {
            Self::Throughput => &[Response::Throughput],
            Self::Latency => &[Response::Latency, Response::Throughput],
            Self::Cpu => &[Response::Cpu, Response::Throughput],
            Self::Balanced => &[Response::Throughput, Response::Cpu, Response::Latency],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Cpu => "cpu",
            Self::Balanced => "balanced",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that is not the name of a purpose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a purpose; write throughput, latency, cpu or balanced")]
pub struct BadPurpose(String);

impl FromStr for Purpose {
    type Err = BadPurpose;

    fn from_str(text: &str) -> Result<Self, BadPurpose> {
        let named = Self::ALL.into_iter().find(|purpose| purpose.name() == text);
        named.ok_or_else(|| BadPurpose(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuning(plan_only: Option<bool>, outcomes: &[TuningOutcome]) -> Tuning {
        let step = |outcome: &TuningOutcome| TuningStep {
            change: Change {
                setting: "chunk".parse().unwrap(),
                from: None,
                to: "1M".into(),
                why: "because".into(),
            },
            rule: "x".into(),
            outcome: *outcome,
            comparison: Known::missing("made up"),
        };
        Tuning {
            purpose: Purpose::Throughput,
            min_gain_percent: 3.0,
            steps: outcomes.iter().map(step).collect(),
            proven: Vec::new(),
            kept_in: Vec::new(),
            to_keep: Vec::new(),
            run_length: None,
            plan_only,
            stopped: "made up".into(),
        }
    }

    #[test]
    fn a_plan_is_what_was_requested_as_one() {
        use TuningOutcome::{Failed, NotPermitted, Planned};
        let is_plan = |asked, outcomes: &[_]| tuning(asked, outcomes).is_plan_only();
        let cut_short = [NotPermitted, Planned];
        assert!(!is_plan(Some(false), &cut_short), "it was interrupted after a refusal");
        for refused in [&[NotPermitted][..], &[Failed], &[]] {
            assert!(is_plan(Some(true), refused), "{refused:?}");
        }
        assert!(is_plan(None, &cut_short), "an older record does not say");
        assert!(!is_plan(None, &[NotPermitted]));
    }

    #[test]
    fn an_older_record_does_not_say_whether_it_is_a_plan() {
        let read = |tuning: &Tuning| -> Tuning {
            let written = serde_json::to_string(tuning).unwrap();
            assert_eq!(written.contains("plan_only"), tuning.plan_only.is_some(), "{written}");
            serde_json::from_str(&written).unwrap()
        };
        for plan_only in [None, Some(false), Some(true)] {
            assert_eq!(read(&tuning(plan_only, &[])).plan_only, plan_only);
        }
    }

    #[test]
    fn a_purpose_is_read_as_it_is_written() {
        for purpose in Purpose::ALL {
            assert_eq!(purpose.to_string().parse(), Ok(purpose));
        }
        assert!("speed".parse::<Purpose>().is_err());
    }
}
