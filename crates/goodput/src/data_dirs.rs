//! The directories of results and of the settings journal.

use std::path::PathBuf;

use anyhow::Result;
use goodput_model::Record;
use goodput_store::{Store, StoreError};

use crate::args::OutputArgs;
use crate::record_file::RecordFile;
use crate::running::Announced;
use crate::screen;

/// Where the results of a measurement are stored: the user's history, unless `--no-store` is given, and the file of
/// `--record`. Opened before a measurement, so that a full disk or a missing permission shows before time is spent.
///
/// Without its history a measurement is still worth making: its result is printed, and the reason why it was not kept.
pub struct Keeper {
    store: Option<Result<Store, StoreError>>,
    file: Option<RecordFile>,
}

impl Keeper {
    /// Opens the requested places. A history that can't be opened is reported now as well: a comparison may take long.
    pub fn open(output: &OutputArgs) -> Result<Self> {
        let store = (!output.no_store).then(open_history);
        if let Some(Err(why)) = &store {
            screen::say(format_args!("warning: the result will be printed, but not saved: {why}"));
        }
        let file = output.record.as_deref().map(RecordFile::open).transpose()?;
        Ok(Self { store, file })
    }

    /// Stores a record in both; a failure of one doesn't stop the other.
    pub fn keep(self, record: &Record) -> Result<()> {
        let written = self.file.map_or(Ok(()), |file| file.write(record));
        let added = self.store.map_or(Ok(()), |store| store?.add(record).map(drop));
        written?;
        added.map_err(not_saved)
    }
}

/// A result was printed, but the history does not have it.
fn not_saved(why: StoreError) -> anyhow::Error {
    let text = format!("the result above was not saved: {why}, or use --no-store");
    anyhow::Error::from(why).context(text)
}

/// The user's history.
pub fn history() -> Result<Store> {
    Ok(open_history()?)
}

fn open_history() -> Result<Store, StoreError> {
    Store::open(&goodput_store::default_path()?)
}

/// The user's history, to read it: also where nothing can be written.
pub fn history_to_read() -> Result<Store> {
    let path = goodput_store::default_path()?;
    Ok(Store::open_to_read(&path)?)
}

/// Announces a run of `command`, so that `goodput web` can follow it; unless the program that started it follows it.
pub fn announced(
    state: Option<PathBuf>,
    output: &OutputArgs,
    command: &str,
    target: &str,
    started: &str,
) -> Option<Announced> {
    match output.end_with_input {
        true => None,
        false => Announced::new(&state_dir(state).ok()?, command, target, started),
    }
}

/// The directory of the settings journal: the user's choice, or the default.
pub fn state_dir(chosen: Option<PathBuf>) -> Result<PathBuf> {
    match chosen {
        Some(chosen) => Ok(chosen),
        None => Ok(goodput_settings::default_state_dir()?),
    }
}
