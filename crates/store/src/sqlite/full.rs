//! Deleting on a disk without a free byte.
//!
//! SQLite writes to a log or to a journal before it changes the file, so to delete takes room. If there is none, a few of the
//! oldest records are deleted by a journal in memory, in one step that also ends the file earlier: then the disk has room for
//! the log, and all else is deleted as usual. Nobody else can use the file during this step. A power cut while it is written,
//! for some milliseconds, would damage the file.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::file::real_path;
use super::schema::{State, state};
use super::{BUSY_TIMEOUT, old, room};
use crate::error::{NoRoom, StoreError};
use crate::old::Old;

/// Most records of the first step. Results of watches take 75 to 130 kB, so this makes room for the log of some more.
pub(super) const FIRST_PART: u32 = 32;

/// Deletes the oldest records of what is old, and ends the file earlier. Returns their number.
pub(crate) fn make_room(path: &Path, old: &Old) -> Result<usize, StoreError> {
    make_room_within(path, old, BUSY_TIMEOUT)
}

fn make_room_within(path: &Path, old: &Old, patience: Duration) -> Result<usize, StoreError> {
    let failed = |source| StoreError::sqlite("delete from", path, source);
    let no_room = |why| StoreError::NoRoomToDelete { path: path.to_path_buf(), why };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let real = real_path(path)?;
    let db = Connection::open_with_flags(&real, flags).map_err(failed)?;
    db.busy_timeout(patience).map_err(failed)?;
    let alone = take_alone(&db).map_err(|source| match failed(source) {
        StoreError::Busy { .. } => no_room(NoRoom::Used),
        why => why,
    })?;
    if !alone {
        return Err(no_room(NoRoom::Older));
    }
    let log_bytes = fs::metadata(format!("{}-wal", real.display())).map_or(0, |log| log.len());
    journal_in_memory(&db).map_err(|source| match failed(source) {
        StoreError::Busy { .. } => no_room(NoRoom::Used),
        StoreError::DiskFull { .. } => no_room(NoRoom::Log { bytes: log_bytes }),
        why => why,
    })?;
    let deleted = delete_some(&db, old).map_err(failed)?;
    deleted.ok_or_else(|| no_room(NoRoom::Older))
}

/// Lets this connection have the file for itself, with the index of its log in memory. Returns whether it has the schema of
/// this goodput.
fn take_alone(db: &Connection) -> rusqlite::Result<bool> {
    db.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY; PRAGMA cache_spill = OFF",
    )?;
    // The first reading takes the lock.
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(matches!(state(db), Ok(State::Current)))
}

/// Copies the log into the file, and keeps the journal of what follows in memory.
fn journal_in_memory(db: &Connection) -> rusqlite::Result<()> {
    db.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))
}

/// The step. `None`, and nothing is changed, if the file would get longer: one that can't shrink in parts may.
fn delete_some(db: &Connection, old: &Old) -> rusqlite::Result<Option<usize>> {
    if !old::is_any(db, old)? {
        return Ok(Some(0));
    }
    let part = old::first_part(db, old, FIRST_PART)?;
    let step = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    let before = room::length_pages(&step)?;
    let deleted = old::delete_within(&step, part.as_ref().unwrap_or(old))?;
    room::shrink_whole(&step)?;
    if room::length_pages(&step)? > before {
        return Ok(None);
    }
    step.commit()?;
    Ok(Some(deleted))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::store::Store;
    use crate::wanted::Wanted;
    use crate::watched::Watched;
    use goodput_model::Record;

    /// What a test deletes.
    fn old() -> Old {
        Old::Before("2026-01-21".into())
    }

    /// A history with four records on each of 25 days, open.
    fn filled(directory: &Path) -> (PathBuf, Store) {
        let path = directory.join("history.db");
        let store = Store::open(&path).unwrap();
        let json = include_str!("../../tests/golden/v1/test.json");
        let record = Record::from_json(json).unwrap();
        for (day, hour) in (1..=25).flat_map(|day| (0..4).map(move |hour| (day, hour))) {
            let started = format!("2026-01-{day:02}T{hour:02}:00:00Z");
            store.add(&Record { started, ..record.clone() }).unwrap();
        }
        (path, store)
    }

    fn length(path: &Path) -> u64 {
        fs::metadata(path).unwrap().len()
    }

    #[test]
    fn the_oldest_are_deleted_and_the_file_is_shorter_and_whole() {
        let directory = tempfile::tempdir().unwrap();
        let (path, store) = filled(directory.path());
        drop(store);
        let before = length(&path);
        let first = make_room(&path, &old()).unwrap();
        assert!((32..40).contains(&first), "{first}");
        assert!(length(&path) < before, "{before}");
        let db = Connection::open(&path).unwrap();
        let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        drop(db);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.list(1000).unwrap().len(), 100 - first);
        assert_eq!(first + store.delete(&old()).unwrap(), 80);
        assert_eq!(store.days(&Wanted::default()).unwrap().len(), 20, "they are summed up");
        drop(store);
        assert_eq!(make_room(&path, &old()).unwrap(), 0);
    }

    #[test]
    fn the_oldest_tests_of_watches_are_deleted_and_other_records_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (path, store) = filled(directory.path());
        let record = store.get(1).unwrap();
        let tests: Vec<_> = (0..40)
            .map(|minute| {
                let started = format!("2026-02-01T00:{minute:02}:00Z");
                let watched = Watched { plan: "{}".into(), goodput: None };
                store.add_watched(&Record { started, ..record.clone() }, &watched).unwrap()
            })
            .collect();
        drop(store);
        let before = length(&path);
        let first = make_room(&path, &Old::Watched(tests[37])).unwrap();
        assert!((32..38).contains(&first), "{first}");
        assert!(length(&path) < before, "{before}");
        let store = Store::open(&path).unwrap();
        assert_eq!(store.watched_times().unwrap().len(), 40 - first);
        assert_eq!(store.list(1000).unwrap().len(), 140 - first);
    }

    #[test]
    fn what_was_written_last_is_in_the_file_first() {
        let directory = tempfile::tempdir().unwrap();
        let (path, store) = filled(directory.path());
        // As after a power cut.
        let torn = directory.path().join("torn.db");
        for end in ["", "-wal"] {
            let name = |path: &Path| format!("{}{end}", path.display());
            fs::copy(name(&path), name(&torn)).unwrap();
        }
        drop(store);
        let first = make_room(&torn, &old()).unwrap();
        assert_eq!(Store::open(&torn).unwrap().list(1000).unwrap().len(), 100 - first);
    }

    #[test]
    fn a_file_that_others_use_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (path, store) = filled(directory.path());
        let why = make_room_within(&path, &old(), Duration::ZERO).unwrap_err();
        assert!(matches!(why, StoreError::NoRoomToDelete { why: NoRoom::Used, .. }), "{why}");
        assert_eq!(store.list(1000).unwrap().len(), 100);
    }

    /// Its pages stay in the file: it may get longer by the days of what is deleted.
    #[test]
    fn a_file_that_can_not_shrink_does_not_grow() {
        let directory = tempfile::tempdir().unwrap();
        let (path, store) = filled(directory.path());
        drop(store);
        let db = Connection::open(&path).unwrap();
        db.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
        drop(db);
        let before = length(&path);
        match make_room(&path, &old()) {
            Ok(deleted) => assert!(deleted >= 32, "{deleted}"),
            Err(StoreError::NoRoomToDelete { why: NoRoom::Older, .. }) => {}
            Err(why) => panic!("{why}"),
        }
        assert!(length(&path) <= before);
    }
}
