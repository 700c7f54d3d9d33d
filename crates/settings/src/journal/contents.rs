//! The lines of a journal of this host, and their total effect.

use std::ops::RangeInclusive;

use goodput_model::SettingRef;
use serde::{Deserialize, Serialize};

use super::asker::Asker;
use super::entry::Entry;
use super::surroundings::Surroundings;
use super::text::{JournalContents, JournalText};
use crate::place::Place;
use crate::process::ProcessMark;
use crate::side_effects::{Cells, Changed};
use crate::written::{FileOutcome, TakenBack, Written, WrittenFile};

/// The version of the format that is written. The first one had neither cookies nor the side effects of a
/// setting, the second one no [`Line::Found`], the third one no [`Line::TakenOver`], the fourth one no [`Line::Writes`].
pub(crate) const JOURNAL_FORMAT_VERSION: u32 = 5;

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
        /// The same with everything needed to put it back exactly.
        exact: String,
        /// What it is about to be.
        to: String,
        /// What the kernel made of that the last time, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rounded: Option<String>,
        /// What may change along with it, before this change: all of it the first time, later only the
        /// differences.
        #[serde(default, skip_serializing_if = "Changed::is_empty")]
        around: Changed,
        /// Index of the device, if the setting belongs to a device: a device can be renamed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<u32>,
    },
    /// Someone else changed things around `setting` while the last intent was being written to disk, just
    /// before the change.
    Found {
        /// The setting.
        setting: SettingRef,
        /// What differs from that intent and is not our doing.
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
        /// Other settings of the run that changed along with it, and their values; `None` if their object
        /// disappeared.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        beside: Vec<(SettingRef, Option<String>)>,
    },
    /// There is nothing left to do about `setting`.
    Settled {
        /// The setting.
        setting: SettingRef,
    },
    /// Files that keep values over a reboot are about to be written.
    Writes(Written),
    /// There is nothing left to do about such files.
    FilesSettled {
        /// How many changes of files that is about, for people.
        changes: usize,
    },
    /// The run is over, and another process is about to put back what is left.
    TakenOver(TakenOver),
}

/// Who puts back what a run left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakenOver {
    /// Its process id.
    pub(crate) pid: u32,
    /// What distinguishes it from other processes with that number.
    #[serde(flatten)]
    pub(crate) process: ProcessMark,
}

impl TakenOver {
    /// By this process.
    pub(crate) fn own() -> Self {
        Self { pid: std::process::id(), process: ProcessMark::own() }
    }
}

/// Who wrote a journal, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// [`JOURNAL_FORMAT_VERSION`] of the writer.
    pub(crate) format: u32,
    /// Process id of the writer, for people; the lock shows whether the writer lives.
    pub(crate) pid: u32,
    /// What distinguishes the writer from other processes with that number.
    #[serde(flatten)]
    pub(crate) process: ProcessMark,
    /// Where it ran: boot, inode and, if the kernel has one, cookie of the network namespace.
    #[serde(flatten)]
    pub(crate) place: Place,
    /// Who asked for the changes.
    #[serde(default, skip_serializing_if = "Asker::is_user")]
    pub(crate) asker: Asker,
}

impl Owner {
    /// Whether this process wrote the journal.
    pub(crate) fn is_this_process(&self) -> bool {
        self.process.is_this_process(self.pid)
    }

    /// Whether the writer is seen to be alive.
    pub(crate) fn is_seen(&self) -> bool {
        self.process.is_seen(self.pid)
    }
}

/// A journal of changes of this host that was read.
pub(crate) type Text = JournalText<Contents>;

/// What the whole lines of a journal say.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The first line; `None` if it is damaged.
    pub(crate) owner: Option<Owner>,
    /// Who took it over last; `None` if the run itself may still be at work.
    pub(crate) taken_over: Option<TakenOver>,
    /// The entries to put back, in the order of the changes.
    pub(crate) entries: Vec<Entry>,
    /// The files to put back, in the order of the changes.
    pub(crate) written: Vec<Written>,
    /// The surroundings of all of its settings.
    surroundings: Surroundings,
    /// Values that changes of the run gave to other settings before the run changed those settings.
    dragged: Vec<(SettingRef, Option<String>)>,
}

