//! One journal of this host: created in a folder that is on the list, taken over, removed.

use std::io;
use std::path::Path;

use super::asker::Asker;
use super::contents::{Contents, JOURNAL_FORMAT_VERSION, Line, Owner, Text};
use super::elsewhere::Elsewhere;
use super::list::List;
use super::own_folder::{lock_folder, make_own_folder};
use super::sealed_file::{Durable, Opened, SealedFile};
use crate::error::{self, SettingError};
use crate::place::Place;
use crate::process::ProcessMark;

/// Suffix of journals' names.
pub(super) const SUFFIX: &str = ".journal.jsonl";

/// An open journal. It is locked as long as this value lives.
#[derive(Debug)]
pub(crate) struct JournalFile {
    file: SealedFile,
    list: List,
    /// What it said when it was begun or opened.
    text: Text,
}

impl JournalFile {
    /// Creates the journal of this process in `state_dir`, which is created if need be.
    ///
    /// # Errors
    /// If it can't be written, or `others` finds another run, or a guard, that changes this namespace now.
    pub(super) fn create(
        state_dir: &Path,
        place: &Place,
        asker: Asker,
        others: impl FnOnce(&Path, &List) -> io::Result<Option<SettingError>>,
    ) -> Result<Self, SettingError> {
        let fail = |operation, cause| error::of_journal(operation, state_dir, cause);
        make_own_folder(state_dir).map_err(|cause| fail("create the directory of", cause))?;
        // The guard runs in another directory, so the path must not be relative.
        let folder = state_dir.canonicalize().map_err(|cause| fail("find", cause))?;
        let list = List::of(&folder)?;
        let _listing = list.lock()?;
        let _busy = lock_folder(&folder).map_err(|cause| fail("lock", cause))?;
        let other = others(&folder, &list).map_err(|cause| fail("look next to", cause))?;
        if let Some(busy) = other {
            return Err(busy);
        }
        let (format, pid, place) = (JOURNAL_FORMAT_VERSION, std::process::id(), place.clone());
        let process = ProcessMark::own();
        let first = Line::Begin(Owner { format, pid, process, place, asker });
        let begun = SealedFile::begin(&folder, SUFFIX, &first);
        let file = begun.map_err(|cause| fail("create", cause))?;
        // The journal holds no change yet. Report the first error.
        list.add(file.path()).inspect_err(|_| drop(file.close()))?;
        Elsewhere::of(&folder).inspect(|links| links.remember(file.path()));
        Ok(Self { file, list, text: Text::begun(first) })
    }

    /// Opens a journal and waits until its owner has released it. `None`: it is closed.
    pub(crate) fn take_over(path: &Path) -> io::Result<Option<Self>> {
        SealedFile::take_over(path)?.map_or(Ok(None), Self::listed)
    }

    /// Opens a journal whose owner is dead. `None`: it is closed or its owner lives.
    pub(super) fn open_abandoned(path: &Path) -> io::Result<Option<Self>> {
        SealedFile::open(path)?.map_or(Ok(None), Self::listed)
    }

    fn listed(Opened { text, file }: Opened<Contents>) -> io::Result<Option<Self>> {
        let Some(file) = file else { return Ok(None) };
        let folder = file.path().parent().unwrap_or(Path::new("/"));
        let list = List::of(folder).map_err(io::Error::other)?;
        Ok(Some(Self { file, list, text }))
    }

    /// What the journal at `path` says, and whether its owner lives. `None`: it is closed.
    pub(crate) fn peek(path: &Path) -> io::Result<Option<(Text, bool)>> {
        SealedFile::peek(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// What it said when it was begun or opened.
    pub(crate) fn text(&self) -> &Text {
        &self.text
    }

    /// What a person should know about it once it was used.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.file.notes()
    }

    /// What a person should know about its end, if that was mended.
    pub(crate) fn note_of_end(&self) -> Option<String> {
        self.file.note_of_end()
    }

    /// Adds a line, whole or not at all.
    pub(crate) fn append(&mut self, line: &Line, durable: Durable) -> Result<(), SettingError> {
        self.file.append(line, durable).map_err(|cause| self.failed("write", cause))
    }

    /// Closes the journal: nothing is left to put back. A damaged one is set aside.
    pub(crate) fn close(&self) -> Result<(), SettingError> {
        self.file.close().map_err(|error| self.failed("remove", error))?;
        // A dangling line of the list does no harm; the next run removes it.
        let _ = self.list.remove(self.path());
        let links = self.path().parent().and_then(Elsewhere::of);
        links.inspect(|links| links.forget(self.path()));
        Ok(())
    }

    fn failed(&self, operation: &'static str, cause: io::Error) -> SettingError {
        error::of_journal(operation, self.path(), cause)
    }

    /// Makes every further line fail as on a full disk.
    #[cfg(test)]
    pub(crate) fn fill_disk(&mut self) {
        self.file.fill_disk();
    }
}
