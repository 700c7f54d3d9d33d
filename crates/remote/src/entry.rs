//! What was changed at a host, and the script with which the host puts it back by itself.

use goodput_model::SettingRef;
use serde::{Deserialize, Serialize};

use crate::command::{Command, Condition};
use crate::error::RemoteError;
use crate::shell::Shell;
use crate::system::System;

/// One value that may have to be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// Whose value it is.
    pub(crate) setting: SettingRef,
    /// The value before our first change.
    pub(crate) original: String,
    /// What the host asks itself to know whether that is back.
    is_original: Condition,
    /// What makes it exactly so again.
    pub(crate) back: Vec<Command>,
    /// What our last change made of it, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<String>,
}

impl Cell {
    /// The value that a setting has now.
    pub(crate) fn found(
        system: &dyn System,
        shell: &mut dyn Shell,
        setting: SettingRef,
    ) -> Result<Self, RemoteError> {
        let original = system.read(shell, &setting)?;
        let is_original = system.holds(shell, &setting, &original)?;
        let back = system.write(shell, &setting, &original)?;
        Ok(Self { setting, original, is_original, back, made: None })
    }

    /// A script with which the host puts it back by itself if `ours` holds; if that is `None`, whatever it is.
    pub(crate) fn script(&self, ours: Option<&Condition>) -> String {
        let begin = match ours {
            Some(ours) => format!("if {{ {ours}; }}"),
            None => format!("if ! {{ {}; }}", self.is_original),
        };
        let back: Vec<_> = self.back.iter().map(Command::to_string).collect();
        // A device that starts anew refuses for a moment.
        format!(
            "{begin}; then for try in 1 2 3 4 5; do {}; {{ {}; }} && break; sleep 1; done; fi",
            back.join(" && "),
            self.is_original
        )
    }

    /// Whether `now` can be our doing. While a change is under way, anything can be.
    pub(crate) fn is_ours(&self, now: &str, doubt: bool) -> bool {
        doubt || self.made.as_deref() == Some(now)
    }
}

/// A setting that was changed, with what its system may have changed along with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The setting itself.
    pub(crate) main: Cell,
    /// What is around it.
    pub(crate) around: Vec<Cell>,
    /// Whether a change began whose end is not known.
    pub(crate) doubt: bool,
}

impl Entry {
    /// The value itself, then what is around it: in the order in which they are put back.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell> {
        std::iter::once(&self.main).chain(&self.around)
    }

    /// The same, to change them.
    pub(crate) fn cells_mut(&mut self) -> impl Iterator<Item = &mut Cell> {
        std::iter::once(&mut self.main).chain(&mut self.around)
    }
}
