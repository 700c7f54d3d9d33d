//! The changes made at a host.

use goodput_model::SettingRef;
use goodput_settings::value;
use serde::{Deserialize, Serialize};

use crate::command::{Command, Condition};
use crate::error::RemoteError;
use crate::shell::Shell;
use crate::system::System;

/// One value that may have to be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// The setting that has this value.
    pub(crate) setting: SettingRef,
    /// The value before our first change.
    pub(crate) original: String,
    /// How the host itself checks whether the original is back.
    pub(crate) is_original: Condition,
    /// The commands that restore it exactly.
    pub(crate) back: Vec<Command>,
    /// The value that our last change gave it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<String>,
    /// For the changed setting itself: whether it has a value that a change under way may have left. `None`: any
    /// value may be ours, as in journals of the first format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) under_way: Option<Condition>,
    /// The number that the change under way asks for, if nobody has seen yet what the system makes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<String>,
    /// Someone else had changed it before the change under way began, so it is not ours to put back.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) theirs: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Cell {
    /// The value that a setting has now.
    pub(crate) fn found(
        system: &dyn System,
        shell: &mut dyn Shell,
        setting: SettingRef,
    ) -> Result<Self, RemoteError> {
        let original = system.read(shell, &setting)?;
        if original.chars().any(is_unprintable) {
            return Err(RemoteError::NoSuchSetting {
                host: shell.host().into(),
                setting: setting.to_string(),
                why: "its value now has control characters, which could not be put back".into(),
            });
        }
        let is_original = system.holds(shell, &setting, &original)?;
        let back = system.write(shell, &setting, &original)?;
        let (made, under_way, asked, theirs) = (None, None, None, false);
        Ok(Self { setting, original, is_original, back, made, under_way, asked, theirs })
    }

    /// Whether a value is neither the original nor from our last change.
    pub(crate) fn is_foreign(&self, now: &str) -> bool {
        now != self.original && self.made.as_deref() != Some(now)
    }

    /// Whether the change under way may have left `now`, because the system made that of the number that was asked for.
    pub(crate) fn may_have_become(&self, now: &str) -> bool {
        let before = self.made.as_ref().unwrap_or(&self.original);
        self.asked.as_ref().is_some_and(|asked| value::may_have_become(before, asked, now))
    }

    /// Notes the values that a change to `to` can leave, however it ends: the value before, those that it may have
    /// afterwards, and those half-way between any two. `last` is what the system made of `to` the last time; without it,
    /// any number that the system can make of a number may be left.
    pub(crate) fn expect(
        &mut self,
        system: &dyn System,
        shell: &mut dyn Shell,
        to: &str,
        last: Option<&str>,
    ) -> Result<(), RemoteError> {
        self.asked = last.is_none().then(|| to.to_owned()).filter(|to| value::is_numeric(to));
        let mut values = vec![self.original.clone()];
        let afterwards = std::iter::once(to).chain(last).map(str::to_owned);
        self.made.iter().cloned().chain(afterwards).for_each(|value| {
            let between = values.iter().flat_map(|one| system.half_way(&self.setting, one, &value));
            let between: Vec<_> = between.chain([value.clone()]).collect();
            values.extend(between);
        });
        let mut condition = self.is_original.clone();
        for value in &values[1..] {
            condition = condition.or(system.holds(shell, &self.setting, value)?);
        }
        self.under_way = Some(condition);
        Ok(())
    }
}

/// A character that a terminal would not show as it is, or a placeholder for one that was left out.
fn is_unprintable(c: char) -> bool {
    c == char::REPLACEMENT_CHARACTER || (c.is_control() && c != '\t')
}

/// A setting that was changed, with what its system may have changed along with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The setting itself.
    pub(crate) main: Cell,
    /// Its surroundings.
    pub(crate) around: Vec<Cell>,
    /// Whether a change began whose outcome is unknown.
    pub(crate) doubt: bool,
}

impl Entry {
    /// The value itself, then its surroundings: in the order in which they are put back.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell> {
        std::iter::once(&self.main).chain(&self.around)
    }

    /// The same, to change them.
    pub(crate) fn cells_mut(&mut self) -> impl Iterator<Item = &mut Cell> {
        std::iter::once(&mut self.main).chain(&mut self.around)
    }
}

/// The value from before the run of the setting that makes the object of `cell`, if this run changed that one first: the
/// original of `cell` is then of our own making, and nothing is left of it once the other one is back.
pub(crate) fn maker<'a>(
    system: &dyn System,
    originals: &[(usize, &'a Cell)],
    cell: &Cell,
) -> Option<&'a Cell> {
    let made_by = system.made_by(&cell.setting)?;
    let before = originals.iter().map(|(_, before)| *before);
    let mut before = before.take_while(|before| before.setting != cell.setting);
    before.find(|before| before.setting == made_by)
}

/// Every value of these entries once, with the original that counts: from the first entry that has the value. Later
/// entries found a value of our own making.
pub(crate) fn originals(entries: &[Entry]) -> Vec<(usize, &Cell)> {
    let mut first: Vec<(usize, &Cell)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        for cell in entry.cells() {
            if first.iter().all(|(_, known)| known.setting != cell.setting) {
                first.push((index, cell));
            }
        }
    }
    first
}
