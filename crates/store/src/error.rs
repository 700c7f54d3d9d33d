//! What can go wrong with the history, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;

use crate::lock_holder::LockHolder;
use crate::malformed;
use crate::postgres::{PostgresError, Why};

/// Permission of the group or of everyone to make and rename files in a directory (inode(7)).
pub(crate) const OTHERS_WRITE: u32 = 0o022;

/// A record that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Written by a newer goodput.
    #[error("it has format {found}, and this goodput knows up to {known}: use a newer goodput")]
    Newer {
        /// Format of the record.
        found: u32,
        /// Newest format that this program reads.
        known: u32,
    },
    /// Not a record, or one that was damaged.
    #[error("it is not a goodput record: {}", malformed::in_words(.0))]
    Malformed(serde_json::Error),
    /// Nothing, or blank lines.
    #[error("it is not a goodput record: it is empty")]
    Empty,
    /// Not even text.
    #[error("it is not a goodput record: it is not text")]
    Damaged,
}

impl From<serde_json::Error> for RecordError {
    /// Not as its source, which would add the parser's own words.
    fn from(why: serde_json::Error) -> Self {
        Self::Malformed(why)
    }
}

/// The history failed. Reports the operation, its object, the reason, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Neither `XDG_DATA_HOME` nor `HOME` names a directory for records.
    #[error(
        "no directory for records: neither XDG_DATA_HOME nor HOME is set to an absolute path; set one, or name a file \
         with --store"
    )]
    NoHome,
    /// Neither a file nor a database.
    #[error("can't keep records there: {why}; name a file, or postgres://USER@HOST/DATABASE")]
    NoPlace {
        /// Why not; without a password.
        why: String,
    },
    /// A database of PostgreSQL failed.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// The file or its directory can't be made or opened.
    #[error(
        "can't {doing} {}: {source}; name another file with --store, or set XDG_DATA_HOME to a writable directory",
        path.display()
    )]
    Unusable {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file exists, but can't be written.
    #[error(
        "can't {doing} {}: no permission to write there, or not a file; name another file with --store, or set \
         XDG_DATA_HOME to a writable directory",
        path.display()
    )]
    NoPermission {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The file is a symbolic link.
    #[error(
        "can't open {}: it is a symbolic link, and following it could write to another file; put the \
         file itself there, name another one with --store, or set XDG_DATA_HOME to another directory",
        path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Other users can put files into the directory.
    #[error(
        "can't keep records in {}: {}, name a file elsewhere with --store, or set XDG_DATA_HOME to a directory of your own",
        path.display(),
        distrust(*uid, *mode)
    )]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// Who owns it.
        uid: u32,
        /// Its permissions.
        mode: u32,
    },
    /// No room left.
    #[error(
        "can't {doing} {}: the disk is full; make room, name a file elsewhere with --store, or set XDG_DATA_HOME to \
         another disk",
        path.display()
    )]
    DiskFull {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// No room left, not even to delete.
    #[error("can't delete from {}: the disk is full, and {}", path.display(), why.in_words(path))]
    NoRoomToDelete {
        /// The file.
        path: PathBuf,
        /// Why it takes room.
        why: NoRoom,
    },
    /// Not an SQLite file, or a damaged one.
    #[error(
        "can't {doing} {}: the file is damaged or not an SQLite file; move it away and goodput \
         starts a new one",
        path.display()
    )]
    Corrupt {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// An SQLite file of another program.
    #[error(
        "{} is a database of another program; name another file with --store, or set XDG_DATA_HOME to another directory",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a newer goodput.
    #[error(
        "{} has schema {found}, and this goodput knows up to {known}: use a newer goodput",
        path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// Newest schema that this program knows.
        known: u32,
    },
    /// Another process held the file for too long.
    #[error("can't {doing} {}: {}", path.display(), locked(path, holder.as_ref()))]
    Busy {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Who held it, if the kernel says so.
        holder: Option<LockHolder>,
    },
    /// No record has this number.
    #[error("there is no record {id}; `goodput history` lists the existing ones")]
    UnknownId {
        /// The number asked for.
        id: i64,
    },
    /// A record in the history can't be read.
    #[error("can't read record {id}: {source}{}", what_to_do(source))]
    Unreadable {
        /// Its number.
        id: i64,
        /// Why.
        source: RecordError,
    },
    /// A record that could not be read back.
    #[error("can't keep the record: {source}; this is a bug in goodput, please report it")]
    Unkeepable {
        /// Why: mostly, JSON has no infinite numbers.
        source: RecordError,
    },
    /// Anything else that SQLite reports.
    #[error("can't {doing} {}: {source}", path.display())]
    Sqlite {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

/// Why it takes room to delete from a file on a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoom {
    /// Other processes use the file.
    Used,
    /// What was written last is in the log, and has to be copied into the file first.
    Log {
        /// Size of the log.
        bytes: u64,
    },
    /// An earlier goodput made the file, so that it can't get shorter in parts.
    Older,
}

