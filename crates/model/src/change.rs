//! A proposed change of one setting.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::setting::SettingRef;

/// A proposal to change one setting from one value to another, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The setting to change.
    pub setting: SettingRef,
    /// Present value; absent if the kernel chooses it.
    pub from: Option<String>,
    /// The value to try.
    pub to: String,
    /// Reason for this value, in one phrase.
    pub why: String,
}

impl Change {
    /// Whether this change and `other` set the same setting to the same value.
    pub fn is_same_step(&self, other: &Self) -> bool {
        self.setting == other.setting && self.to == other.to
    }

    /// The argument of `goodput compare` that proves this change: `NAME=FROM,TO`. `default` stands for the kernel's
    /// own choice.
    pub fn as_argument(&self) -> String {
        format!("{}={},{}", self.setting, self.from.as_deref().unwrap_or("default"), self.to)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} ({})", self.setting, self.to, self.why)
    }
}
