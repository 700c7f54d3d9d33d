//! The page cache of a file: how much of the file is in memory, dropping it, reading it.

use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use goodput_model::{BitRate, Known};
use rustix::fs::{Access, Advice, AtFlags, CWD, accessat, fadvise, fstat, fsync};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::awaited::Awaited;

/// Bytes whose pages are queried at a time: the answer has one byte per page.
const WINDOW_BYTES: u64 = 1 << 30;

/// The result of reading a file alone.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadAlone {
    /// Bytes that were read.
    pub bytes: u64,
    /// How long it took.
    pub time: Duration,
    /// Whether the end of the file was reached within the time limit.
    pub whole: bool,
}

impl ReadAlone {
    /// Its rate; missing if nothing was read.
    pub fn rate(&self) -> Known<BitRate> {
        let seconds = self.time.as_secs_f64();
        if self.bytes == 0 || seconds <= 0.0 {
            return Known::missing("nothing was read");
        }
        Known::Value(BitRate(self.bytes as f64 * 8.0 / seconds))
    }
}

/// Reads the first `bytes` of a file, `chunk` bytes at a time, for `limit` at most, as long as the result is awaited.
pub fn read_alone(
    file: &OwnedFd,
    bytes: u64,
    chunk: usize,
    limit: Duration,
    awaited: &Awaited,
) -> io::Result<ReadAlone> {
    let mut buffer = vec![0; chunk];
    let (began, mut at) = (Instant::now(), 0);
    while at < bytes && began.elapsed() < limit {
        awaited.check()?;
        match rustix::io::pread(file, &mut buffer, at) {
            Ok(0) => break,
            Ok(read) => at += read as u64,
            Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Ok(ReadAlone { bytes: at, time: began.elapsed(), whole: at >= bytes })
}

/// Asks the kernel to drop a file from the page cache (posix_fadvise(2)). Written data is brought to the disk first,
/// because only clean pages are dropped. Pages that another process has mapped or locked stay.
pub fn drop_cached(file: &OwnedFd) -> io::Result<()> {
    // A range without a length reaches to the end of the file.
    drop_part(file, &(0..0))
}

/// The same for a part of a file.
pub(crate) fn drop_part(file: &OwnedFd, part: &Range<u64>) -> io::Result<()> {
    match fsync(file) {
        Ok(()) | Err(Errno::INVAL | Errno::ROFS) => {}
        Err(cause) => return Err(cause.into()),
    }
    let bytes = NonZeroU64::new(part.end.saturating_sub(part.start));
    Ok(fadvise(file, part.start, bytes, Advice::DontNeed)?)
}

/// Share of the first `bytes` of a file that is in the page cache (mincore(2)), percent. The kernel reports it only to
/// those who may write to the file (`can_do_mincore`, mm/mincore.c); to others it reports all pages as resident.
pub fn resident_percent(file: &OwnedFd, bytes: u64) -> Known<f64> {
    if bytes == 0 {
        return Known::missing("the file is empty");
    }
    if !may_ask(file) {
        return Known::missing("the kernel reports it only to the owner of the file");
    }
    let page = rustix::param::page_size() as u64;
    let (mut resident, mut at) = (0, 0);
    while at < bytes {
        let window = WINDOW_BYTES.min(bytes - at);
        match resident_pages(file, at, window as usize) {
            Ok(pages) => resident += pages,
            Err(cause) => return Known::missing(format!("the kernel refuses mincore(2): {cause}")),
        }
        at += window;
    }
    Known::Value(resident as f64 / bytes.div_ceil(page) as f64 * 100.0)
}

fn may_ask(file: &OwnedFd) -> bool {
    let user = rustix::process::geteuid();
    let owns = fstat(file).is_ok_and(|stat| stat.st_uid == user.as_raw());
    let path = crate::storage::path_of(file);
    user.is_root() || owns || accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

#[expect(unsafe_code, reason = "mincore(2) asks about a mapping")]
fn resident_pages(file: &OwnedFd, offset: u64, len: usize) -> io::Result<u64> {
    let page = rustix::param::page_size();
    let mut pages = vec![0u8; len.div_ceil(page)];
    let (access, kind) = (ProtFlags::READ, MapFlags::SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice overlaps no other; nobody reads it.
    let start = unsafe { mmap(std::ptr::null_mut(), len, access, kind, file, offset)? };
    // SAFETY: the mapping is ours, and `pages` has a byte for each of its pages.
    let asked = unsafe { libc::mincore(start, len, pages.as_mut_ptr()) };
    let cause = io::Error::last_os_error();
    // SAFETY: nothing refers to the mapping.
    unsafe { munmap(start, len)? };
    // Only the lowest bit is defined.
    if asked == 0 { Ok(pages.iter().filter(|p| **p & 1 == 1).count() as u64) } else { Err(cause) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileSource, Waiter};

    #[test]
    fn a_file_in_memory_is_in_memory() {
        let waiter = Waiter::default();
        let source = FileSource::memory(300_000, false, &waiter.awaited()).unwrap();
        assert_eq!(resident_percent(&source.file, 300_000), Known::Value(100.0));
        assert!(resident_percent(&source.file, 0).value().is_none());
        let (minute, awaited) = (Duration::from_secs(60), waiter.awaited());
        let read = || read_alone(&source.file, 300_000, 4096, minute, &awaited);
        let whole = read().unwrap();
        assert!(whole.whole && whole.bytes == 300_000, "{whole:?}");
        assert!(whole.rate().value().is_some());
        drop(waiter);
        assert_eq!(read().unwrap_err().kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn the_time_to_read_has_an_end() {
        let waiter = Waiter::default();
        let source = FileSource::memory(300_000, false, &waiter.awaited()).unwrap();
        let read = read_alone(&source.file, 300_000, 4096, Duration::ZERO, &waiter.awaited());
        let read = read.unwrap();
        assert_eq!((read.bytes, read.whole), (0, false));
        assert!(read.rate().value().is_none());
    }
}