impl NoRoom {
    fn in_words(self, path: &Path) -> String {
        let path = path.display();
        let elsewhere = format!(
            "or move {path} and {path}-wal to another disk, delete there (`goodput --store FILE history prune`), and move \
             them back"
        );
        match self {
            Self::Used => format!(
                "other programs use the history; end them (`fuser -v {path}` names them): alone, goodput needs no room"
            ),
            Self::Log { bytes } => format!(
                "what was written last is still in {path}-wal; make room for {}, {elsewhere}",
                goodput_model::Bytes(bytes)
            ),
            Self::Older => format!("its file is of an earlier goodput; make room, {elsewhere}"),
        }
    }
}

/// What to do about a record that can't be read, if its reason does not say so.
fn what_to_do(why: &RecordError) -> &'static str {
    match why {
        RecordError::Newer { .. } => "",
        RecordError::Malformed(_) | RecordError::Empty | RecordError::Damaged => {
            "; the other records are fine, and `goodput history import FILE` takes this one from a copy of its JSON"
        }
    }
}

/// Who keeps the file locked, and what to do.
fn locked(path: &Path, holder: Option<&LockHolder>) -> String {
    match holder {
        Some(holder) => {
            format!("{holder} keeps it locked; end that process, or try again when it is done")
        }
        None => format!(
            "another program keeps it locked; `fuser -v {0} {0}-shm` names it: end it, or try again when it is done",
            path.display()
        ),
    }
}

/// Who can replace files in the directory, and what to do.
fn distrust(uid: u32, mode: u32) -> String {
    if mode & OTHERS_WRITE == 0 {
        return format!("user {uid} owns it and can replace files in it; run goodput as that user");
    }
    format!("other users can replace files in it (mode {mode:04o}); run `chmod go-w` on it")
}

impl StoreError {
    /// Whether the history may take other records, and only not this one.
    pub fn is_of_one_record(&self) -> bool {
        match self {
            Self::Unkeepable { .. } => true,
            Self::Postgres(why) => matches!(why.why, Why::Other(_)),
            Self::Sqlite { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch)
            ),
            _ => false,
        }
    }

    /// Whether waiting may help: the database is away or has too much to do, or there is no room now.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Postgres(PostgresError { why, .. }) => {
                matches!(
                    why,
                    Why::Away(_) | Why::Late(_) | Why::Lost(_) | Why::Busy(_) | Why::Full(_)
                )
            }
            Self::Busy { .. } | Self::DiskFull { .. } => true,
            _ => false,
        }
    }

    /// Whether the disk is full.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, Self::DiskFull { .. })
    }

    /// Whether the file may be fine, and only can't be written.
    pub(crate) fn is_about_writing(&self) -> bool {
        match self {
            Self::DiskFull { .. } | Self::NoPermission { .. } => true,
            Self::Unusable { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ),
            _ => false,
        }
    }

    /// SQLite's error while `doing` something with `path`, in the user's terms.
    pub(crate) fn sqlite(doing: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        // Without room for the index of its log, SQLite can't even read.
        let extended = source.sqlite_error().map(|error| error.extended_code);
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull { doing, path },
            _ if extended == Some(SQLITE_IOERR_SHMSIZE) => Self::DiskFull { doing, path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { doing, path }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { holder: LockHolder::of(&path), doing, path }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::unwritable(doing, path, is_on_read_only)
            }
            _ => Self::Sqlite { doing, path, source },
        }
    }

    /// SQLite can't write `path`, for which it has one error.
    fn unwritable(
        doing: &'static str,
        path: PathBuf,
        is_on_read_only: impl Fn(&Path) -> bool,
    ) -> Self {
        match is_on_read_only(&path) {
            true => Self::Unusable { doing, path, source: Errno::ROFS.into() },
            false => Self::NoPermission { doing, path },
        }
    }

    /// The system's error while `doing` something with `path`.
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { doing, path }
            }
            _ => Self::Unusable { doing, path, source },
        }
    }
}