impl JournalContents for Contents {
    type Line = Line;

    const KNOWN_FORMATS: RangeInclusive<u32> = 1..=JOURNAL_FORMAT_VERSION;
    const NEEDS_FIRST_LINE: bool = false;

    fn add(&mut self, line: Line) {
        match line {
            Line::Begin(owner) => self.owner = Some(owner),
            Line::Intent { setting, original, exact, to, rounded, around, link } => {
                if let Some(entry) = self.entry(&setting) {
                    return entry.intend(to, rounded, around);
                }
                let is_certain = self.entries.iter().all(|entry| entry.doubt.is_none());
                self.surroundings.see(&around, is_certain);
                let dragged = self.dragged.iter().filter(|(dragged, _)| *dragged == setting);
                let dragged = dragged.map(|(_, value)| value.clone()).collect();
                let mut entry = Entry { link, dragged, ..Entry::new(setting, original, exact) };
                entry.intend(to, rounded, around);
                self.entries.push(entry);
            }
            Line::Found { setting, around } => {
                self.surroundings.take_from_others(&around);
                if let Some(entry) = self.entry(&setting) {
                    entry.found(around);
                }
            }
            Line::Effective { setting, value, around, beside } => {
                if let Some(entry) = self.entry(&setting) {
                    entry.took_effect(value, around.keys().cloned());
                }
                self.surroundings.make(around);
                for (setting, value) in beside {
                    match self.entry(&setting) {
                        Some(entry) => entry.dragged.push(value),
                        None => self.dragged.push((setting, value)),
                    }
                }
            }
            Line::Settled { setting } => self.entries.retain(|entry| entry.setting != setting),
            Line::Writes(written) => self.written.push(written),
            Line::FilesSettled { .. } => self.written.clear(),
            Line::TakenOver(by) => self.taken_over = Some(by),
        }
    }

    fn format(&self) -> Option<u32> {
        self.owner.as_ref().map(|owner| owner.format)
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.written.is_empty()
    }
}

impl Contents {
    /// The cells to restore when `entry` is put back, if all of them are `now`: the cells that
    /// nobody but this run changed, as they were before the run. A cell that another setting of the run still
    /// holds goes back with the last of them. Cells that were not there before stay: the
    /// kernel makes routes and addresses on its own.
    pub(crate) fn target(&self, entry: &Entry, now: &Cells) -> Cells {
        let wanted = entry.cells().filter_map(|name| {
            let found = entry.found_before_doubt(name, now);
            if !self.surroundings.is_ours(name, found) {
                return None;
            }
            let wanted = match self.holds_beside(entry, name) {
                false => self.surroundings.original(name),
                // An interrupted change may have altered this cell, which another setting holds.
                true if entry.doubt.is_some() => found,
                true => None,
            };
            Some((name.clone(), wanted?.clone()))
        });
        wanted.collect()
    }

    /// Whether another setting that is not yet back has altered this cell.
    fn holds_beside(&self, entry: &Entry, name: &str) -> bool {
        let others = self.entries.iter().filter(|other| other.setting != entry.setting);
        others.filter(|other| other.is_applied()).any(|other| other.touched.contains(name))
    }

    /// The settings in the order of putting back: an interrupted change first,
    /// because it may have altered what others hold; then the last change first.
    pub(crate) fn undo_order(&self) -> Vec<SettingRef> {
        let (cut_short, whole): (Vec<&Entry>, Vec<_>) =
            self.entries.iter().rev().partition(|entry| entry.doubt.is_some());
        cut_short.into_iter().chain(whole).map(|entry| entry.setting.clone()).collect()
    }

    /// The outcome of each file, the last one first.
    pub(crate) fn files(&self, outcome: impl Fn(&WrittenFile) -> FileOutcome) -> Vec<TakenBack> {
        self.written.iter().rev().flat_map(|written| written.each(&outcome)).collect()
    }

