//! Room that deleted records leave in the file. SQLite keeps it for what comes, unless it is told to give it back.
//!
//! A file of this goodput moves its last pages to free places and ends earlier (`PRAGMA incremental_vacuum`), a few at a
//! time, so that others write in between. An older file can't (`auto_vacuum` is off): it is written anew as a whole, during
//! which nobody else can write, and can from then on.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use crate::room::{GiveBack, Room};

/// Makes an empty file one that can end earlier. It has to be chosen before the first table
/// (<https://sqlite.org/pragma.html#pragma_auto_vacuum>).
pub(super) const CAN_SHRINK: &str = "PRAGMA auto_vacuum = INCREMENTAL";

/// `PRAGMA auto_vacuum` of such a file.
const INCREMENTAL: u64 = 2;

/// Pages of one step. Who wants to write waits for one step: 4 MiB are moved in some hundredths of a second.
const STEP_PAGES: u64 = 1024;

/// Pages of the smallest step: on a full disk, the log has no room for a larger one.
const FEWEST_PAGES: u64 = 16;

/// Steps of a part. A watch makes them between two tests.
const PART_STEPS: usize = 16;

/// The largest content of a file that is written anew as a whole. Others wait for 10 s before they give up, and a slow disk
/// writes 20 MB a second, twice: into a temporary file and into the log.
const MOST_WRITTEN_BYTES: u64 = 64 << 20;

/// Gives room back.
pub(super) fn give_back(db: &Connection, path: &Path, how: GiveBack) -> rusqlite::Result<Room> {
    give_back_up_to(db, path, how, MOST_WRITTEN_BYTES)
}

fn give_back_up_to(
    db: &Connection,
    path: &Path,
    how: GiveBack,
    most_written_bytes: u64,
) -> rusqlite::Result<Room> {
    let before = Pages::of(db)?;
    if before.free == 0 || (how == GiveBack::Some && before.free * 10 < before.all) {
        return Ok(Room { freed_bytes: 0, free_bytes: before.free * before.bytes });
    }
    match (number(db, "auto_vacuum")? == INCREMENTAL, how) {
        (true, GiveBack::All) => shrink(db, usize::MAX)?,
        (true, GiveBack::Some) => shrink(db, PART_STEPS)?,
        (false, GiveBack::All) if before.used_bytes() <= most_written_bytes => {
            db.execute_batch(CAN_SHRINK)?;
            db.execute_batch("VACUUM")?;
        }
        (false, _) => {}
    }
    end_log(db, how)?;
    let after = Pages::of(db)?;
    // While others read, the file keeps its length.
    let length = fs::metadata(path).map_or(0, |file| file.len()).max(after.all * after.bytes);
    Ok(Room {
        freed_bytes: (before.all * before.bytes).saturating_sub(length),
        free_bytes: length.saturating_sub(after.used_bytes()),
    })
}

/// Pages of the file.
pub(super) fn length_pages(db: &Connection) -> rusqlite::Result<u64> {
    number(db, "page_count")
}

/// Moves the last pages to all free places, within a step of the caller; does nothing to a file that can't shrink in parts.
pub(super) fn shrink_whole(step: &Connection) -> rusqlite::Result<()> {
    shrink(step, usize::MAX)
}

/// Moves the last pages to free places, until none is free or the steps are made.
fn shrink(db: &Connection, steps: usize) -> rusqlite::Result<()> {
    let mut pages = STEP_PAGES;
    for _ in 0..steps {
        let free = number(db, "freelist_count")?;
        if free == 0 {
            break;
        }
        match move_pages(db, pages) {
            Err(why) if is_full(&why) && pages > FEWEST_PAGES => {
                pages /= 4;
                end_log(db, GiveBack::All)?;
                continue;
            }
            moved => moved?,
        }
        if pages < STEP_PAGES {
            end_log(db, GiveBack::All)?;
        }
        // Another process may have used what was free; without progress, the next step would not make any either.
        if number(db, "freelist_count")? >= free {
            break;
        }
    }
    Ok(())
}

/// Moves so many of the last pages to free places, in one step.
fn move_pages(db: &Connection, pages: u64) -> rusqlite::Result<()> {
    let mut step = db.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    // It moves a page for each row that is asked for.
    let mut moved = step.query([])?;
    while moved.next()?.is_some() {}
    Ok(())
}

