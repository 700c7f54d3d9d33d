//! The history: stores, lists and returns records.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use goodput_model::{BitRate, Record};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};

use crate::compat::{glance, read_record};
use crate::error::{OTHERS_WRITE, RecordError, StoreError};
use crate::schema::migrate;
use crate::search::{DELETE_ALL, DELETE_WATCHED, Names, SEARCH, Wanted, occurring};
use crate::watched::DELETE_SPENT;

/// How long to wait for another process that writes. Writing a record takes milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// In a directory with this bit only a file's owner may rename it (inode(7)).
const STICKY_BIT: u32 = 0o1000;

/// How many records of a kind and target are searched.
const MAX_SEARCHED_RECORDS: u32 = 50;

/// Bytes at each end of a record that a list looks at.
const GLANCE_BYTES: usize = 64;

/// The history, open.
#[derive(Debug)]
pub struct Store {
    pub(crate) db: Connection,
    path: PathBuf,
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Number of the record; never reused.
    pub id: i64,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// The kind of command that made it, as in the record's JSON: `test`, `compare`.
    pub kind: String,
    /// The target, as typed by the user.
    pub target: String,
    /// The record's main number.
    pub goodput: BitRate,
    /// Id of the limiting rule, or `none`.
    pub limit: String,
}

impl Store {
    /// Opens the history in the file `path`; makes it and its directories if they don't exist, for the user alone
    /// (mode 0700, as the XDG Base Directory Specification requires).
    ///
    /// The file is never reached through a link, and the directory belongs to this user or to root and
    /// is writable for nobody else.
    ///
    /// Errors: no permission, disk full, a link or a directory that others can change, the file is
    /// damaged, another program's, or of a newer goodput.
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
        Ok(Self { db, path: path.to_path_buf() })
    }

    /// Stores `record`; on return it is on disk. Returns its number.
    pub fn add(&self, record: &Record) -> Result<i64, StoreError> {
        let unkeepable = |source| StoreError::Unkeepable { source };
        let json = record.to_json().map_err(RecordError::from).map_err(unkeepable)?;
        read_record(&json).map_err(unkeepable)?;
        let kind = serde_json::to_value(record.kind).map_err(RecordError::from);
        let kind = kind.map_err(unkeepable)?;
        let insert = "INSERT INTO records (started, kind, target, goodput_bits_per_s, rule, json)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let columns = params![
            record.started,
            kind.as_str(),
            record.target,
            record.result.goodput_bits_per_s.0,
            record.verdict.limit,
            json
        ];
        self.db.execute(insert, columns).map_err(|source| self.failed("write to", source))?;
        Ok(self.db.last_insert_rowid())
    }

    /// The newest `limit` records, newest first.
    pub fn list(&self, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.search(&Wanted { limit, ..Wanted::default() })
    }

    /// The wanted records, newest first.
    pub fn search(&self, wanted: &Wanted) -> Result<Vec<Entry>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Entry>> {
            self.db.prepare(SEARCH)?.query_map(&wanted.parameters()[..], entry)?.collect()
        };
        read().map_err(|source| self.failed("read", source))
    }

    /// The targets and limits that occur in the history.
    pub fn names(&self) -> Result<Names, StoreError> {
        let read = |column| -> rusqlite::Result<Vec<String>> {
            let mut found = self.db.prepare(&occurring(column))?;
            found.query_map([], |row| row.get(0))?.collect()
        };
        let failed = |source| self.failed("read", source);
        Ok(Names {
            targets: read("target").map_err(failed)?,
            limits: read("rule").map_err(failed)?,
        })
    }

    /// The record with the number `id`.
    ///
    /// Errors: there is none, or it can't be read.
    pub fn get(&self, id: i64) -> Result<Record, StoreError> {
        let json: Option<Vec<u8>> = self
            .db
            // As bytes: the file may be damaged, and SQLite checks no text.
            .query_row("SELECT CAST(json AS BLOB) FROM records WHERE id = ?1", [id], |row| {
                row.get(0)
            })
            .optional()
            .map_err(|source| self.failed("read", source))?;
        let json = String::from_utf8(json.ok_or(StoreError::UnknownId { id })?);
        let read = match json {
            Ok(json) => read_record(&json),
            Err(_) => Err(RecordError::Damaged { part: "text" }),
        };
        read.map_err(|source| StoreError::Unreadable { id, source })
    }

    /// Whether the record with the number `id` can be read, as far as its first and last bytes say: for lists, which read
    /// no whole record.
    ///
    /// Errors: there is none, it is of a newer goodput, or it is visibly damaged.
    pub fn glance(&self, id: i64) -> Result<(), StoreError> {
        let (head, tail) = self.ends_of(id).map_err(|source| match source {
            rusqlite::Error::SqliteFailure(_, _) if !self.has(id) => StoreError::UnknownId { id },
            source => self.failed("read", source),
        })?;
        glance(&head, &tail).map_err(|source| StoreError::Unreadable { id, source })
    }

    /// The first and the last bytes of a record's JSON, without those between.
    fn ends_of(&self, id: i64) -> rusqlite::Result<(Vec<u8>, Vec<u8>)> {
        let json = self.db.blob_open("main", "records", "json", id, true)?;
        let part = |from: usize| {
            let mut bytes = vec![0; GLANCE_BYTES.min(json.len())];
            json.read_at_exact(&mut bytes, from).map(|()| bytes)
        };
        Ok((part(0)?, part(json.len().saturating_sub(GLANCE_BYTES))?))
    }

    fn has(&self, id: i64) -> bool {
        self.db.query_row("SELECT 1 FROM records WHERE id = ?1", [id], |_| Ok(())).is_ok()
    }

    /// The newest record of this kind and target that `fits`, among the last 50.
    ///
    /// Errors: one of them can't be read.
    pub fn newest(
        &self,
        kind: &str,
        target: &str,
        fits: impl Fn(&Record) -> bool,
    ) -> Result<Option<Record>, StoreError> {
        let select =
            "SELECT id FROM records WHERE kind = ?1 AND target = ?2 ORDER BY id DESC LIMIT ?3";
        let read = || -> rusqlite::Result<Vec<i64>> {
            let mut found = self.db.prepare(select)?;
            found
                .query_map(params![kind, target, MAX_SEARCHED_RECORDS], |row| row.get(0))?
                .collect()
        };
        for id in read().map_err(|source| self.failed("read", source))? {
            let record = self.get(id)?;
            if fits(&record) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Deletes the records that began before `started`, RFC 3339, UTC; only those of `goodput watch` if `watched` is set.
    /// Returns their number. Numbers are not reused. What watches spent in the last 24 hours stays known.
    pub fn delete_before(&self, started: &str, watched: bool) -> Result<usize, StoreError> {
        let failed = |source| self.failed("write to", source);
        let step = self.db.unchecked_transaction().map_err(failed)?;
        let delete = if watched { DELETE_WATCHED } else { DELETE_ALL };
        let deleted = step.execute(delete, [started]).map_err(failed)?;
        step.execute("DELETE FROM watched WHERE started < ?1", [started]).map_err(failed)?;
        step.execute(DELETE_SPENT, [started]).map_err(failed)?;
        step.commit().map_err(failed)?;
        Ok(deleted)
    }

    pub(crate) fn failed(&self, doing: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::sqlite(doing, &self.path, source)
    }
}

fn make_directory(path: &Path) -> Result<(), StoreError> {
    let Some(directory) = path.parent() else { return Ok(()) };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| StoreError::io("make the directory", directory, source))
}

