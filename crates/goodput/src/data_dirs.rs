//! The directories of results and of the settings journal.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Once, OnceLock};

use anyhow::Result;
use goodput_model::Record;
use goodput_store::{Place, Store, StoreError};

use crate::args::OutputArgs;
use crate::record_file::RecordFile;
use crate::running::Announced;
use crate::screen;

/// Names the history to the processes that this one starts; a command line could be read by other users.
const STORE: &str = "GOODPUT_STORE";

/// Where the user wants the history, which is one for the whole process, and how it was named.
static CHOSEN: OnceLock<(Place, PathBuf)> = OnceLock::new();

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

/// Notes where the user wants the history, before it is used.
///
/// # Errors
/// A URL that names no database.
pub fn choose_history(named: Option<PathBuf>) -> Result<(), StoreError> {
    if let Some(named) = named {
        let _ = CHOSEN.set((Place::named(&named)?, named));
    }
    Ok(())
}

/// The file of the history, if the user chose one.
pub fn chosen_file() -> Option<&'static Path> {
    match CHOSEN.get() {
        Some((Place::File(path), _)) => Some(path),
        _ => None,
    }
}

/// Lets a process that this one starts use the same history.
pub fn pass_history_on(command: &mut Command) {
    if let Some((_, named)) = CHOSEN.get() {
        command.env(STORE, named);
    }
}

/// The user's history.
pub fn history() -> Result<Store> {
    Ok(open_history()?)
}

fn open_history() -> Result<Store, StoreError> {
    Store::open(place()?)
}

/// The user's history, to read it: also where nothing can be written. If there is none, none is made. What it lacks is said
/// once.
pub fn history_to_read() -> Result<Store, StoreError> {
    /// `goodput web` opens it for each page.
    static SAID: Once = Once::new();
    let store = Store::open_to_read(place()?)?;
    if let Some(why) = store.is_read_without() {
        SAID.call_once(|| {
            screen::say(format_args!(
                "goodput: the history is of an older goodput and is read as it is, without what this one would add (how \
                 results were measured, days of deleted results): {why}"
            ));
        });
    }
    Ok(store)
}

/// Whether the history has a file, or is in a database.
pub fn has_history() -> Result<bool> {
    Ok(place()?.exists())
}

/// That no results are kept yet, with the place that the user named: the name may be wrong.
pub fn none_yet() -> String {
    let named = CHOSEN.get().map(|(place, _)| format!(" in {place}"));
    let named = named.unwrap_or_default();
    format!("no results are kept yet{named}; `goodput test HOST` makes one")
}

/// Where the history is: as the user chose, or in the usual file.
///
/// # Errors
/// There is no directory for it.
pub fn place() -> Result<Place, StoreError> {
    match CHOSEN.get() {
        Some((place, _)) => Ok(place.clone()),
        None => Ok(Place::File(goodput_store::default_path()?)),
    }
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
