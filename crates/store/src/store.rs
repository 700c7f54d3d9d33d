//! The history: stores, lists and returns records.

use std::cell::Cell;
use std::fmt;
use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use goodput_model::{BitRate, Direction, Record, Transport, answer};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};

use crate::compat::{knows, read_record};
use crate::error::{OTHERS_WRITE, RecordError, StoreError};
use crate::read_only;
use crate::schema::migrate;
use crate::search::{DELETE_ALL, DELETE_SPENT, Names, TARGETS, Wanted, occurring};

/// How long to wait for another process that writes. Writing a record takes milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// In a directory with this bit only a file's owner may rename it (inode(7)).
const STICKY_BIT: u32 = 0o1000;

/// How many records of a kind and target are searched.
const MAX_SEARCHED_RECORDS: u32 = 50;

/// The history, open.
#[derive(Debug)]
pub struct Store {
    pub(crate) db: Connection,
    path: PathBuf,
    /// Device and number of the file.
    file: Option<(u64, u64)>,
    /// Whether something failed that a full disk or another process does not explain.
    has_failed: Cell<bool>,
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
    /// Format of the record.
    pub format: u32,
    /// How it was measured; `None` if an older goodput kept it.
    pub traffic: Option<Traffic>,
    /// What a command with several runs found, in a line; `None` of one with a single run, whose answer is its goodput,
    /// and of what an older goodput kept.
    pub answer: Option<String>,
}

/// What makes results of one target comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// `tcp` or `udp`, as in the record's JSON.
    pub transport: String,
    /// `send`, `reverse` or `both`, as in the record's JSON.
    pub direction: String,
    /// Flows of each direction.
    pub flows: u32,
}

impl fmt::Display for Traffic {
    /// `TCP reverse, 4 flows`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flows, .. } = self;
        write!(f, "{}, {flows} flow{}", self.way(), if *flows == 1 { "" } else { "s" })
    }
}

impl Traffic {
    /// `TCP reverse`.
    pub fn way(&self) -> String {
        let read = |text: &str| serde_json::Value::from(text);
        let transport = serde_json::from_value::<Transport>(read(&self.transport));
        let direction = serde_json::from_value::<Direction>(read(&self.direction));
        // What a newer goodput wrote stays as it is.
        let transport = transport.map_or_else(|_| self.transport.clone(), |one| one.to_string());
        let direction = direction.map_or_else(|_| self.direction.clone(), |one| one.to_string());
        format!("{transport} {direction}")
    }
}

impl Entry {
    /// Whether this program reads records of this format. Damage shows only when the record is read.
    ///
    /// Errors: a newer goodput wrote it.
    pub fn readable(&self) -> Result<(), RecordError> {
        knows(self.format)
    }
}

