//! Receiving into a sink: recv(2) into a buffer, then write(2) to a file.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fsync};
use rustix::io::{Errno, write};

use crate::aligned::{ALIGNMENT_BYTES, AlignedBuffer};
use crate::error::MoveError;
use crate::flow::Flow;
use crate::storage::FileSink;
use crate::stream;

/// Receives to the end of the stream and writes all of it except the header to the sink. The buffer has room for `room`
/// bytes.
pub(crate) fn receive(flow: &Flow, sink: &FileSink, room: usize) -> Result<(), MoveError> {
    survive_size_limit();
    let mut storing = BufferedSink::new(flow, sink, room);
    let mut failure = None;
    let received = stream::receive(flow, storing.room(), |want| {
        let taken = flow.take(storing.space(want))?;
        if let Err(why) = storing.took(taken) {
            failure = Some(why);
            return Err(Errno::IO);
        }
        Ok(taken)
    });
    match failure {
        Some(why) => Err(why),
        None => received.and_then(|()| storing.finish()),
    }
}

/// A sink and the data that waits to be written to it.
struct BufferedSink<'a> {
    flow: &'a Flow,
    sink: &'a FileSink,
    buffer: AlignedBuffer,
    room: usize,
    filled: usize,
    /// Bytes of the header that are still to come.
    header: usize,
    written: u64,
    /// Whether the file's previous content has been deleted.
    is_emptied: bool,
}

impl<'a> BufferedSink<'a> {
    fn new(flow: &'a Flow, sink: &'a FileSink, room: usize) -> Self {
        let room = room.next_multiple_of(ALIGNMENT_BYTES);
        let buffer = AlignedBuffer::new(room);
        let header = flow.config.storage.header_bytes;
        let (filled, written, is_emptied) = (0, 0, false);
        Self { flow, sink, buffer, room, filled, header, written, is_emptied }
    }

    /// Most bytes of one read.
    fn room(&self) -> usize {
        self.room
    }

    /// Room to read up to `want` bytes; never empty, because a full buffer is written at once.
    fn space(&mut self, want: usize) -> &mut [u8] {
        let free = self.room - self.filled;
        let want = if self.header > 0 { want.min(self.header) } else { want };
        let from = self.filled;
        &mut self.buffer.room()[from..from + want.min(free)]
    }

    /// `taken` bytes were read into the space.
    fn took(&mut self, taken: usize) -> Result<(), MoveError> {
        if self.header > 0 {
            self.header -= taken;
            return Ok(());
        }
        self.filled += taken;
        // Past the page cache, only whole blocks can be written.
        if !self.sink.direct || self.filled == self.room { self.flush() } else { Ok(()) }
    }

    /// Writes the buffer out.
    fn flush(&mut self) -> Result<(), MoveError> {
        if let Some(allowance) = &self.sink.allowance {
            allowance.take(self.filled as u64).map_err(|why| self.failed(io::Error::other(why)))?;
        }
        if !self.is_emptied {
            self.sink.empty().map_err(|cause| self.failed(cause))?;
            self.is_emptied = true;
        }
        let mut at = 0;
        while at < self.filled {
            let bytes = &self.buffer.room()[at..self.filled];
            let counters = &self.flow.counters;
            match counters.sink.during(|| write(&self.sink.file, bytes)) {
                Ok(0) => return Err(self.failed(Errno::NOSPC)),
                Ok(written) => at += written,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_for_reader()?,
                Err(cause) => return Err(self.failed(cause)),
            }
            counters.called();
        }
        self.written += self.filled as u64;
        self.filled = 0;
        Ok(())
    }

    /// Waits until a pipe has room, as far as the stop lets it. Counts as time in the sink.
    fn wait_for_reader(&self) -> Result<(), MoveError> {
        if !self.flow.may_receive()? {
            let words = "its reader did not take all data in time";
            return Err(self.failed(io::Error::other(words)));
        }
        let wait = || self.flow.park_on(&self.sink.file, Some(PollFlags::OUT), None);
        self.flow.counters.sink.during(wait)
    }

    /// Writes the rest, and flushes it to the disk if requested.
    fn finish(&mut self) -> Result<(), MoveError> {
        if self.sink.direct && !self.filled.is_multiple_of(ALIGNMENT_BYTES) {
            let whole = self.filled / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
            let rest = self.buffer.room()[whole..self.filled].to_vec();
            self.filled = whole;
            self.flush()?;
            through_the_cache(&self.sink.file).map_err(|cause| self.failed(cause))?;
            self.buffer.room()[..rest.len()].copy_from_slice(&rest);
            self.filled = rest.len();
        }
        self.flush()?;
        if self.sink.fsync {
            let synced = self.flow.counters.sink.during(|| fsync(&self.sink.file));
            // A pipe or a terminal has no disk to flush to (fsync(2)).
            match synced {
                Ok(()) | Err(Errno::INVAL | Errno::ROFS) => {}
                Err(cause) => return Err(self.failed(cause)),
            }
        }
        Ok(())
    }

    fn failed(&self, cause: impl Into<io::Error>) -> MoveError {
        let (flow, name) = (self.flow.config.id, self.sink.name.clone());
        MoveError::Sink { flow, name, written: self.written, cause: cause.into() }
    }
}

/// Anything but a whole block goes through the page cache.
fn through_the_cache(file: &OwnedFd) -> Result<(), Errno> {
    fcntl_setfl(file, fcntl_getfl(file)? - OFlags::DIRECT)
}
/// Makes a write beyond the file size limit fail (`EFBIG`), instead of killing this process with a signal (`SIGXFSZ`,
/// setrlimit(2)).
#[expect(unsafe_code, reason = "no library ignores a signal")]
fn survive_size_limit() {
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
