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

    /// Whether the value to try is another than the present one, as far as this is known. Numbers are compared as numbers.
    pub fn changes_something(&self) -> bool {
        let number = |value: &str| value.parse::<f64>().ok();
        match self.from.as_deref() {
            None => true,
            Some(from) => match (number(from), number(&self.to)) {
                (Some(from), Some(to)) => from != to,
                _ => !from.split_whitespace().eq(self.to.split_whitespace()),
            },
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_value_written_otherwise_is_no_change() {
        let changes = |from: Option<&str>, to: &str| {
            let setting = "sysctl.net.ipv4.tcp_rmem".parse().unwrap();
            let (from, to, why) = (from.map(Into::into), to.into(), String::new());
            Change { setting, from, to, why }.changes_something()
        };
        assert!(!changes(Some("4096\t131072\t6291456"), "4096 131072 6291456"));
        assert!(!changes(Some("375000.0"), "375000"));
        assert!(changes(Some("on"), "off") && changes(Some("1"), "2") && changes(None, "2"));
    }
}
