//! How advice says what to paste: a command, and behind a number sign why.

use std::fmt;

/// Between a command and the reason for it, which a shell skips.
pub const WHY: &str = "   # ";

const WITH: &str = "the same test with ";
const WITHOUT: &str = "the same test without ";

/// The same test with one option changed. Only a report that knows the test can name the whole command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again<'a> {
    /// With an option and its value, such as `--rate 97mbit`.
    With(&'a str),
    /// Without an option that it had, such as `--rate`.
    Without(&'a str),
}

impl<'a> Again<'a> {
    /// What a command of advice repeats; `None` if it is another command.
    pub fn of(command: &'a str) -> Option<Self> {
        let with = command.strip_prefix(WITH).map(Self::With);
        with.or_else(|| command.strip_prefix(WITHOUT).map(Self::Without))
    }
}

impl fmt::Display for Again<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::With(option) => write!(f, "{WITH}{option}"),
            Self::Without(option) => write!(f, "{WITHOUT}{option}"),
        }
    }
}

/// Runs a program on the memory node of a card (numactl(8)).
pub(crate) fn on_node_of(device: &str) -> String {
    format!("numactl --cpunodebind=netdev:{device} --membind=netdev:{device} PROGRAM")
}

/// How commands begin whose work a setting of goodput does: as changes, they can be tried, proven and kept.
#[cfg(test)]
const DONE_BY_SETTINGS: [&str; 8] = [
    "cpupower ",
    "ethtool -A ",
    "ethtool -C ",
    "ethtool -G ",
    "ethtool -K ",
    "ethtool -L ",
    "sysctl -w ",
    "ip link set DEV txqueuelen ",
];

/// Words that stand for what the reader would have to fill in, in a command of advice. Only which program to run is
/// never known.
#[cfg(test)]
pub(crate) fn holes(advice: &str) -> Vec<&str> {
    let Some((command, _)) = advice.split_once(WHY) else { return Vec::new() };
    let words = command.split([' ', ':', '=', '/']);
    let is_hole = |word: &&str| {
        *word == "…" || !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase())
    };
    words.filter(is_hole).filter(|word| *word != "PROGRAM").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_repeat_is_read_back() {
        for again in [Again::With("--rate 97mbit"), Again::Without("--rate")] {
            assert_eq!(Again::of(&again.to_string()), Some(again));
        }
        assert_eq!(Again::of("ethtool -C eth0 adaptive-rx on"), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it reads the crate's own source")]
    fn no_rule_and_no_check_has_a_command_for_what_a_setting_does() {
        for folder in ["rules", "check/checks"] {
            let folder = format!("{}/src/{folder}", env!("CARGO_MANIFEST_DIR"));
            for file in std::fs::read_dir(folder).unwrap() {
                let path = file.unwrap().path();
                let source = std::fs::read_to_string(&path).unwrap();
                for start in DONE_BY_SETTINGS {
                    let said = source.contains(&format!("\"{start}"));
                    assert!(!said, "{}: {start}", path.display());
                }
            }
        }
    }

    #[test]
    fn a_hole_is_a_word_in_capitals_before_the_reason() {
        assert_eq!(holes("ethtool -L DEV combined N   # more CPUs"), ["DEV", "N"]);
        assert!(holes("ethtool -S eth0   # of the CPU").is_empty());
    }
}