/// Whether a file, or its directory if it does not exist, is on a file system that is mounted read-only.
fn is_on_read_only(path: &Path) -> bool {
    let of =
        |path: &Path| statvfs(path).is_ok_and(|of| of.f_flag.contains(StatVfsMountFlags::RDONLY));
    of(path) || path.parent().is_some_and(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_file_system_is_told_from_a_lack_of_permission() {
        let of = |is_on_read_only: bool| {
            let path = PathBuf::from("/data/goodput/history.db");
            StoreError::unwritable("open", path, |_| is_on_read_only)
        };
        let (read_only, refused) = (of(true).to_string(), of(false).to_string());
        let words = "can't open /data/goodput/history.db: Read-only file system";
        assert!(read_only.starts_with(words), "{read_only}");
        assert!(refused.contains("no permission to write there"), "{refused}");
        assert!(of(true).is_about_writing() && of(false).is_about_writing());
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_on_read_only(&directory.path().join("history.db")));
    }

    #[test]
    fn a_refused_record_is_no_history_that_is_away() {
        let path = Path::new("/data/goodput/history.db");
        let of = |code| {
            let source = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            StoreError::sqlite("write to", path, source).is_of_one_record()
        };
        assert!(of(rusqlite::ffi::SQLITE_TOOBIG));
        assert!(!of(rusqlite::ffi::SQLITE_BUSY));
        assert!(!of(rusqlite::ffi::SQLITE_IOERR));
        let of = |why| {
            let place = "postgres://db/net".into();
            StoreError::Postgres(PostgresError { doing: "write to", place, why }).is_of_one_record()
        };
        let passes = |why| {
            let place = "postgres://db/net".into();
            StoreError::Postgres(PostgresError { doing: "open", place, why }).may_pass()
        };
        assert!(passes(Why::Away("connection refused".into())) && passes(Why::Late(6)));
        assert!(!passes(Why::Login("password authentication failed".into())));
        assert!(!StoreError::NoHome.may_pass());
        assert!(of(Why::Other("invalid byte sequence".into())));
        assert!(!of(Why::Late(6)));
        assert!(!of(Why::Away("connection refused".into())));
    }

    #[test]
    fn every_error_says_what_to_do() {
        let path = Path::new("/data/goodput/history.db");
        let denied = io::Error::from_raw_os_error(13);
        assert_eq!(
            StoreError::io("open", path, denied).to_string(),
            "can't open /data/goodput/history.db: Permission denied (os error 13); name another file with \
             --store, or set XDG_DATA_HOME to a writable directory"
        );
        let full = StoreError::io("open", path, io::Error::from_raw_os_error(28)).to_string();
        assert!(full.contains("the disk is full; make room"), "{full}");
        let no_room = rusqlite::ffi::Error::new(SQLITE_IOERR_SHMSIZE);
        let no_room = rusqlite::Error::SqliteFailure(no_room, None);
        assert_eq!(StoreError::sqlite("open", path, no_room).to_string(), full);
        let no_room = |why| StoreError::NoRoomToDelete { path: path.into(), why }.to_string();
        assert_eq!(
            no_room(NoRoom::Log { bytes: 4_100_000 }),
            "can't delete from /data/goodput/history.db: the disk is full, and what was written last is still in \
             /data/goodput/history.db-wal; make room for 4.10 MB, or move /data/goodput/history.db and \
             /data/goodput/history.db-wal to another disk, delete there (`goodput --store FILE history prune`), and move \
             them back"
        );
        assert!(no_room(NoRoom::Used).ends_with("alone, goodput needs no room"));
        assert!(no_room(NoRoom::Older).contains("make room, or move"));
        let busy = StoreError::Busy { doing: "open", path: path.into(), holder: None };
        assert_eq!(
            busy.to_string(),
            "can't open /data/goodput/history.db: another program keeps it locked; \
             `fuser -v /data/goodput/history.db /data/goodput/history.db-shm` names it: end it, or try again when it is done"
        );
        let newer = StoreError::NewerSchema { path: path.into(), found: 9, known: 1 }.to_string();
        assert!(newer.contains("has schema 9, and this goodput knows up to 1"), "{newer}");
    }
}
