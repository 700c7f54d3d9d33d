//! What a rule found, with the evidence it stands on and what would change it.

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
    /// Where the cause sits.
    pub end: Place,
    /// How sure the rule is.
    pub confidence: Confidence,
    /// Share of the time it held the flow back, if that is countable.
    pub share_percent: Known<f64>,
    /// The cause in words, to follow "limited by".
    pub summary: String,
    /// What the verdict stands on; never empty.
    pub evidence: Vec<Witness>,
    /// What the next limit would allow, were this one gone.
    pub predicted_bits_per_s: Known<BitRate>,
    /// What to try, best first; empty if nothing needs fixing.
    pub changes: Vec<Change>,
    /// What to do if no setting of ours can change it: exact commands or plain advice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
    /// The same for good, so that it outlives a reboot: files to write, by system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permanent: Vec<Permanent>,
}

/// A change that outlives a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Permanent {
    /// Where it is written: `/etc/sysctl.d/90-goodput.conf`, `FreeBSD /etc/rc.conf`.
    pub file: String,
    /// The lines that belong there.
    pub lines: String,
}

/// How sure a rule is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// One witness, or look-alikes not excluded.
    Possible,
    /// Witnesses agree, a look-alike remains.
    Likely,
    /// Counted directly, look-alikes excluded.
    Certain,
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Witness {
    /// Where it was seen.
    pub end: Place,
    /// What was looked at: a fact's name or a ratio of several.
    pub name: String,
    /// The value that decided, in the unit that the name ends with.
    pub value: f64,
    /// The same for a person, with its context.
    pub text: String,
}

/// A rule that could not decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Undecided {
    /// Id of the rule.
    pub rule: String,
    /// What it lacked.
    pub because: String,
}
