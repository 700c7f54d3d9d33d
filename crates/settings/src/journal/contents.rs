//! The lines of a journal, and what they add up to.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use goodput_model::SettingRef;
use serde::{Deserialize, Serialize};

use crate::place::Place;
use crate::side_effects::{Cells, Changed, same};

/// The version of the format that is written.
pub(crate) const JOURNAL_FORMAT_VERSION: u32 = 3;
/// The versions that are read. The first one had neither cookies nor what changes along with a
/// setting, the second one no [`Line::Found`].
pub(crate) const KNOWN_FORMAT_VERSIONS: RangeInclusive<u32> = 1..=JOURNAL_FORMAT_VERSION;

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
        /// What may change along with it, before this change: all of it the first time, then what
        /// differs from that.
        #[serde(default, skip_serializing_if = "Changed::is_empty")]
        around: Changed,
        /// Index of the device that it is of, if it is one's: a device can be renamed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<u32>,
    },
    /// Someone else changed things around `setting` while the last intent was written to disk, just
    /// before it was carried out.
    Found {
        /// The setting.
        setting: SettingRef,
        /// What differs from what that intent says, and is not our doing.
        around: Changed,
    },
    /// The last intent was carried out, and this was read back.
    Effective {
        /// The setting.
        setting: SettingRef,
        /// The value read back.
        value: String,
        /// What changed along with it.
        #[serde(default, skip_serializing_if = "Changed::is_empty")]
        around: Changed,
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
    /// [`JOURNAL_FORMAT_VERSION`] of the writer.
    pub(crate) format: u32,
    /// Process id of the writer; for people, the lock shows whether it lives.
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
    /// Index of the device that it is of, if it is one's.
    pub(crate) link: Option<u32>,
    /// The values that can be our doing: the last one read back, and the one that was then
    /// intended, if the writer died between the two.
    pub(crate) ours: Vec<String>,
    /// What may change along with it, before our first change.
    pub(crate) before: Cells,
    /// Of these cells, what our changes made of them.
    pub(crate) touched: BTreeMap<String, Vec<Option<String>>>,
    /// How the cells differed from `before` when the last change began, if it is not known how
    /// that ended.
    pub(crate) doubt: Option<Changed>,
}

impl Entry {
    fn new(setting: SettingRef, original: String, exact: String) -> Self {
        let (ours, before, touched) = Default::default();
        Self { setting, original, exact, link: None, ours, before, touched, doubt: None }
    }

    /// The cells that are to be as they were before, if all of them are `now`: those that nobody but
    /// us changed. Cells that were not there before are nobody's to remove: the kernel makes routes
    /// and addresses on its own.
    pub(crate) fn target(&self, now: &Cells) -> Cells {
        let ours = |(name, before): &(&String, &String)| {
            // A change that was cut short may have left any value.
            let found = match &self.doubt {
                Some(doubt) => doubt.get(*name).map_or(Some(*before), Option::as_ref),
                None => now.get(*name),
            };
            let made = self.touched.get(*name).into_iter().flatten();
            // What went by our doing came back without what it held.
            let is = |text: Option<&String>| match (text, found) {
                (Some(one), Some(other)) => same(one, other),
                (one, other) => one.is_none() && other.is_none(),
            };
            is(Some(*before)) || made.into_iter().any(|made| made.is_none() || is(made.as_ref()))
        };
        let wanted = self.before.iter().filter(ours);
        wanted.map(|(name, before)| (name.clone(), before.clone())).collect()
    }

    fn intend(&mut self, to: String, around: Changed) {
        if self.ours.is_empty() {
            self.before = around.into_iter().filter_map(|(n, text)| Some((n, text?))).collect();
            self.doubt = Some(Changed::new());
        } else {
            // How the first of several changes ended is not known either; what it found counts.
            self.doubt.get_or_insert(around);
        }
        self.ours.push(to);
    }

    fn found(&mut self, around: Changed) {
        if self.ours.len() == 1 {
            // Before the first change it is the original.
            for (name, text) in around {
                match text {
                    Some(text) => self.before.insert(name, text),
                    None => self.before.remove(&name),
                };
            }
        } else if let Some(doubt) = &mut self.doubt {
            doubt.extend(around);
        }
    }

