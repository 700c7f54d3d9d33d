//! A file that others may write to or truncate while it is mapped: only the kernel ever reads the mapping.

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::io::{Errno, Result as SysResult};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The mapping of a whole file.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut std::ffi::c_void,
    len: usize,
}

impl Mapping {
    /// Maps the first `len` bytes, at least one. Fails if the file system does not map.
    #[expect(unsafe_code, reason = "mapping memory")]
    pub(crate) fn new(file: &OwnedFd, len: u64) -> SysResult<Self> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other.
        let start =
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        Ok(Self { start, len })
    }

    /// send(2) of up to `want` bytes from `offset`, with `flags` beside `MSG_NOSIGNAL`. `EFAULT` if the file can't be
    /// read there, or ends before.
    #[expect(unsafe_code, reason = "the bytes may change at any time, so no slice may show them")]
    pub(crate) fn send(
        &self,
        socket: &OwnedFd,
        offset: u64,
        want: usize,
        flags: i32,
    ) -> SysResult<usize> {
        let offset = (offset as usize).min(self.len);
        let want = want.min(self.len - offset);
        // SAFETY: the range lies within the mapping. Only the kernel reads it, and reports by an error
        // if there is nothing to read.
        let sent = unsafe {
            libc::send(
                socket.as_raw_fd(),
                self.start.cast::<u8>().add(offset).cast(),
                want,
                flags | libc::MSG_NOSIGNAL,
            )
        };
        usize::try_from(sent).map_err(|_| last_error())
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

impl Drop for Mapping {
    #[expect(unsafe_code, reason = "unmapping memory")]
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own. The kernel keeps the pages that it still sends.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}
