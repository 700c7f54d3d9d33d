//! Names of settings with `*` as a wildcard: `offload.*@eth0`.

use std::fmt;
use std::str::FromStr;

use super::ALL;

/// A pattern for settings, `NAME[@SCOPE]`. `*` stands for any characters; without a scope, all scopes match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    name: String,
    scope: Option<String>,
}

/// Text that is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It would allow nothing.
    #[error(
        "{0:?} is not a pattern of settings that clients may change; write one that matches a name of `goodput list far-settings`"
    )]
    MatchesNothing(String),
    /// The next option in the place of a pattern.
    #[error("{0:?} is an option and no pattern; '*' is the pattern of all that clients may change")]
    IsOption(String),
}

impl Pattern {
    /// Whether a setting matches.
    pub fn matches(&self, name: &str, scope: Option<&str>) -> bool {
        let in_scope = match (&self.scope, scope) {
            (None, _) => true,
            (Some(wanted), Some(scope)) => glob(wanted, scope),
            (Some(_), None) => false,
        };
        in_scope && glob(&self.name, name)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.starts_with("--") {
            return Err(PatternError::IsOption(text.into()));
        }
        let (name, scope) = match text.split_once('@') {
            Some((name, scope)) => (name, Some(scope.to_string())),
            None => (text, None),
        };
        if !ALL.iter().any(|entry| glob(name, entry.name)) {
            return Err(PatternError::MatchesNothing(text.into()));
        }
        Ok(Self { name: name.into(), scope })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.scope.iter().try_for_each(|scope| write!(f, "@{scope}"))
    }
}

/// Whether `text` matches `pattern`, with `*` for any characters.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => {
            let Some(rest) = text.strip_prefix(before) else { return false };
            let cuts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            cuts.into_iter().any(|at| glob(after, &rest[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::SettingRef;

    fn matches(pattern: &str, setting: &str) -> bool {
        let setting: SettingRef = setting.parse().unwrap();
        let pattern: Pattern = pattern.parse().unwrap();
        pattern.matches(&setting.name, setting.scope.as_deref())
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        assert!(matches("offload.*@eth0", "offload.tso@eth0"));
        assert!(matches("offload.*@eth*", "offload.tso@eth1"));
        assert!(matches("offload.*", "offload.tso@eth1"));
        assert!(matches("*", "sysctl.net.ipv4.tcp_rmem"));
        assert!(matches(
            "sysctl.net.*.tcp_?mem".replace('?', "*").as_str(),
            "sysctl.net.ipv4.tcp_rmem"
        ));
        assert!(!matches("offload.*@eth0", "offload.tso@eth01"));
        assert!(!matches("offload.tso", "offload.tso-not@eth0"));
        assert!(!matches("*@eth0", "sysctl.net.ipv4.tcp_rmem"));
    }

    #[test]
    fn a_pattern_that_allows_nothing_is_a_mistake() {
        for text in ["", "sysctl.net.ipv4.ip_forward", "sysctl.kernel.*", "ofload.*"] {
            assert!(text.parse::<Pattern>().is_err(), "{text:?}");
        }
    }
}
