//! The history in one file of SQLite. Several goodput processes may read and write it at once.

mod days;
mod file;
mod full;
mod old;
mod read_only;
mod records;
mod room;
mod schema;
mod search;
mod watched;

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row};

use crate::database::Database;
use crate::days::{Counted, Part};
use crate::entry::Entry;
use crate::error::StoreError;
use crate::kept::{Added, Kept};
use crate::old::Old;
use crate::room::{GiveBack, Room};
use crate::wanted::{Names, Wanted, occurring};
use crate::watched::{Series, Tested, ToldChange, Watched};
pub(crate) use full::make_room;

use file::{identity, is_missing, make_directory, make_file, real_path, trust_directory};
use schema::migrate;
use search::Indexes;

/// How long to wait for another process that writes. Writing a record takes milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The history in a file, open.
#[derive(Debug)]
pub(crate) struct Sqlite {
    db: Connection,
    path: PathBuf,
    /// Device and number of the file; `None` if there is no file.
    file: Option<(u64, u64)>,
    /// Whether something failed that a full disk or another process does not explain.
    has_failed: Cell<bool>,
    /// Why a file of an older goodput was not brought to this schema; `None`: it has it.
    not_migrated: Option<StoreError>,
}

impl Sqlite {
    /// As [`crate::Store::open`] says.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        make_directory(path)?;
        trust_directory(path)?;
        make_file(path)?;
        let failed = |source| StoreError::sqlite("open", path, source);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(real_path(path)?, flags).map_err(failed)?;
        db.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        migrate(&mut db, path)?;
        use_write_ahead_log(&db).map_err(failed)?;
        db.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        Ok(Self::of(db, path))
    }

    /// As [`crate::Store::open_to_read`] says.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        if is_missing(path) {
            return Self::empty(path);
        }
        let why = match Self::open(path) {
            Err(why) if why.is_about_writing() => why,
            opened => return opened,
        };
        // A file that was made just before, on a full disk, has nothing in it.
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::empty(path),
            Ok(file) if file.len() == 0 => return Self::empty(path),
            _ => {}
        }
        trust_directory(path)?;
        let Some(read_only::Opened { db, is_current }) = read_only::open(&real_path(path)?) else {
            return Err(why);
        };
        db.busy_timeout(BUSY_TIMEOUT).map_err(|source| StoreError::sqlite("open", path, source))?;
        let not_migrated = (!is_current).then_some(why);
        Ok(Self { not_migrated, ..Self::of(db, path) })
    }

    /// A history without a file.
    fn empty(path: &Path) -> Result<Self, StoreError> {
        let db = Connection::open_in_memory();
        let mut db = db.map_err(|source| StoreError::sqlite("open", path, source))?;
        migrate(&mut db, path)?;
        Ok(Self { file: None, ..Self::of(db, path) })
    }

    fn of(db: Connection, path: &Path) -> Self {
        let file = fs::metadata(path).ok().as_ref().map(identity);
        let (has_failed, not_migrated) = (Cell::new(false), None);
        Self { db, path: path.to_path_buf(), file, has_failed, not_migrated }
    }

    fn failed(&self, doing: &'static str, source: rusqlite::Error) -> StoreError {
        let why = StoreError::sqlite(doing, &self.path, source);
        let passes = matches!(why, StoreError::DiskFull { .. } | StoreError::Busy { .. });
        self.has_failed.set(self.has_failed.get() || !passes);
        why
    }

    fn write(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<(), StoreError> {
        let written = self.db.execute(sql, parameters).map(drop);
        written.map_err(|source| self.failed("write to", source))
    }

    fn all<T>(
        &self,
        select: &str,
        parameters: impl rusqlite::Params,
        one: impl FnMut(&Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let read =
            || self.db.prepare(select)?.query_map(parameters, one)?.collect::<Result<_, _>>();
        read().map_err(|source| self.failed("read", source))
    }

    /// Deletes in parts, each of which makes room for the log of a larger one. If the disk is full in between, it is some of
    /// it. Adds the number of records to `deleted`, also of those before a failure.
    fn delete_in_parts(&self, old: &Old, deleted: &mut usize) -> rusqlite::Result<()> {
        let (before, mut most) = (*deleted, full::FIRST_PART);
        while old::is_any(&self.db, old)? {
            let part = old::first_part(&self.db, old, most)?;
            match old::delete(&self.db, part.as_ref().unwrap_or(old)) {
                Err(why) if room::is_full(&why) && *deleted > before => break,
                part => *deleted += part?,
            }
            // What this can't give back, the next part may need all the same.
            let _ = room::give_back(&self.db, &self.path, GiveBack::All);
            most = most.saturating_mul(4);
        }
        Ok(())
    }

    fn told(&self, select: &str, text: &str, most: usize) -> Result<Vec<ToldChange>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.all(select, rusqlite::params![text, most], |row| {
            Ok(ToldChange { target: row.get(0)?, event: row.get(1)?, of_host: None })
        })
    }
}

