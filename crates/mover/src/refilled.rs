//! A small buffer that one read fills again and again.
//!
//! Nobody keeps the payload of a flow, so its parts may take each other's place. Each byte is copied to user space all
//! the same, but the target stays in the CPU's first-level cache, and one call reads all that has arrived. Fewer calls
//! also mean fewer acknowledgements: the kernel sends one at the end of a call (`tcp_cleanup_rbuf`, net/ipv4/tcp.c).

use std::io::Error;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::{Errno, Result as SysResult};

/// Half of the smallest first-level data cache of usual CPUs, 32 KiB, so that it stays there beside what is read.
const BUFFER_BYTES: usize = 16 << 10;

/// How often one read may fill the buffer. With twice as many, the reader of a single flow slept and woke more often.
const PARTS: usize = 64;

/// Most bytes of one read.
pub(crate) const READ_BYTES: usize = PARTS * BUFFER_BYTES;

/// The buffer. It is small enough for the stack of a flow.
pub(crate) struct Refilled([u8; BUFFER_BYTES]);

impl Refilled {
    /// A buffer of zeros.
    pub(crate) fn new() -> Self {
        Self([0; BUFFER_BYTES])
    }

    /// Reads up to `want` bytes, at most [`READ_BYTES`], from a socket in non-blocking mode. Zero bytes are the end of
    /// the stream.
    #[expect(unsafe_code, reason = "no slices can be the same memory")]
    pub(crate) fn read(&mut self, socket: impl AsFd, want: usize) -> SysResult<usize> {
        let (parts, count) = self.parts(want);
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: each part is the buffer or its beginning, which lives longer than the call and has no other user.
        let read = unsafe { libc::readv(socket, parts.as_ptr(), count as libc::c_int) };
        usize::try_from(read)
            .map_err(|_| Errno::from_io_error(&Error::last_os_error()).unwrap_or(Errno::IO))
    }

    /// The vector for `want` bytes, and its length: only the last part is shorter than the buffer.
    fn parts(&mut self, want: usize) -> ([libc::iovec; PARTS], usize) {
        let want = want.min(READ_BYTES);
        let whole = libc::iovec { iov_base: self.0.as_mut_ptr().cast(), iov_len: BUFFER_BYTES };
        let mut parts = [whole; PARTS];
        let count = want.div_ceil(BUFFER_BYTES);
        if let Some(last) = count.checked_sub(1) {
            parts[last].iov_len = want - last * BUFFER_BYTES;
        }
        (parts, count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (UnixStream, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        (near, far)
    }

    #[test]
    fn a_read_gets_more_than_the_buffer_holds() {
        let ((mut near, far), mut buffer) = (pair(), Refilled::new());
        near.write_all(&[1; 2 * BUFFER_BYTES]).unwrap();
        near.write_all(&[2; 100]).unwrap();
        let mut read = 0;
        while let Ok(more) = buffer.read(&far, READ_BYTES) {
            read += more;
        }
        assert_eq!(read, 2 * BUFFER_BYTES + 100);
        assert!(buffer.0[..100].iter().all(|byte| *byte == 2), "the last bytes lie over the first");
    }

    #[test]
    fn a_read_gets_no_more_than_it_wants() {
        let ((mut near, far), mut buffer) = (pair(), Refilled::new());
        near.write_all(&[1; BUFFER_BYTES + 10]).unwrap();
        assert_eq!(buffer.read(&far, BUFFER_BYTES + 3), Ok(BUFFER_BYTES + 3));
        assert_eq!(buffer.read(&far, usize::MAX), Ok(7));
        assert_eq!(buffer.read(&far, 1), Err(Errno::AGAIN));
        drop(near);
        assert_eq!(buffer.read(&far, 1), Ok(0));
    }

    #[test]
    fn only_the_last_part_is_short() {
        let mut buffer = Refilled::new();
        let lengths = |want| {
            let (parts, count) = buffer.parts(want);
            parts[..count].iter().map(|part| part.iov_len).collect::<Vec<_>>()
        };
        let [none, short, whole, both, all] =
            [0, 1, BUFFER_BYTES, BUFFER_BYTES + 1, usize::MAX].map(lengths);
        assert!(none.is_empty());
        assert_eq!((short, whole), (vec![1], vec![BUFFER_BYTES]));
        assert_eq!(both, [BUFFER_BYTES, 1]);
        assert_eq!(all, [BUFFER_BYTES; PARTS]);
    }
}
