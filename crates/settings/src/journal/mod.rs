//! What was changed and its original, on disk before the change is made.
//!
//! One file for each [`crate::Changes`], one JSON object per line. Its owner holds a lock (flock(2))
//! on it while alive. A missing file is a closed journal: there is nothing to put back.

mod asker;
mod closing;
mod contents;
mod elsewhere;
mod entry;
mod file;
mod folder;
mod held_by;
mod last_line;
mod list;
mod own_folder;
mod sealed_file;
mod sealed_line;
mod surroundings;
mod text;

pub use asker::Asker;
pub(crate) use contents::{Contents, Line, TakenOver, Text};
pub use elsewhere::Elsewhere;
pub(crate) use entry::Entry;
pub(crate) use file::JournalFile;
pub(crate) use folder::{
    abandoned, begin, claim, forget_missing, left, listed_elsewhere, missing, open_one,
};
pub(crate) use own_folder::LockHeld;
pub use own_folder::make_own_folder;
pub use sealed_file::{Durable, Opened, SealedFile};
#[cfg(test)]
pub(crate) use sealed_line::seal;
pub use text::{JournalContents, JournalText};
