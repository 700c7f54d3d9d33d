//! Where results are kept, and where the journal of settings is.

use std::path::PathBuf;

use anyhow::{Context, Result};
use goodput_model::Record;
use goodput_store::Store;

/// The user's history, or nowhere with `--no-store`. Opened before a measurement, so that a full
/// disk or a lacking permission shows before the time is spent.
pub struct Keeper(Option<Store>);

impl Keeper {
    /// Opens the history, unless it is not wanted.
    pub fn open(no_store: bool) -> Result<Self> {
        if no_store {
            return Ok(Self(None));
        }
        history().map(|store| Self(Some(store)))
    }

    /// Keeps a record; its number, if it was kept.
    pub fn keep(&self, record: &Record) -> Result<Option<i64>> {
        let Some(store) = &self.0 else { return Ok(None) };
        store.add(record).map(Some).context("the result above was not saved")
    }
}

/// The user's history.
pub fn history() -> Result<Store> {
    let path = goodput_store::default_path()?;
    Ok(Store::open(&path)?)
}

/// Where the journal of settings is: as the user says, or the usual place.
pub fn state_dir(chosen: Option<PathBuf>) -> Result<PathBuf> {
    match chosen {
        Some(chosen) => Ok(chosen),
        None => Ok(goodput_settings::default_state_dir()?),
    }
}
