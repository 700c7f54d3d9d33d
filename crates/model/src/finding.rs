//! A rule's finding, its evidence and the changes that would help.

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
    /// How sure the rule is.
    pub confidence: Confidence,
    /// Share of the time in which the cause limited the flow, percent, if countable.
    pub share_percent: Known<f64>,
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

/// A change that outlives a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Permanent {
    /// The file: a path such as `/etc/sysctl.d/90-goodput.conf` or `FreeBSD /etc/rc.conf`, or words that identify it.
    pub file: String,
    /// The lines to write into the file.
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
