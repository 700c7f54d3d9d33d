//! The bytes that are sent: random, so that nothing on the way can compress them.

use std::os::fd::OwnedFd;

use goodput_model::Framing;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, Result as SysResult};

/// Least length of a file to send from, bytes. Long enough that pages still queued in the socket
/// are seldom those being sent again, short enough for the memory of many flows.
const FILE_BYTES: usize = 1 << 20;

/// `len` random bytes.
pub(crate) fn random(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rand::fill(bytes.as_mut_slice());
    bytes
}

/// What `len` bytes to send with `framing` begin with, so that no receiver takes them for something
/// else; the rest is random.
///
/// iperf2's looks for a header in the first bytes of a stream, and nuttcp's for counters of its own at
/// bytes 24 to 31 behind a marker. What the real senders of iperf2 and ttcp begin with is no header.
pub(crate) fn lead(framing: &Framing) -> &'static [u8] {
    match framing {
        Framing::Goodput | Framing::Iperf3 { .. } => b"",
        Framing::Iperf2 { .. } => b"01234567890123456789012345678901",
        Framing::Nuttcp { .. } => b" !\"#$%&'\0\0\0\0\0\0\0\x0001234567\0\0\0\0\0\0\0\0",
        Framing::Ttcp => b" !\"#$%&'()*+,-./0123456789:;<=>?",
    }
}

/// How long a file to send `chunk` bytes at a time from is: whole chunks, at least 1 MiB.
pub(crate) fn file_len(chunk: usize) -> usize {
    FILE_BYTES.next_multiple_of(chunk)
}

/// A file of `len` random bytes that has no name and lives in memory only.
pub(crate) fn memory_file(len: usize) -> SysResult<OwnedFd> {
    let file = memfd_create(c"goodput-payload", MemfdFlags::CLOEXEC)?;
    let bytes = random(len);
    let mut written = 0;
    while written < len {
        match rustix::io::write(&file, &bytes[written..]) {
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(file)
}