/// Another user who may rename files in the directory could give this user another file to write to.
fn trust_directory(path: &Path) -> Result<(), StoreError> {
    let Some(directory) = directory_of(path) else { return Ok(()) };
    let metadata = fs::metadata(directory);
    let metadata = metadata.map_err(|source| StoreError::io("look at", directory, source))?;
    let ours = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
    let shared = metadata.mode() & OTHERS_WRITE != 0 && metadata.mode() & STICKY_BIT == 0;
    if ours && !shared {
        return Ok(());
    }
    let (path, uid, mode) = (directory.to_path_buf(), metadata.uid(), metadata.mode() & 0o7777);
    Err(StoreError::Untrusted { path, uid, mode })
}

/// Makes the file for this user alone, if it doesn't exist; SQLite gives its journals the mode of the file. An
/// existing file is not opened here: closing it again would drop the locks that other connections of this process hold
/// on it (POSIX record locks belong to the process).
fn make_file(path: &Path) -> Result<(), StoreError> {
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match new {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::io("make", path, error))
        }
        _ if path.is_symlink() => Err(StoreError::Link { path: path.to_path_buf() }),
        _ => Ok(()),
    }
}

/// The path with the links of its directories resolved: SQLite follows none at all, and another user could only make the
/// last one.
fn real_path(path: &Path) -> Result<PathBuf, StoreError> {
    let (Some(directory), Some(name)) = (directory_of(path), path.file_name()) else {
        return Ok(path.to_path_buf());
    };
    let real = fs::canonicalize(directory);
    Ok(real.map_err(|source| StoreError::io("look at", directory, source))?.join(name))
}

/// The directory of the file, even if it is the working directory.
fn directory_of(path: &Path) -> Option<&Path> {
    let directory = path.parent()?;
    Some(if directory.as_os_str().is_empty() { Path::new(".") } else { directory })
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

fn entry(row: &Row) -> rusqlite::Result<Entry> {
    Ok(Entry {
        id: row.get(0)?,
        started: row.get(1)?,
        kind: row.get(2)?,
        target: row.get(3)?,
        goodput: BitRate(row.get(4)?),
        limit: row.get(5)?,
    })
}