    /// The entry of a setting.
    pub(crate) fn of(&self, setting: &SettingRef) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.setting == *setting)
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
            rounded: None,
            around: Changed::new(),
            link: None,
        }
    }

    fn effective(value: &str) -> Line {
        Line::Effective {
            setting: setting(),
            value: value.into(),
            around: Changed::new(),
            beside: Vec::new(),
        }
    }

    fn cells(all: &[(&str, &str)]) -> Cells {
        all.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    }

    fn changed(all: &[(&str, Option<&str>)]) -> Changed {
        all.iter().map(|(name, text)| ((*name).into(), text.map(Into::into))).collect()
    }

    fn written(lines: &[Line]) -> Vec<u8> {
        lines.iter().flat_map(|line| super::super::seal(line).unwrap()).collect()
    }

    #[test]
    fn a_journal_of_the_fourth_format_is_read() {
        const JOURNAL: &str = concat!(
            r#"{"line":"begin","format":4,"pid":7,"boot_id":"b","netns":4026531840,"netns_cookie":1}"#,
            "\n",
            r#"{"line":"intent","setting":{"end":"near","name":"offload.tso","scope":"eth0"},"original":"on","exact":"on","to":"off","link":2}"#,
            "\n",
            r#"{"line":"effective","setting":{"end":"near","name":"offload.tso","scope":"eth0"},"value":"off"}"#,
            "\n",
        );
        let text = Text::read(JOURNAL.as_bytes());
        assert!(text.damage().is_none() && text.foreign().is_none(), "{text:?}");
        let Contents { owner, entries, written, .. } = text.says;
        assert!(owner.is_some_and(|owner| (owner.format, owner.pid) == (4, 7)));
        assert!(written.is_empty());
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!((&*entry.original, &entry.ours[..]), ("on", &["off".to_owned()][..]));
        assert!(entry.setting == setting() && entry.link == Some(2) && entry.doubt.is_none());
    }

    #[test]
    fn the_first_original_is_kept_over_many_changes() {
        let lines = [intent("off"), effective("off"), intent("on"), effective("on"), intent("off")];
        let contents = Text::read(&written(&lines)).says;
        let [entry] = &contents.entries[..] else { panic!("{contents:?}") };
        assert_eq!(entry.original, "on");
        assert_eq!(entry.ours, ["on", "off"], "either may be the value now");
    }

    #[test]
    fn what_a_value_became_before_may_be_there_until_the_change_is_done() {
        let mut line = intent("1001");
        if let Line::Intent { rounded, .. } = &mut line {
            *rounded = Some("1024".into());
        }
        let known = |lines: &[Line]| -> Vec<String> {
            Text::read(&written(lines)).says.entries[0].known_values().cloned().collect()
        };
        assert_eq!(known(&[line.clone()]), ["1001", "1024", "on"]);
        assert_eq!(known(&[line, effective("1024")]), ["1024", "on"]);
    }

    #[test]
    fn a_settled_setting_is_not_put_back_again() {
        let settled = Line::Settled { setting: setting() };
        let text = Text::read(&written(&[intent("off"), settled]));
        assert_eq!(text.says.entries, []);
    }

    #[test]
    fn an_original_that_is_damaged_is_not_believed() {
        let text = String::from_utf8(written(&[intent("off"), effective("off")])).unwrap();
        let damaged = text.replacen("\"original\":\"on\"", "\"original\":\"no\"", 1);
        let text = Text::read(damaged.as_bytes());
        assert_eq!((text.unreadable.as_slice(), text.says.entries.len()), (&[1][..], 0));
    }

    #[test]
    fn a_journal_without_its_first_line_is_damaged() {
        let begun = written(&[intent("off")]);
        for damaged in [&b""[..], b"\n", &[0; 300], &begun[..60]] {
            let text = Text::read(damaged);
            assert_eq!((text.unreadable.as_slice(), text.says.owner), (&[1][..], None));
        }
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_reported_and_the_rest_counts() {
        let mut bytes = b"{\"line\":\"inte\n".to_vec();
        bytes.extend(written(&[intent("off")]));
        let text = Text::read(&bytes);
        assert_eq!((text.unreadable.as_slice(), text.says.entries.len()), (&[1][..], 1));
    }

    /// A journal of changes of `offload.tso@eth0`, and the state when the first one begins.
    fn begun(before: &Cells) -> Contents {
        let mut contents = Contents::default();
        contents.add(about("tso", "off", crate::side_effects::changed(&Cells::new(), before)));
        contents
    }

    fn named(name: &str) -> SettingRef {
        format!("offload.{name}@eth0").parse().unwrap()
    }

    /// A change of an offload that was on, with the noted surroundings.
    fn about(name: &str, to: &str, around: Changed) -> Line {
        let (setting, on, to) = (named(name), String::from("on"), to.into());
        let (rounded, link) = (None, None);
        Line::Intent { setting, original: on.clone(), exact: on, to, rounded, around, link }
    }

    /// How such a change ended.
    fn ended(name: &str, value: &str, around: &[(&str, Option<&str>)]) -> Line {
        let (setting, around) = (named(name), changed(around));
        Line::Effective { setting, value: value.into(), around, beside: Vec::new() }
    }

    fn found(around: &[(&str, Option<&str>)]) -> Line {
        Line::Found { setting: setting(), around: changed(around) }
    }

    fn target(contents: &Contents, name: &str, now: &Cells) -> Cells {
        contents.target(contents.of(&named(name)).unwrap(), now)
    }

    #[test]
    fn cells_that_somebody_else_changed_stay_as_they_are() {
        let before = cells(&[("mask", "f"), ("mtu", "9000"), ("name", "x")]);
        let mut contents = begun(&before);
        // Cut short: everything found is our doing.
        assert_eq!(target(&contents, "tso", &cells(&[("mtu", "1500")])), before);
        contents.add(ended("tso", "off", &[("mask", None), ("mtu", Some("1500"))]));
        assert_eq!(target(&contents, "tso", &cells(&[("mtu", "1500"), ("name", "x")])), before);
        let theirs = cells(&[("mtu", "1400"), ("name", "y")]);
        let mask = cells(&[("mask", "f")]);
        assert_eq!(target(&contents, "tso", &theirs), mask, "the others are not ours");
        // Interrupted while putting back: a queue that has come back has no mask yet.
        contents.add(about("tso", "on", crate::side_effects::changed(&before, &theirs)));
        let now = cells(&[("mask", "0"), ("mtu", "9000"), ("name", "y")]);
        assert_eq!(target(&contents, "tso", &now), mask);
    }

    #[test]
    fn what_was_found_just_before_the_change_is_the_original() {
        let mut contents = begun(&cells(&[("mtu", "9000"), ("name", "x"), ("old", "1")]));
        contents.add(found(&[("name", Some("y")), ("old", None)]));
        let first = cells(&[("mtu", "9000"), ("name", "y")]);
        let now = cells(&[("mtu", "1500"), ("name", "z")]);
        assert_eq!(target(&contents, "tso", &now), first);
        contents.add(ended("tso", "off", &[("mtu", Some("1500"))]));
        // Before a later change it is someone else's.
        contents.add(about("tso", "on", changed(&[("mtu", Some("1500"))])));
        contents.add(found(&[("name", Some("z"))]));
        assert_eq!(target(&contents, "tso", &now), cells(&[("mtu", "9000"), ("name", "z")]));
    }

    #[test]
    fn putting_back_that_was_cut_short_twice_still_knows_the_original() {
        let before = cells(&[("mtu", "9000")]);
        let mut contents = begun(&before);
        // The run died after its write and before noting it; then the guard died, too.
        contents.add(about("tso", "on", changed(&[("mtu", Some("1500"))])));
        assert_eq!(target(&contents, "tso", &cells(&[("mtu", "1500")])), before);
    }

    /// Two settings that alter one cell, `both`; the second one begins with the value that the first one made.
    fn sharing() -> Contents {
        let mut contents = begun(&cells(&[("both", "0-0"), ("one", "0")]));
        contents.add(ended("tso", "off", &[("both", Some("1-0")), ("one", Some("1"))]));
        let around = changed(&[("both", Some("1-0")), ("other", Some("0"))]);
        contents.add(about("gso", "off", around));
        contents
    }

    #[test]
    fn what_one_setting_made_is_not_the_original_of_the_next() {
        let mut contents = sharing();
        contents.add(ended("gso", "off", &[("both", Some("1-1")), ("other", Some("1"))]));
        let now = cells(&[("both", "1-1"), ("one", "1"), ("other", "1")]);
        assert_eq!(contents.undo_order(), [named("gso"), named("tso")]);
        // The first one still holds what they share; it goes back with the last of them.
        assert_eq!(target(&contents, "gso", &now), cells(&[("other", "0")]));
        contents.add(ended("gso", "on", &[("both", Some("1-0")), ("other", Some("0"))]));
        let now = cells(&[("both", "1-0"), ("one", "1"), ("other", "0")]);
        let all = cells(&[("both", "0-0"), ("one", "0")]);
        assert_eq!(target(&contents, "tso", &now), all);
        // In the other order it is the same.
        contents.add(about("gso", "off", changed(&[])));
        contents.add(ended("gso", "off", &[("both", Some("1-1")), ("other", Some("1"))]));
        contents.add(about("tso", "on", changed(&[])));
        contents.add(ended("tso", "on", &[("both", Some("0-1")), ("one", Some("0"))]));
        let now = cells(&[("both", "0-1"), ("one", "0"), ("other", "1")]);
        assert_eq!(target(&contents, "gso", &now), cells(&[("both", "0-0"), ("other", "0")]));
    }

    #[test]
    fn a_change_that_was_cut_short_goes_back_to_what_the_others_hold() {
        let mut contents = sharing();
        let now = cells(&[("both", "?"), ("one", "1"), ("other", "?")]);
        assert_eq!(target(&contents, "gso", &now), cells(&[("both", "1-0"), ("other", "0")]));
        contents.add(ended("gso", "off", &[("both", Some("1-1")), ("other", Some("1"))]));
        // The first one is changed again, and that is cut short: it is undone first.
        contents.add(about("tso", "on", changed(&[("both", Some("1-1")), ("one", Some("1"))])));
        assert_eq!(contents.undo_order(), [named("tso"), named("gso")]);
        assert_eq!(target(&contents, "tso", &now), cells(&[("both", "1-1"), ("one", "0")]));
    }

    #[test]
    fn what_a_setting_drags_along_is_the_runs_own_doing() {
        let mut contents = begun(&Cells::new());
        contents.add(ended("tso", "off", &[]));
        contents.add(about("gso", "off", Changed::new()));
        let (setting, value, around) = (named("gso"), "off".to_owned(), Changed::new());
        let beside = vec![(named("tso"), Some("7".to_owned())), (named("lro"), None)];
        contents.add(Line::Effective { setting, value, around, beside });
        let known: Vec<_> = contents.of(&named("tso")).unwrap().known_values().collect();
        assert_eq!(known, ["off", "7", "on"]);
        assert_eq!(contents.of(&named("tso")).unwrap().ours, ["off"], "its own value stays");
        contents.add(ended("tso", "on", &[]));
        assert_eq!(contents.of(&named("tso")).unwrap().dragged, []);
    }

    #[test]
    fn what_someone_else_changed_between_two_settings_is_the_original_of_the_second() {
        let mut contents = begun(&cells(&[("both", "0")]));
        contents.add(ended("tso", "off", &[]));
        contents.add(about("gso", "off", changed(&[("both", Some("theirs"))])));
        contents.add(ended("gso", "off", &[("both", Some("1"))]));
        let theirs = cells(&[("both", "theirs")]);
        assert_eq!(target(&contents, "gso", &cells(&[("both", "1")])), theirs);
    }

    proptest! {
        #[test]
        fn wherever_it_is_cut_the_whole_lines_count(cut in 0usize..600) {
            let lines = [intent("off"), effective("off"), intent("on")];
            let bytes = written(&lines);
            let cut = cut.min(bytes.len());
            // The first line has its line break before the journal has its name. Any other line may lack it.
            let fits = |n: &usize| written(&lines[..*n]).len() <= cut + usize::from(*n > 1);
            let whole = (0..=lines.len()).rev().find(fits).unwrap();
            let (cut, whole) = (Text::read(&bytes[..cut]), Text::read(&written(&lines[..whole])));
            // Damage tells the number of lines as well.
            prop_assert_eq!(cut.damage(), whole.damage());
            prop_assert_eq!((cut.says, cut.unreadable), (whole.says, whole.unreadable));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Text::read(&bytes).says.entries.is_empty());
        }

        #[test]
        fn any_value_comes_back_as_it_was(value in ".*") {
            let text = Text::read(&written(&[intent(&value)]));
            prop_assert_eq!(&text.says.entries[0].ours, &vec![value]);
        }
    }
}
