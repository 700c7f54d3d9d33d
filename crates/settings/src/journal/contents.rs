//! The lines of a journal, and what they add up to.

use std::ops::RangeInclusive;

use goodput_model::SettingRef;
use serde::{Deserialize, Serialize};

use crate::place::Place;

/// The version of the format that is written.
pub(crate) const FORMAT: u32 = 2;
/// The versions that are read. The first one had neither cookies nor what changes along with a
/// setting.
pub(crate) const KNOWN: RangeInclusive<u32> = 1..=FORMAT;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(crate) enum Line {
    /// The first line.
    Begin(Owner),
    /// `setting` is about to be changed.
    Intent {
        /// The setting.
        setting: SettingRef,
        /// Its value before our first change.
        original: String,
        /// The same with everything it takes to put it back exactly.
        exact: String,
        /// What it is about to be.
        to: String,
    },
    /// The last intent was carried out, and this was read back.
    Effective {
        /// The setting.
        setting: SettingRef,
        /// The value read back.
        value: String,
    },
    /// There is nothing left to do about `setting`.
    Settled {
        /// The setting.
        setting: SettingRef,
    },
}

/// Who wrote a journal, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// [`FORMAT`] of the writer.
    pub(crate) format: u32,
    /// Process id of the writer; for people, the lock tells whether it lives.
    pub(crate) pid: u32,
    /// Where it ran: boot, inode and, where the kernel has one, cookie of the network namespace.
    #[serde(flatten)]
    pub(crate) place: Place,
}

/// One setting that is to be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The setting.
    pub(crate) setting: SettingRef,
    /// Its value before our first change.
    pub(crate) original: String,
    /// The same with everything it takes to put it back exactly.
    pub(crate) exact: String,
    /// The values that can be our doing: the last one read back, and the one that was then
    /// intended, if the writer died between the two.
    pub(crate) ours: Vec<String>,
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The first line; `None` where the writer died before it was on disk, and so before any
    /// change.
    pub(crate) owner: Option<Owner>,
    /// What is to be put back, in the order of the changes.
    pub(crate) entries: Vec<Entry>,
    /// Numbers of the lines that can't be read, from 1.
    pub(crate) unreadable: Vec<usize>,
}

impl Contents {
    /// Reads a journal. A last line without its end was cut short while it was written, so that
    /// its change was never made; it counts for nothing.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let mut contents = Self::default();
        let whole =
            bytes.iter().rposition(|b| *b == b'\n').map_or(&bytes[..0], |end| &bytes[..end]);
        if whole.is_empty() {
            return contents;
        }
        for (index, line) in whole.split(|b| *b == b'\n').enumerate() {
            match serde_json::from_slice(line) {
                Ok(line) => contents.add(line),
                Err(_) => contents.unreadable.push(index + 1),
            }
        }
        contents
    }

    /// Takes one more line into account.
    pub(crate) fn add(&mut self, line: Line) {
        match line {
            Line::Begin(owner) => self.owner = Some(owner),
            Line::Intent { setting, original, exact, to } => match self.entry(&setting) {
                Some(entry) => entry.ours.push(to),
                None => self.entries.push(Entry { setting, original, exact, ours: vec![to] }),
            },
            Line::Effective { setting, value } => {
                if let Some(entry) = self.entry(&setting) {
                    entry.ours = vec![value];
                }
            }
            Line::Settled { setting } => self.entries.retain(|entry| entry.setting != setting),
        }
    }

    fn entry(&mut self, setting: &SettingRef) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.setting == *setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn setting() -> SettingRef {
        "offload.tso@eth0".parse().unwrap()
    }

    fn intent(to: &str) -> Line {
        Line::Intent {
            setting: setting(),
            original: "on".into(),
            exact: "on".into(),
            to: to.into(),
        }
    }

    fn effective(value: &str) -> Line {
        Line::Effective { setting: setting(), value: value.into() }
    }

    fn written(lines: &[Line]) -> Vec<u8> {
        lines
            .iter()
            .flat_map(|l| serde_json::to_string(l).unwrap().into_bytes().into_iter().chain([b'\n']))
            .collect()
    }

    #[test]
    fn the_first_original_is_kept_over_many_changes() {
        let lines = [intent("off"), effective("off"), intent("on"), effective("on"), intent("off")];
        let contents = Contents::parse(&written(&lines));
        let [entry] = &contents.entries[..] else { panic!("{contents:?}") };
        assert_eq!(entry.original, "on");
        assert_eq!(entry.ours, ["on", "off"], "either may be the value now");
    }

    #[test]
    fn a_settled_setting_is_not_put_back_again() {
        let settled = Line::Settled { setting: setting() };
        let contents = Contents::parse(&written(&[intent("off"), settled]));
        assert_eq!(contents.entries, []);
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_told_and_the_rest_counts() {
        let mut bytes = b"{\"line\":\"inte\n".to_vec();
        bytes.extend(written(&[intent("off")]));
        let contents = Contents::parse(&bytes);
        assert_eq!((contents.unreadable.as_slice(), contents.entries.len()), (&[1][..], 1));
    }

    proptest! {
        #[test]
        fn wherever_it_is_cut_the_whole_lines_count(cut in 0usize..600) {
            let lines = [intent("off"), effective("off"), intent("on")];
            let bytes = written(&lines);
            let cut = cut.min(bytes.len());
            let whole = bytes[..cut].iter().filter(|b| **b == b'\n').count();
            let contents = Contents::parse(&bytes[..cut]);
            prop_assert_eq!(contents, Contents::parse(&written(&lines[..whole])));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let contents = Contents::parse(&bytes);
            prop_assert!(contents.entries.is_empty());
        }

        #[test]
        fn any_value_comes_back_as_it_was(value in ".*") {
            let contents = Contents::parse(&written(&[intent(&value)]));
            prop_assert_eq!(&contents.entries[0].ours, &vec![value]);
        }
    }
}
