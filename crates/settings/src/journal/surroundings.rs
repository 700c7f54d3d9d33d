//! The surroundings of one run's settings, for all settings together.

use std::collections::BTreeMap;

use crate::side_effects::{Cells, Changed, same};

/// The cells that a run has seen.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Surroundings {
    /// Their values before the run changed anything.
    original: Cells,
    /// Values that the run's changes gave them; `None` if they disappeared.
    made: BTreeMap<String, Vec<Option<String>>>,
}

impl Surroundings {
    /// Records what a setting finds before its first change. Values made by an earlier setting of the run
    /// are no originals. Anything else that is new is someone else's doing, if `is_certain`: no change of
    /// the run is under way.
    pub(super) fn see(&mut self, cells: &Changed, is_certain: bool) {
        for (name, text) in cells {
            let is_known = self.original.contains_key(name) || self.made.contains_key(name);
            if !is_known || is_certain && !self.is_ours(name, text.as_ref()) {
                self.take_from_other(name, text.as_ref());
            }
        }
    }

    /// Records what someone else changed.
    pub(super) fn take_from_others(&mut self, cells: &Changed) {
        cells.iter().for_each(|(name, text)| self.take_from_other(name, text.as_ref()));
    }

    fn take_from_other(&mut self, name: &str, text: Option<&String>) {
        self.made.remove(name);
        match text {
            Some(text) => self.original.insert(name.into(), text.clone()),
            None => self.original.remove(name),
        };
    }

    /// Records what a change of the run made.
    pub(super) fn make(&mut self, cells: Changed) {
        for (name, text) in cells {
            let made = self.made.entry(name).or_default();
            if !made.contains(&text) {
                made.push(text);
            }
        }
    }

    /// A cell's value before the run; `None` if there was none.
    pub(super) fn original(&self, name: &str) -> Option<&String> {
        self.original.get(name)
    }

    /// Whether a cell is as it was before the run, or as the run made it.
    pub(super) fn is_ours(&self, name: &str, now: Option<&String>) -> bool {
        let is = |text: Option<&String>| match (text, now) {
            (Some(one), Some(other)) => same(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let mut made = self.made.get(name).into_iter().flatten();
        // A cell that our change removed came back without its content.
        is(self.original(name)) || made.any(|made| made.is_none() || is(made.as_ref()))
    }
}
