//! Who keeps a file locked, as the kernel lists it.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use goodput_model::plain_char;
use rustix::fs::{major, minor};

/// The byte that a writer locks in the index of a write-ahead log. Readers lock others, for writing, too, as they set the
/// marks of what they read (sqlite.org/walformat.html, "WAL Locks": `WAL_WRITE_LOCK`).
const WRITE_LOCK: u64 = 120;

/// A process that keeps a file locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    pid: u32,
    /// The name of its program; none if it has just ended.
    name: Option<String>,
}

impl LockHolder {
    /// The process, other than this one, that keeps a database of SQLite from being written; none if the kernel lists none,
    /// such as one on another host or in another container.
    pub(crate) fn of(database: &Path) -> Option<Self> {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let mut files = [("", None), ("-shm", Some(WRITE_LOCK))].into_iter();
        let pid = files.find_map(|(end, byte)| {
            let mut file = OsString::from(database);
            file.push(end);
            let file = fs::metadata(file).ok()?;
            writer(&locks, (file.dev(), file.ino()), byte, std::process::id())
        })?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        let name = name.map(|name| name.trim_end().chars().map(plain_char).collect());
        Some(Self { pid, name })
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}

/// The process, other than `own`, that has a lock for writing of this device and inode, at `byte` if given. A line is `1: POSIX ADVISORY WRITE
/// PID MAJOR:MINOR:INODE START END`, with the device in hexadecimal; one that only waits has an arrow (proc_locks(5)).
fn writer(locks: &str, (device, inode): (u64, u64), byte: Option<u64>, own: u32) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    let mut writers = locks.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_of_it = words.next()? != "->" && words.nth(1)? == "WRITE";
        let pid = words.next()?.parse().ok()?;
        let is_of_file = words.next()? == file;
        let (start, end) = (words.next()?.parse().ok()?, words.next()?.parse().unwrap_or(u64::MAX));
        let is_there = byte.is_none_or(|byte| (start..=end).contains(&byte));
        (is_of_it && is_of_file && is_there && pid != own).then_some(pid)
    });
    writers.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    #[test]
    fn the_writer_is_found_among_readers_and_those_who_wait() {
        let file = (makedev(0xfd, 1), 77);
        for (lines, expected) in [
            ("1: POSIX  ADVISORY  WRITE 12 fd:01:77 120 120\n", Some(12)),
            ("1: OFDLCK ADVISORY  WRITE -1 fd:01:77 120 120\n", None),
            ("1: POSIX  ADVISORY  READ 12 fd:01:77 124 124\n", None),
            ("1: POSIX  ADVISORY  WRITE 13 fd:01:77 124 124\n", None),
            (
                "1: POSIX ADVISORY WRITE 13 fd:01:77 121 127\n2: POSIX ADVISORY WRITE 9 fd:01:77 120 120",
                Some(9),
            ),
            ("1: -> POSIX  ADVISORY  WRITE 12 fd:01:77 120 120\n", None),
            ("1: POSIX  ADVISORY  WRITE 12 fd:01:78 120 120\n", None),
            ("1: POSIX  ADVISORY  WRITE 12 08:01:77 120 120\n", None),
            (
                "1: POSIX  ADVISORY  WRITE 1 fd:01:77 0 EOF\n2: POSIX ADVISORY WRITE 9 fd:01:77 0 EOF",
                Some(9),
            ),
            ("1:\n\nnonsense", None),
        ] {
            assert_eq!(writer(lines, file, Some(WRITE_LOCK), 1), expected, "{lines}");
        }
        let other = "1: POSIX  ADVISORY  WRITE 13 fd:01:77 124 124\n";
        assert_eq!(writer(other, file, None, 1), Some(13), "of the database, each counts");
    }
}
