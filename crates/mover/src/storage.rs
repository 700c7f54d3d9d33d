//! What a flow sends instead of memory, and where it writes received payload.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use goodput_framing::Framing;
use goodput_model::Bytes;
use rustix::fs::{FileType, MemfdFlags, fstat, ftruncate, memfd_create};

use crate::awaited::Awaited;
use crate::limits::available_bytes;
use crate::payload;

/// The storage of one flow; by default only memory.
#[derive(Debug, Clone, Default)]
pub struct FlowStorage {
    /// What a sender sends; `None`: random bytes in memory, repeatedly.
    pub source: Option<Arc<FileSource>>,
    /// Where a receiver writes the payload; `None`: nowhere.
    pub sink: Option<Arc<FileSink>>,
    /// Length of a header before each transfer of the source, bytes. A receiver leaves this many first bytes out of its
    /// sink.
    pub header_bytes: usize,
    /// Whether the header is written with `MSG_MORE` (send(2)).
    pub header_more: bool,
    /// Whether `TCP_CORK` (tcp(7)) is set from before each transfer to its end.
    pub cork: bool,
}

/// An open file, or a pipe, to send from.
#[derive(Debug)]
pub struct FileSource {
    /// Open for reading. A pipe is in non-blocking mode.
    pub file: OwnedFd,
    /// Its name in errors.
    pub name: String,
    /// Its length when the test began, at least 1; `None` if unknown, as for a pipe, which can't be rewound.
    pub bytes: Option<u64>,
    /// Whether it is sent repeatedly until the limit or the stop.
    pub again: bool,
}

/// An open file, or a pipe, to write to.
#[derive(Debug)]
pub struct FileSink {
    /// Open for writing. A pipe is in non-blocking mode.
    pub file: OwnedFd,
    /// Its name in errors.
    pub name: String,
    /// Whether it was opened with `O_DIRECT` (open(2)).
    pub direct: bool,
    /// Whether it is flushed to the disk at the end (fsync(2)).
    pub fsync: bool,
    /// Asked before anything is written, if the file is not the user's own.
    pub allowance: Option<Arc<dyn Allowance>>,
}

impl FileSink {
    /// Deletes the previous content of the file, once there is something to write. A pipe or a device has none.
    pub fn empty(&self) -> io::Result<()> {
        let kind = FileType::from_raw_mode(fstat(&self.file)?.st_mode);
        match kind {
            FileType::RegularFile => Ok(ftruncate(&self.file, 0)?),
            _ => Ok(()),
        }
    }
}

/// Limits what is written to a sink.
pub trait Allowance: std::fmt::Debug + Send + Sync {
    /// This many more bytes are about to be written. If they must not be written, returns why, in words.
    fn take(&self, bytes: u64) -> Result<(), String>;
}

impl FileSource {
    /// A memory file of `bytes` bytes of payload, to send once or, with `again`, repeatedly. Fails if memory is short:
    /// if memory ran out, the kernel would kill some program. Also fails once nobody waits for it any longer.
    pub fn memory(bytes: u64, again: bool, awaited: &Awaited) -> io::Result<Self> {
        if let Some(available) = available_bytes().filter(|available| bytes > *available) {
            let words =
                format!("this host has {} available; choose a smaller --size", Bytes(available));
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, words));
        }
        let file = memfd_create(c"goodput-source", MemfdFlags::CLOEXEC)?;
        payload::write_to(&file, &Framing::default(), bytes, || awaited.check())?;
        Ok(Self { file, name: "in memory".into(), bytes: Some(bytes), again })
    }
}

/// The path under which an open file can be opened again (proc(5)).
pub fn path_of(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waiter;

    #[test]
    fn a_file_in_memory_that_no_host_has_room_for_is_refused() {
        let awaited = Waiter::default().awaited();
        let error = FileSource::memory(u64::MAX, false, &awaited).expect_err("not so much");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("available"), "{error}");
    }

    #[test]
    fn a_file_in_memory_has_the_length_that_was_asked_for() {
        let waiter = Waiter::default();
        for bytes in [1, 1 << 20, (3 << 20) + 7] {
            let source = FileSource::memory(bytes, false, &waiter.awaited()).unwrap();
            assert_eq!(rustix::fs::fstat(&source.file).unwrap().st_size as u64, bytes);
        }
    }
}
