//! A pipe that passes references to pages on: vmsplice(2) of memory into it, splice(2) out of it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Result as SysResult;
use rustix::pipe::{
    IoSliceRaw, PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
    vmsplice,
};

/// Size of a large pipe, bytes: the most that anyone may have by default (fs.pipe-max-size, pipe(7)).
const LARGE_PIPE_BYTES: usize = 1 << 20;
/// Most parts of one vmsplice(2): UIO_MAXIOV in include/uapi/linux/uio.h.
const MAX_PARTS: usize = 1024;

/// A pipe and how much is in it.
pub(crate) struct Pipe {
    /// Where it is read.
    pub(crate) out: OwnedFd,
    /// Where it is written.
    pub(crate) into: OwnedFd,
    /// Bytes in the pipe: a full socket may have left some.
    pub(crate) filled: usize,
}

impl Pipe {
    /// A pipe with slots for all pages of `chunk` bytes.
    pub(crate) fn holding(chunk: usize) -> io::Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        if fcntl_getpipe_size(&into)? < chunk {
            fcntl_setpipe_size(&into, chunk)?;
        }
        Ok(Self { out, into, filled: 0 })
    }

    /// A pipe that holds a chunk, and more if it is to be `large` and the kernel allows it.
    pub(crate) fn roomy(chunk: usize, large: bool) -> io::Result<Self> {
        let pipe = Self::holding(chunk)?;
        if large && fcntl_getpipe_size(&pipe.into)? < LARGE_PIPE_BYTES {
            // If the kernel refuses, the pipe keeps its size.
            let _ = fcntl_setpipe_size(&pipe.into, LARGE_PIPE_BYTES);
        }
        Ok(pipe)
    }

    /// How many chunks it has slots for, at least one: each chunk takes whole slots.
    pub(crate) fn chunks(&self, chunk: usize) -> usize {
        let page = rustix::param::page_size();
        let places = fcntl_getpipe_size(&self.into).unwrap_or(0) / page;
        (places / chunk.div_ceil(page)).clamp(1, MAX_PARTS)
    }

    /// Fills the empty pipe with as many pages as it has slots for.
    #[expect(unsafe_code, reason = "the kernel may read the pages after the call")]
    pub(crate) fn fill(&mut self, parts: &[IoSliceRaw<'_>]) -> SysResult<()> {
        // SAFETY: the pages are only ever read, by us and by the kernel. Once they are unmapped, the kernel keeps them
        // for as long as it needs them (see `Pages`).
        self.filled = unsafe { vmsplice(&self.into, parts, SpliceFlags::NONBLOCK)? };
        Ok(())
    }

    /// Moves up to `most` bytes from the pipe into a non-blocking socket, or another file that takes what a pipe has.
    pub(crate) fn empty_into(&mut self, target: &OwnedFd, most: usize) -> SysResult<usize> {
        let len = self.filled.min(most);
        let moved = splice(&self.out, None, target, None, len, SpliceFlags::NONBLOCK)?;
        self.filled -= moved;
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_with;

    use super::*;
    use crate::pages::Pages;

    #[test]
    fn a_pipe_holds_chunks_of_whole_and_of_broken_pages() {
        for chunk in [1, 4096, 70_001, 1 << 20] {
            let (pages, mut pipe) = (
                Pages::payload(&goodput_framing::goodput(), chunk).unwrap(),
                Pipe::holding(chunk).unwrap(),
            );
            let parts = repeat_with(|| IoSliceRaw::from_slice(&pages)).take(pipe.chunks(chunk));
            pipe.fill(&parts.collect::<Vec<_>>()).unwrap();
            assert_eq!(pipe.filled, chunk * pipe.chunks(chunk));
        }
    }
}
