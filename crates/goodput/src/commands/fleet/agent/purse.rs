//! The budget of an agent: bytes in any 24 hours. The history of its host keeps what was spent, over restarts.

use anyhow::Result;
use goodput_model::Bytes;
use goodput_store::Store;

use crate::commands::spent::{Note, of_last_day};
use crate::data_dirs::history;
use crate::screen;

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

    /// What is left now. Nothing, if nobody knows what was spent.
    pub fn left(&self) -> Bytes {
        match of_last_day(&self.store, &self.name) {
            Ok(spent) => {
                let used = spent.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(bytes.0));
                Bytes(self.limit.0.saturating_sub(used))
            }
            Err(why) => {
                screen::say(format_args!(
                    "goodput: the budget can't be read, so no test is made: {why}"
                ));
                Bytes(0)
            }
        }
    }

    /// Notes that a test begins, which may cost `most`: what it has cost if nobody says otherwise.
    pub fn begin(&self, most: Bytes) -> Note {
        Note::begin(&self.store, &self.name, most)
    }

    /// Notes what the test did cost.
    pub fn settle(&self, note: Note, bytes: Bytes) {
        note.settle(&self.store, bytes);
    }
}