impl Database for Sqlite {
    fn is_in_place(&self) -> bool {
        self.file.is_some() && fs::metadata(&self.path).ok().as_ref().map(identity) == self.file
    }

    fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    fn is_read_without(&self) -> Option<&StoreError> {
        self.not_migrated.as_ref()
    }

    fn add(&self, kept: &Kept, watched: Option<&Watched>) -> Result<i64, StoreError> {
        let failed = |source| self.failed("write to", source);
        let step = self.db.unchecked_transaction().map_err(failed)?;
        let id = records::insert(&step, kept).map_err(failed)?;
        if let Some(watched) = watched {
            watched::insert(&step, id, kept, watched).map_err(failed)?;
        }
        step.commit().map_err(failed)?;
        Ok(id)
    }

    fn add_once(&self, kept: &Kept, key: &str) -> Result<Added, StoreError> {
        records::insert_once(&self.db, kept, key).map_err(|source| self.failed("write to", source))
    }

    fn with_key(&self, key: &str) -> Result<Option<i64>, StoreError> {
        records::with_key(&self.db, key).map_err(|source| self.failed("read", source))
    }

    fn begun_at(&self, started: &str, target: &str) -> Result<Vec<i64>, StoreError> {
        self.all(records::BEGUN_AT, rusqlite::params![started, target], |row| row.get(0))
    }

    fn search(&self, wanted: &Wanted) -> Result<Vec<Entry>, StoreError> {
        let indexes = if self.not_migrated.is_none() { Indexes::ByTime } else { Indexes::ByNumber };
        let (sql, parameters) = search::query(wanted, indexes);
        self.all(&sql, &parameters[..], records::entry)
    }

    fn targets_with(&self, text: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let read = || search::targets_with(&self.db, text, most);
        read().map_err(|source| self.failed("read", source))
    }

    fn names(&self) -> Result<Names, StoreError> {
        let read = |table, column| self.all(&search::names(table, column), [], |row| row.get(0));
        Ok(Names {
            targets: read("records", "target")?,
            limits: read("records", "rule")?,
            measured_by: read("measured", "measured_by")?,
        })
    }

    fn json(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        records::json(&self.db, id).map_err(|source| self.failed("read", source))
    }

    fn outline(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        records::outline(&self.db, id).map_err(|source| self.failed("read", source))
    }

    fn first_part(&self, old: &Old, most: u32) -> Result<Option<Old>, StoreError> {
        old::first_part(&self.db, old, most).map_err(|source| self.failed("read", source))
    }

    fn delete(&self, old: &Old, deleted: &mut usize) -> Result<(), StoreError> {
        let done = match old::delete(&self.db, old) {
            Err(why) if room::is_full(&why) => self.delete_in_parts(old, deleted),
            done => done.map(|records| *deleted += records),
        };
        done.map_err(|source| self.failed("write to", source))
    }

    fn give_back(&self, how: GiveBack) -> Result<Option<Room>, StoreError> {
        let given = room::give_back(&self.db, &self.path, how);
        given.map(Some).map_err(|source| self.failed("write to", source))
    }

    fn days(&self, part: &Part) -> Result<Vec<Counted>, StoreError> {
        let Part { target, kind, from, until, most } = part;
        self.all(&days::counts(), rusqlite::params![target, kind, from, until, most], days::counted)
    }

    fn add_days(&self, counted: &[Counted]) -> Result<(), StoreError> {
        days::add(&self.db, counted).map_err(|source| self.failed("write to", source))
    }