/// The newest of some records, as far as they can be read.
#[derive(Debug)]
pub struct Newest {
    /// The newest that fits.
    pub record: Option<Record>,
    /// Why newer ones can't be read, the newest first. Any of them may fit.
    pub unread: Vec<StoreError>,
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
        Ok(Self::of(db, path))
    }

    /// Opens the history to read it. Like [`Store::open`], but if it can't be written (a full disk, a file system that is
    /// read-only), it is read as it is, with all that was ever stored. If there is none, it is empty.
    ///
    /// Errors: as those of [`Store::open`], and a file of an older schema that can't be written.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
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
        let db = read_only::open(&real_path(path)?).ok_or(why)?;
        db.busy_timeout(BUSY_TIMEOUT).map_err(|source| StoreError::sqlite("open", path, source))?;
        Ok(Self::of(db, path))
    }

    /// A history without a file.
    fn empty(path: &Path) -> Result<Self, StoreError> {
        let db = Connection::open_in_memory();
        let mut db = db.map_err(|source| StoreError::sqlite("open", path, source))?;
        migrate(&mut db, path)?;
        Ok(Self::of(db, path))
    }

    fn of(db: Connection, path: &Path) -> Self {
        let file = fs::metadata(path).ok().as_ref().map(identity);
        Self { db, path: path.to_path_buf(), file, has_failed: Cell::new(false) }
    }

    /// Whether the open file is still the one at its path.
    pub fn is_in_place(&self) -> bool {
        self.file.is_some() && fs::metadata(&self.path).ok().as_ref().map(identity) == self.file
    }

    /// Whether something failed since it was opened that waiting does not help against, such as damage.
    pub fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// Stores `record`; on return it is on disk. Returns its number.
    pub fn add(&self, record: &Record) -> Result<i64, StoreError> {
        let failed = |source| self.failed("write to", source);
        let step = self.db.unchecked_transaction().map_err(failed)?;
        let id = self.insert(record)?;
        step.commit().map_err(failed)?;
        Ok(id)
    }

    /// The same, within a step of the caller.
    pub(crate) fn insert(&self, record: &Record) -> Result<i64, StoreError> {
        let unkeepable = |source| StoreError::Unkeepable { source };
        let json = record.to_readable_json().map_err(RecordError::from).map_err(unkeepable)?;
        let kind = serde_json::to_value(record.kind).map_err(RecordError::from);
        let kind = kind.map_err(unkeepable)?;
        let insert =
            "INSERT INTO records (started, kind, target, goodput_bits_per_s, rule, json, format)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let columns = params![
            record.started,
            kind.as_str(),
            record.target,
            record.result.goodput_bits_per_s.0,
            record.verdict.limit,
            json,
            record.format
        ];
        let failed = |source| self.failed("write to", source);
        self.db.execute(insert, columns).map_err(failed)?;
        let id = self.db.last_insert_rowid();
        describe(&self.db, id, record).map_err(failed)?;
        Ok(id)
    }

    /// The newest `limit` records, newest first.
    pub fn list(&self, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.search(&Wanted { limit, ..Wanted::default() })
    }

    /// The wanted records, newest first.
    pub fn search(&self, wanted: &Wanted) -> Result<Vec<Entry>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Entry>> {
            let Some(wanted) = self.narrowed(wanted)? else { return Ok(Vec::new()) };
            self.db.prepare(&wanted.query())?.query_map(&wanted.parameters()[..], entry)?.collect()
        };
        read().map_err(|source| self.failed("read", source))
    }

    /// A search for a text, as the search for the one target that has it; `None` if no target has it. If several have
    /// it, the search stays as it is: from the newest record on, it soon finds enough.
    fn narrowed(&self, wanted: &Wanted) -> rusqlite::Result<Option<Wanted>> {
        let (Some(text), None) = (&wanted.text, &wanted.target) else {
            return Ok(Some(wanted.clone()));
        };
        // As SQLite's lower().
        let text = text.to_ascii_lowercase();
        let mut only = None;
        let mut all = self.db.prepare(TARGETS)?;
        for target in all.query_map([], |row| row.get::<_, String>(0))? {
            let target = target?;
            if target.to_ascii_lowercase().contains(&text) && only.replace(target).is_some() {
                return Ok(Some(wanted.clone()));
            }
        }
        Ok(only.map(|target| Wanted { target: Some(target), ..wanted.clone() }))
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
            Err(_) => Err(RecordError::Damaged),
        };
        read.map_err(|source| StoreError::Unreadable { id, source })
    }

    /// The newest record of this kind and target that `fits`, among the last 50. Those that can't be read hide no other.
    ///
    /// Errors: the history can't be read.
    pub fn newest(
        &self,
        kind: &str,
        target: &str,
        fits: impl Fn(&Record) -> bool,
    ) -> Result<Newest, StoreError> {
        let [kind, target] = [kind, target].map(|name| Some(name.to_owned()));
        let wanted = Wanted { kind, target, limit: MAX_SEARCHED_RECORDS, ..Wanted::default() };
        let mut unread = Vec::new();
        for entry in self.search(&wanted)? {
            match self.get(entry.id) {
                Ok(record) if fits(&record) => return Ok(Newest { record: Some(record), unread }),
                // Another process may have deleted it meanwhile.
                Ok(_) | Err(StoreError::UnknownId { .. }) => {}
                Err(why @ (StoreError::Unreadable { .. } | StoreError::Corrupt { .. })) => {
                    unread.push(why);
                }
                Err(why) => return Err(why),
            }
        }
        Ok(Newest { record: None, unread })
    }

    /// Deletes the records that began before `started`, RFC 3339, UTC. Returns their number. Numbers are not reused. What
    /// watches spent in the last 24 hours stays known.
    pub fn delete_before(&self, started: &str) -> Result<usize, StoreError> {
        let failed = |source| self.failed("write to", source);
        let step = self.db.unchecked_transaction().map_err(failed)?;
        let deleted = step.execute(DELETE_ALL, [started]).map_err(failed)?;
        step.execute("DELETE FROM watched WHERE started < ?1", [started]).map_err(failed)?;
        step.execute(DELETE_SPENT, [started]).map_err(failed)?;
        step.commit().map_err(failed)?;
        Ok(deleted)
    }

    pub(crate) fn failed(&self, doing: &'static str, source: rusqlite::Error) -> StoreError {
        let why = StoreError::sqlite(doing, &self.path, source);
        let passes = matches!(why, StoreError::DiskFull { .. } | StoreError::Busy { .. });
        self.has_failed.set(self.has_failed.get() || !passes);
        why
    }
}

/// What makes a file the same, whatever its name.
fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
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

/// Keeps what a list shows of a record beside its columns.
fn describe(db: &Connection, id: i64, record: &Record) -> rusqlite::Result<()> {
    let text = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let plan = &record.plan;
    let [transport, direction] =
        [serde_json::to_value(plan.transport), serde_json::to_value(plan.direction)].map(text);
    let insert = "INSERT INTO described (record, transport, direction, flows, answer)
                  VALUES (?1, ?2, ?3, ?4, ?5)";
    db.execute(insert, params![id, transport, direction, plan.flows, answer(record)])?;
    Ok(())
}

fn traffic(row: &Row) -> rusqlite::Result<Option<Traffic>> {
    let Some(transport) = row.get(7)? else { return Ok(None) };
    // A number that no goodput writes is none that it measured with.
    let flows = row.get::<_, i64>(9)?.try_into().unwrap_or(0);
    Ok(Some(Traffic { transport, direction: row.get(8)?, flows }))
}

fn entry(row: &Row) -> rusqlite::Result<Entry> {
    Ok(Entry {
        id: row.get(0)?,
        started: row.get(1)?,
        kind: row.get(2)?,
        target: row.get(3)?,
        goodput: BitRate(row.get(4)?),
        limit: row.get(5)?,
        // A number that no goodput writes is no format that this one knows.
        format: row.get::<_, i64>(6)?.try_into().unwrap_or(u32::MAX),
        traffic: traffic(row)?,
        answer: row.get(10)?,
    })
}
