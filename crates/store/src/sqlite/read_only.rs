//! Reading a history that can't be written.
//!
//! SQLite reads a file with a write-ahead log by an index of that log, which it makes beside the file: on a full disk or a
//! read-only file system it can't. There are three ways around that, and none of them writes.
//!
//! A file of an older goodput lacks tables, which are empty then: they are made in memory, beside the file.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::schema::{State, add_in_memory, state};

/// A history that is only read.
pub(super) struct Opened {
    pub db: Connection,
    /// Whether the file has this goodput's schema.
    pub is_current: bool,
}

/// Opens the file; `None` if it can't be read, or has a schema that this program would have to change first.
pub(super) fn open(path: &Path) -> Option<Opened> {
    let log = has_log(path);
    let ways: [&dyn Fn() -> rusqlite::Result<Connection>; 2] = match log {
        // The index of another process, or what one left.
        true => [&|| as_it_is(path), &|| with_own_index(path)],
        false => [&|| as_it_is(path), &|| without_log(path)],
    };
    ways.into_iter().find_map(|way| read(way().ok()?))
}

/// Whether it can be read at all shows when its schema is looked at.
fn read(db: Connection) -> Option<Opened> {
    match state(&db).ok()? {
        State::Current => Some(Opened { db, is_current: true }),
        State::LacksAdditions => {
            add_in_memory(&db).ok()?;
            Some(Opened { db, is_current: false })
        }
        State::Old => None,
    }
}

/// Whether there is a log with something in it.
fn has_log(path: &Path) -> bool {
    let log = with_end(path, "-wal");
    fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

fn with_end(path: &Path, end: &str) -> OsString {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name
}

/// By an index that is there already.
fn as_it_is(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, flags())
}

/// By an index in memory, which SQLite makes for a connection that has the file for itself. It has: nobody else can write
/// either. The locks that would make sure of it need a file that can be written.
fn with_own_index(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags_and_vfs(path, flags(), c"unix-none")?;
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(db)
}

/// Without a log, of which nothing is left: as a file that nobody changes.
fn without_log(path: &Path) -> rusqlite::Result<Connection> {
    let url = [b"file:", &escaped(path.as_os_str())[..], b"?immutable=1"].concat();
    Connection::open_with_flags(OsString::from_vec(url), flags() | OpenFlags::SQLITE_OPEN_URI)
}

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// A path within a URL (RFC 3986, section 2.1).
fn escaped(path: &OsStr) -> Vec<u8> {
    let one = |byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => vec![*byte],
        other => format!("%{other:02X}").into_bytes(),
    };
    path.as_bytes().iter().flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_can_be_in_a_url() {
        let path = OsStr::from_bytes(b"/home/a b/50%?#\xff/h.db");
        assert_eq!(escaped(path), b"/home/a%20b/50%25%3F%23%FF/h.db");
    }
}