    fn took_effect(&mut self, value: String, around: Changed) {
        self.ours = vec![value];
        self.doubt = None;
        for (name, text) in around {
            let made = self.touched.entry(name).or_default();
            if !made.contains(&text) {
                made.push(text);
            }
        }
    }
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The first line; `None` if the writer died before it was on disk, and so before any
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
            Line::Intent { setting, original, exact, to, around, link } => {
                if let Some(entry) = self.entry(&setting) {
                    return entry.intend(to, around);
                }
                let mut entry = Entry { link, ..Entry::new(setting, original, exact) };
                entry.intend(to, around);
                self.entries.push(entry);
            }
            Line::Found { setting, around } => {
                if let Some(entry) = self.entry(&setting) {
                    entry.found(around);
                }
            }
            Line::Effective { setting, value, around } => {
                if let Some(entry) = self.entry(&setting) {
                    entry.took_effect(value, around);
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
            around: Changed::new(),
            link: None,
        }
    }

    fn effective(value: &str) -> Line {
        Line::Effective { setting: setting(), value: value.into(), around: Changed::new() }
    }

    fn cells(all: &[(&str, &str)]) -> Cells {
        all.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    }

    fn changed(all: &[(&str, Option<&str>)]) -> Changed {
        all.iter().map(|(name, text)| ((*name).into(), text.map(Into::into))).collect()
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

    #[test]
    fn cells_that_somebody_else_changed_stay_as_they_are() {
        let mut entry = Entry::new(setting(), "on".into(), "on".into());
        let before = cells(&[("mask", "f"), ("mtu", "9000"), ("name", "x")]);
        entry.intend("off".into(), crate::side_effects::changed(&Cells::new(), &before));
        // Cut short: whatever is found is our doing.
        assert_eq!(entry.target(&cells(&[("mtu", "1500")])), before);
        entry.took_effect("off".into(), changed(&[("mask", None), ("mtu", Some("1500"))]));
        assert_eq!(entry.target(&cells(&[("mtu", "1500"), ("name", "x")])), before);
        let theirs = cells(&[("mtu", "1400"), ("name", "y")]);
        let mask = cells(&[("mask", "f")]);
        assert_eq!(entry.target(&theirs), mask, "the others are not ours");
        // Cut short while it was put back: a queue that came back has no mask yet.
        entry.intend("on".into(), crate::side_effects::changed(&before, &theirs));
        assert_eq!(entry.target(&cells(&[("mask", "0"), ("mtu", "9000"), ("name", "y")])), mask);
    }

    #[test]
    fn what_was_found_just_before_the_change_is_the_original() {
        let before = cells(&[("mtu", "9000"), ("name", "x"), ("old", "1")]);
        let mut entry = Entry::new(setting(), "on".into(), "on".into());
        entry.intend("off".into(), crate::side_effects::changed(&Cells::new(), &before));
        entry.found(changed(&[("name", Some("y")), ("old", None)]));
        let found = cells(&[("mtu", "9000"), ("name", "y")]);
        assert_eq!(entry.target(&cells(&[("mtu", "1500"), ("name", "z")])), found);
        entry.took_effect("off".into(), changed(&[("mtu", Some("1500"))]));
        // Before a later change it is someone else's.
        entry.intend("on".into(), changed(&[("mtu", Some("1500"))]));
        entry.found(changed(&[("name", Some("z"))]));
        let mtu = cells(&[("mtu", "9000")]);
        assert_eq!(entry.target(&cells(&[("mtu", "1500"), ("name", "z")])), mtu);
    }

    #[test]
    fn putting_back_that_was_cut_short_twice_still_knows_the_original() {
        let before = cells(&[("mtu", "9000")]);
        let mut entry = Entry::new(setting(), "on".into(), "on".into());
        entry.intend("off".into(), crate::side_effects::changed(&Cells::new(), &before));
        // The run died after its write and before it could say so; then the guard died, too.
        entry.intend("on".into(), changed(&[("mtu", Some("1500"))]));
        assert_eq!(entry.target(&cells(&[("mtu", "1500")])), before);
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
