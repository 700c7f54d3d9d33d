//! One setting that a run has changed.

use std::collections::BTreeSet;

use goodput_model::SettingRef;

use crate::side_effects::{Cells, Changed};
use crate::value::may_have_become;

/// One setting to put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The setting.
    pub(crate) setting: SettingRef,
    /// Its value before our first change.
    pub(crate) original: String,
    /// The same with everything needed to put it back exactly.
    pub(crate) exact: String,
    /// Index of the device, if the setting belongs to a device.
    pub(crate) link: Option<u32>,
    /// The values that may be our doing: the last one read back, and the one intended after that,
    /// if the writer died between the two.
    pub(crate) ours: Vec<String>,
    /// Whether the first of them was read back: what led to it is known.
    pub(crate) is_read: bool,
    /// What the kernel made of the intended value the last time, if there was one.
    pub(crate) rounded: Option<String>,
    /// Values that changes of the run's other settings gave it since; `None` if its object disappeared.
    pub(crate) dragged: Vec<Option<String>>,
    /// What may change along with it, as noted before our first change of it.
    pub(crate) before: Cells,
    /// The names of the cells that our changes of it altered.
    pub(crate) touched: BTreeSet<String>,
    /// How the cells differed from `before` when the last change began, if the outcome of that change is
    /// unknown.
    pub(crate) doubt: Option<Changed>,
}

impl Entry {
    pub(super) fn new(setting: SettingRef, original: String, exact: String) -> Self {
        let (ours, dragged, before, touched) = Default::default();
        let (link, rounded, doubt, is_read) = (None, None, None, false);
        Self {
            setting,
            original,
            exact,
            link,
            ours,
            is_read,
            rounded,
            dragged,
            before,
            touched,
            doubt,
        }
    }

    /// Every value that may be this run's doing, and the original.
    pub(crate) fn known_values(&self) -> impl Iterator<Item = &String> {
        let ours = self.ours.iter().chain(&self.rounded);
        ours.chain(self.dragged.iter().flatten()).chain([&self.original])
    }

    /// Whether a change that was cut short may have left `now`, because the kernel made that of a number that it had not
    /// been asked for before.
    pub(crate) fn may_have_become(&self, now: &str) -> bool {
        let first = (!self.is_read).then_some(&self.original);
        let values: Vec<_> = first.into_iter().chain(&self.ours).collect();
        let mut changes = values.windows(2).map(|pair| (pair[0], pair[1]));
        let is_unknown = self.doubt.is_some() && self.rounded.is_none();
        is_unknown
            && changes.any(|(before, wanted)| {
                *wanted != self.original && may_have_become(before, wanted, now)
            })
    }

    /// Whether the run has changed its value, or may have.
    pub(super) fn is_applied(&self) -> bool {
        self.doubt.is_some() || self.ours.last() != Some(&self.original)
    }

    /// The names of the cells that may change along with it.
    pub(super) fn cells(&self) -> impl Iterator<Item = &String> {
        self.before
            .keys()
            .chain(self.touched.iter().filter(|name| !self.before.contains_key(*name)))
    }

    /// What a cell was when the doubtful change began, which may have left any value; without
    /// doubt, what it is `now`.
    pub(super) fn found_before_doubt<'a>(
        &'a self,
        name: &str,
        now: &'a Cells,
    ) -> Option<&'a String> {
        match &self.doubt {
            Some(doubt) => doubt.get(name).map_or_else(|| self.before.get(name), Option::as_ref),
            None => now.get(name),
        }
    }

    pub(super) fn intend(&mut self, to: String, rounded: Option<String>, around: Changed) {
        if self.ours.is_empty() {
            self.before = around.into_iter().filter_map(|(n, text)| Some((n, text?))).collect();
            self.doubt = Some(Changed::new());
        } else {
            // The outcome of the first of several changes is unknown too; what that change found counts.
            self.doubt.get_or_insert(around);
        }
        self.ours.push(to);
        self.rounded = rounded;
    }

    pub(super) fn found(&mut self, around: Changed) {
        if self.ours.len() == 1 {
            // Before the first change it is the state in which that change began.
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

    pub(super) fn took_effect(&mut self, value: String, touched: impl Iterator<Item = String>) {
        self.ours = vec![value];
        self.is_read = true;
        self.rounded = None;
        self.dragged.clear();
        self.doubt = None;
        self.touched.extend(touched);
    }
}
