//! The budget of an agent: bytes in any 24 hours. The history of its host keeps what was spent, over restarts.

use anyhow::{Context, Result};
use goodput_model::Bytes;
use goodput_store::Store;

use crate::commands::spent::{Note, of_last_day};
use crate::data_dirs::history;

/// What an agent may spend.
pub(super) struct Purse {
    store: Store,
    /// Under which its tests are in the history.
    name: String,
    limit: Bytes,
}

impl Purse {
    /// The budget of a site.
    pub fn open(site: &str, limit: Bytes) -> Result<Self> {
        Ok(Self { store: history()?, name: format!("fleet agent {site}"), limit })
    }

    /// What is left now.
    ///
    /// # Errors
    /// The history can't be read, so nobody knows what was spent.
    pub fn left(&self) -> Result<Bytes> {
        let spent = of_last_day(&self.store, &self.name).with_context(|| {
            format!("nobody knows what the budget of {} has left, so no test is made", self.name)
        })?;
        let used = spent.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(bytes.0));
        Ok(Bytes(self.limit.0.saturating_sub(used)))
    }

    /// Notes that a test begins, which may cost `most`: what it has cost if nobody says otherwise.
    ///
    /// # Errors
    /// The history can't be written, so the budget would not count the test.
    pub fn begin(&self, most: Bytes) -> Result<Note> {
        Note::kept(&self.store, &self.name, most).with_context(|| {
            format!("the budget of {} can't count the test, so it is not made", self.name)
        })
    }

    /// Notes what the test did cost.
    pub fn settle(&self, note: Note, bytes: Bytes) {
        note.settle(&self.store, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_that_can_t_be_used_is_a_reason_and_no_empty_purse() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let store = Store::open(&file).unwrap();
        let purse = Purse { store, name: "fleet agent b".into(), limit: Bytes(1000) };
        purse.begin(Bytes(300)).unwrap();
        assert_eq!(purse.left().unwrap(), Bytes(700), "what nobody settles is spent");
        let note = purse.begin(Bytes(700)).unwrap();
        assert_eq!(purse.left().unwrap(), Bytes(0));
        purse.settle(note, Bytes(100));
        assert_eq!(purse.left().unwrap(), Bytes(600));
        rusqlite::Connection::open(&file).unwrap().execute_batch("DROP TABLE spent").unwrap();
        for why in [purse.left().map(drop), purse.begin(Bytes(1)).map(drop)] {
            let why = format!("{:#}", why.unwrap_err());
            assert!(why.contains("the budget of fleet agent b") && why.contains("spent"), "{why}");
        }
    }
}