/// Whether the disk is full.
pub(super) fn is_full(why: &rusqlite::Error) -> bool {
    why.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Copies the log into the file, which then ends earlier. While others read, both stay; the last one to close the file does
/// it.
fn end_log(db: &Connection, how: GiveBack) -> rusqlite::Result<()> {
    let copy = match how {
        // Waits for others, and empties the log.
        GiveBack::All => "TRUNCATE",
        GiveBack::Some => "PASSIVE",
    };
    db.query_row(&format!("PRAGMA wal_checkpoint({copy})"), [], |_| Ok(()))
}

/// The pages of the file.
struct Pages {
    all: u64,
    free: u64,
    /// Size of one.
    bytes: u64,
}

impl Pages {
    fn of(db: &Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            all: number(db, "page_count")?,
            free: number(db, "freelist_count")?,
            bytes: number(db, "page_size")?,
        })
    }

    fn used_bytes(&self) -> u64 {
        self.all.saturating_sub(self.free) * self.bytes
    }
}

/// A number that a pragma gives.
fn number(db: &Connection, pragma: &str) -> rusqlite::Result<u64> {
    let number: i64 = db.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))?;
    Ok(u64::try_from(number).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A file with 2 MB, of which all but a twentieth was deleted.
    fn mostly_deleted(path: &Path, begin: &str) -> Connection {
        let db = Connection::open(path).unwrap();
        db.execute_batch(begin).unwrap();
        db.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE records (id INTEGER PRIMARY KEY, json BLOB);
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
             INSERT INTO records SELECT i, zeroblob(10000) FROM n;
             DELETE FROM records WHERE id % 20 > 0;
             PRAGMA wal_checkpoint(TRUNCATE);",
        )
        .unwrap();
        db
    }

    fn whole(db: &Connection) -> bool {
        let check = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0));
        let sum = "SELECT count(*) || ' ' || sum(length(json)) FROM records";
        check("PRAGMA integrity_check").unwrap() == "ok" && check(sum).unwrap() == "10 100000"
    }

    #[test]
    fn a_file_that_can_shrink_ends_earlier_and_keeps_the_rest() {
        for how in [GiveBack::All, GiveBack::Some] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("history.db");
            let db = mostly_deleted(&path, CAN_SHRINK);
            let room = give_back(&db, &path, how).unwrap();
            assert!(room.freed_bytes > 1_500_000 && room.free_bytes < 8192, "{room:?}");
            assert!(fs::metadata(&path).unwrap().len() < 250_000 && whole(&db));
            assert_eq!(give_back(&db, &path, how).unwrap().freed_bytes, 0);
        }
    }

    #[test]
    fn an_older_file_is_written_anew_if_it_is_small_and_left_alone_otherwise() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        let db = mostly_deleted(&path, "PRAGMA auto_vacuum = NONE");
        for (how, most) in [(GiveBack::Some, u64::MAX), (GiveBack::All, 10_000)] {
            let room = give_back_up_to(&db, &path, how, most).unwrap();
            assert!(room.freed_bytes == 0 && room.free_bytes > 1_500_000, "{room:?}");
        }
        let room = give_back(&db, &path, GiveBack::All).unwrap();
        assert!(room.freed_bytes > 1_500_000 && room.free_bytes < 8192, "{room:?}");
        assert_eq!(number(&db, "auto_vacuum").unwrap(), INCREMENTAL);
        assert!(whole(&db));
    }

    #[test]
    fn a_little_room_is_kept_for_the_records_to_come() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        let db = mostly_deleted(&path, CAN_SHRINK);
        give_back(&db, &path, GiveBack::All).unwrap();
        db.execute_batch(
            "INSERT INTO records SELECT id + 1, json FROM records;
             UPDATE records SET json = zeroblob(100) WHERE id = 21;",
        )
        .unwrap();
        let room = give_back(&db, &path, GiveBack::Some).unwrap();
        assert!(room.freed_bytes == 0 && room.free_bytes > 4096, "{room:?}");
        assert!(give_back(&db, &path, GiveBack::All).unwrap().freed_bytes > 4096);
    }

    #[test]
    fn while_someone_reads_the_file_stays_and_the_next_one_shrinks_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        let db = mostly_deleted(&path, CAN_SHRINK);
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM records;").unwrap();
        db.busy_timeout(Duration::ZERO).unwrap();
        let room = give_back(&db, &path, GiveBack::All).unwrap();
        assert!(room.free_bytes > 1_500_000, "{room:?}");
        assert!(whole(&reader) && whole(&db));
        reader.execute_batch("COMMIT").unwrap();
        drop((db, reader));
        assert!(fs::metadata(&path).unwrap().len() < 250_000);
    }
}
