//! What is noted of a run's changes: each setting with the values around it, before the first change and after each one.

use goodput_model::SettingRef;
use goodput_settings::Became;

use crate::entry::{Cell, Entry};
use crate::error::RemoteError;
use crate::host::Host;
use crate::look::Look;

/// The values of every entry: its own, then its surroundings. `None`: it can't be read.
pub(super) type Values = Vec<Vec<Option<String>>>;

/// The changed settings of one host, in the order of their first changes.
#[derive(Default)]
pub(super) struct Noted {
    pub(super) entries: Vec<Entry>,
    /// What the system made of numbers.
    pub(super) became: Became,
}

impl Noted {
    /// The place of a setting's entry, if the setting was changed before.
    pub(super) fn place(&self, setting: &SettingRef) -> Option<usize> {
        self.entries.iter().position(|entry| entry.main.setting == *setting)
    }

    /// Notes the present values of a setting and of everything coupled with it as the originals.
    pub(super) fn find_around(
        &mut self,
        host: &mut Host,
        setting: &SettingRef,
    ) -> Result<usize, RemoteError> {
        let system = host.system;
        let mut look = Look::new(&mut host.session);
        let main = Cell::found(system, &mut look, setting.clone())?;
        let mut around = Vec::new();
        for other in system.coupled(&mut look, setting)? {
            match Cell::found(system, &mut look, other) {
                Ok(cell) => around.push(cell),
                Err(error @ RemoteError::Lost { .. }) => return Err(error),
                // A value that the driver does not have can't change.
                Err(_) => {}
            }
        }
        self.entries.push(Entry { main, around, doubt: false });
        Ok(self.entries.len() - 1)
    }

    /// The present values of every entry; `None` if a value can't be read.
    pub(super) fn look(&self, host: &mut Host) -> Result<Values, RemoteError> {
        let system = host.system;
        let mut look = Look::new(&mut host.session);
        let mut values = Vec::new();
        for entry in &self.entries {
            let mut own = Vec::new();
            for cell in entry.cells() {
                own.push(match system.read(&mut look, &cell.setting) {
                    Ok(value) => Some(value),
                    Err(error @ RemoteError::Lost { .. }) => return Err(error),
                    Err(_) => None,
                });
            }
            values.push(own);
        }
        Ok(values)
    }

    /// Notes in an entry the values that a change to `to` can leave, and what others have changed around it: `seen` are
    /// its present values.
    pub(super) fn expect_change(
        &mut self,
        host: &mut Host,
        index: usize,
        to: &str,
        seen: &[Option<String>],
    ) -> Result<(), RemoteError> {
        let Self { entries, became } = self;
        let system = host.system;
        let mut look = Look::new(&mut host.session);
        let entry = &mut entries[index];
        let is_first = entry.main.made.is_none();
        let last = became.last(&entry.main.setting, to).map(String::as_str);
        entry.main.expect(system, &mut look, to, last)?;
        for (cell, now) in entry.around.iter_mut().zip(&seen[1..]) {
            cell.theirs = now.as_deref().is_none_or(|now| cell.is_foreign(now));
            if cell.theirs && is_first {
                // Before the first change, this value is the original.
                match Cell::found(system, &mut look, cell.setting.clone()) {
                    Ok(found) => *cell = found,
                    Err(error @ RemoteError::Lost { .. }) => return Err(error),
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Notes differences from `before` as our doing: settings of one run may drag each other along. Returns the
    /// affected entries.
    pub(super) fn take_note(
        &mut self,
        host: &mut Host,
        before: &Values,
    ) -> Result<Vec<usize>, RemoteError> {
        let after = self.look(host)?;
        let mut touched = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let values = before[index].iter().zip(&after[index]);
            for (cell, (before, after)) in entry.cells_mut().zip(values) {
                if before != after && after.is_some() {
                    cell.made.clone_from(after);
                    touched.push(index);
                }
            }
        }
        touched.dedup();
        Ok(touched)
    }
}