    fn delete_days_before(&self, day: &str) -> Result<usize, StoreError> {
        days::delete_before(&self.db, day).map_err(|source| self.failed("write to", source))
    }

    fn targets_with_days(&self, most: u32) -> Result<Vec<String>, StoreError> {
        self.all(&format!("{} LIMIT {most}", occurring("days", "target")), [], |row| row.get(0))
    }

    fn tests_of(&self, series: &Series, most: usize) -> Result<Vec<Tested>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let of = rusqlite::params![series.target, series.plan, most];
        self.all(watched::TESTS, of, watched::tested)
    }

    fn mark_change(&self, record: i64, told: &ToldChange) -> Result<(), StoreError> {
        let marked = watched::mark_change(&self.db, record, told);
        marked.map_err(|source| self.failed("write to", source))
    }

    fn changes(&self, text: &str, most: usize) -> Result<Vec<ToldChange>, StoreError> {
        self.told(watched::CHANGES, text, most)
    }

    fn keep_shift(&self, record: i64, quantity: &str, told: &ToldChange) -> Result<(), StoreError> {
        self.write(
            "INSERT OR REPLACE INTO shifts (record, quantity, target, event) VALUES (?1, ?2, ?3, ?4)",
            rusqlite::params![record, quantity, told.target, told.event],
        )
    }

    fn shifts(&self, text: &str, most: usize) -> Result<Vec<ToldChange>, StoreError> {
        self.told(watched::SHIFTS, text, most)
    }

    fn gone_since(&self, series: &Series) -> Result<Option<String>, StoreError> {
        let select = "SELECT since FROM gone WHERE target = ?1 AND plan = ?2";
        let since =
            self.db.query_row(select, [&series.target, &series.plan], |row| row.get(0)).optional();
        since.map_err(|source| self.failed("read", source))
    }

    fn set_gone(&self, series: &Series, since: Option<&str>) -> Result<(), StoreError> {
        let Series { target, plan } = series;
        match since {
            Some(since) => self.write(
                "INSERT OR REPLACE INTO gone (target, plan, since) VALUES (?1, ?2, ?3)",
                [target, plan, since],
            ),
            None => self.write("DELETE FROM gone WHERE target = ?1 AND plan = ?2", [target, plan]),
        }
    }

    fn spend(&self, target: &str, started: &str, bytes: i64) -> Result<i64, StoreError> {
        let insert = "INSERT INTO spent (target, started, bytes) VALUES (?1, ?2, ?3)";
        self.write(insert, rusqlite::params![target, started, bytes])?;
        Ok(self.db.last_insert_rowid())
    }

    fn settle(&self, note: i64, bytes: i64) -> Result<(), StoreError> {
        self.write("UPDATE spent SET bytes = ?1 WHERE id = ?2", [bytes, note])
    }

    fn spent(&self, target: &str, from: &str) -> Result<Vec<(String, i64)>, StoreError> {
        self.all(watched::SPENT, [from, target], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn watched_times(&self) -> Result<Vec<(i64, String)>, StoreError> {
        let select = "SELECT record, started FROM watched ORDER BY record";
        self.all(select, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn watched_among(&self, ids: &[i64]) -> Result<Vec<i64>, StoreError> {
        let select = "SELECT record FROM watched WHERE record IN (SELECT value FROM json_each(?1))";
        let ids = serde_json::Value::from(ids).to_string();
        self.all(select, [ids], |row| row.get(0))
    }

    fn series(&self) -> Result<Vec<Series>, StoreError> {
        self.all("SELECT target, plan FROM series ORDER BY id", [], |row| {
            Ok(Series { target: row.get(0)?, plan: row.get(1)? })
        })
    }
}

/// Lets others read while one process writes. If the file system doesn't support this, SQLite keeps its older journal,
/// which is equally safe.
///
/// Nor does the file change its journal while others use it (SQLITE_BUSY, for which this does not wait). Whoever opens it
/// next tries again.
fn use_write_ahead_log(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(Duration::ZERO)?;
    let switched = db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
    match switched.as_ref().err().and_then(rusqlite::Error::sqlite_error_code) {
        Some(ErrorCode::DatabaseBusy) => Ok(()),
        _ => switched,
    }
}
