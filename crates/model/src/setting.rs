//! The name of a setting: `[far:]NAME[@SCOPE]`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;

/// One setting of one host: `offload.tso@eth3`, `far:sysctl.net.ipv4.tcp_rmem`.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct SettingRef {
    /// The host that the setting belongs to.
    pub end: EndName,
    /// The setting's name, as `goodput settings list` prints it.
    pub name: String,
    /// Device, route or class that the setting belongs to; absent if it belongs to the whole host or the test.
    pub scope: Option<String>,
}

/// A text that is not the name of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a setting; write [far:]NAME[@SCOPE], like offload.tso@eth0")]
pub struct BadSettingRef(String);

impl FromStr for SettingRef {
    type Err = BadSettingRef;

    fn from_str(text: &str) -> Result<Self, BadSettingRef> {
        let (end, rest) = match text.strip_prefix("far:") {
            Some(rest) => (EndName::Far, rest),
            None => (EndName::Near, text.strip_prefix("near:").unwrap_or(text)),
        };
        let (name, scope) = match rest.split_once('@') {
            Some((name, scope)) => (name, Some(scope)),
            None => (rest, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
        if name.is_empty() || !name.chars().all(plain) || scope.is_some_and(str::is_empty) {
            return Err(BadSettingRef(text.into()));
        }
        Ok(Self { end, name: name.into(), scope: scope.map(Into::into) })
    }
}

impl fmt::Display for SettingRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.end == EndName::Far {
            f.write_str("far:")?;
        }
        f.write_str(&self.name)?;
        match &self.scope {
            Some(scope) => write!(f, "@{scope}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_parts_are_distinguished() {
        let setting: SettingRef = "far:route.window@192.0.2.0/24".parse().unwrap();
        assert_eq!(setting.end, EndName::Far);
        assert_eq!(setting.name, "route.window");
        assert_eq!(setting.scope.as_deref(), Some("192.0.2.0/24"));
        assert_eq!(setting.to_string(), "far:route.window@192.0.2.0/24");
    }

    #[test]
    fn nothing_and_an_empty_scope_are_refused() {
        for text in ["", "far:", "offload.tso@", "a b", "x=y"] {
            assert!(text.parse::<SettingRef>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(far: bool, name in "[a-z]{1,8}\\.[a-z_]{1,8}",
                                        scope in proptest::option::of("[a-z0-9.:/]{1,12}")) {
            let end = if far { EndName::Far } else { EndName::Near };
            let setting = SettingRef { end, name, scope };
            prop_assert_eq!(setting.to_string().parse::<SettingRef>().unwrap(), setting);
        }
    }
}
