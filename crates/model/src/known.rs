//! A value that could be read, or the reason why it could not. Absent is not zero.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a value is not there, in words a user can act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// The reason, as a phrase without a full stop: "no tcp_info: not a TCP socket".
    pub missing: Cow<'static, str>,
}

impl Missing {
    /// A reason for absence.
    pub fn because(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { missing: reason.into() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.missing)
    }
}

/// A value, or why there is none. In JSON: the value itself, or `{"missing": "why"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Known<T> {
    /// It could not be read.
    Missing(Missing),
    /// It was read.
    Value(T),
}

impl<T> Known<T> {
    /// A missing value with its reason.
    pub fn missing(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Missing(Missing::because(reason))
    }

    /// The value for `?`: a rule that asks for something absent "can't tell, because …".
    pub fn get(&self) -> Result<&T, Missing> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Missing(why) => Err(why.clone()),
        }
    }

    /// The value, if it is known, where the reason does not matter.
    pub fn value(&self) -> Option<&T> {
        self.get().ok()
    }

    /// Applies `change` to a known value; a missing one keeps its reason.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Value(value) => Known::Value(change(value)),
            Self::Missing(why) => Known::Missing(why),
        }
    }
}

impl<T> From<Result<T, Missing>> for Known<T> {
    fn from(result: Result<T, Missing>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(why) => Self::Missing(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_and_its_absence_survive_json() {
        let known: Known<u64> = Known::Value(0);
        let absent: Known<u64> = Known::missing("no such counter");
        assert_eq!(serde_json::to_string(&known).unwrap(), "0");
        assert_eq!(serde_json::to_string(&absent).unwrap(), r#"{"missing":"no such counter"}"#);
        let back: Known<u64> = serde_json::from_str(r#"{"missing":"no such counter"}"#).unwrap();
        assert_eq!(back, absent);
    }
}
