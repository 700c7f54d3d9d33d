//! vmsplice(2) of user pages into a pipe, splice(2) of the pipe into the socket: the payload is never copied on its way
//! out.
//!
//! A pipe has one slot per page, and a call costs the same however much it moves. So a pipe is filled with as many
//! chunks as it has slots for.

use std::io;
use std::iter::repeat_with;

use goodput_model::{HostWork, Plan, Role, Source};
use rustix::io::{Errno, Result as SysResult};
use rustix::pipe::{IoSliceRaw, SpliceFlags, splice};

use super::{Mover, check_kernel, check_stream};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::pages::Pages;
use crate::pipe::Pipe;
use crate::storage::FileSource;
use crate::stream;
use crate::transfer::{self, FileSender, SendFailure, Sent};

/// How many flows get a large pipe; the others get one that holds a chunk. All pipes of a user share 64 MiB by default
/// (fs.pipe-user-pages-soft); beyond this, new pipes have almost no slots.
const LARGE_PIPE_FLOWS: u16 = 16;

/// Sends through a pipe that holds at least one chunk. Memory: one chunk shared by all sending flows.
pub struct Splice;

impl Mover for Splice {
    fn id(&self) -> &'static str {
        "splice"
    }

    fn summary(&self) -> &'static str {
        "send pages of memory through a pipe (vmsplice, splice), without a copy"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Sender]
    }

    fn work(&self, _role: Role) -> HostWork {
        HostWork::PageReferences
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_stream(self, plan)?;
        let chunk = plan.chunk_bytes.0 as usize;
        Pipe::holding(chunk).map(drop).map_err(|cause| Unsupported {
            mover: self.id().into(),
            why: format!("no pipe can hold a chunk of {chunk} bytes: {cause}"),
            needs: needs(),
        })?;
        check_kernel(self, "vmsplice and splice", "2.6.17", trial)
    }

    fn needs(&self, plan: &Plan, role: Role) -> Needs {
        Needs { descriptors: 2, pipe_bytes: plan.chunk_bytes.0, ..Needs::chunk(plan, role) }
    }

    fn takes(&self, _source: &Source) -> bool {
        true
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let chunk = flow.config.chunk;
        if let Some(source) = flow.config.storage.source.as_deref() {
            let pipe = Pipe::holding(chunk).map_err(|cause| no_pipe(flow, &cause))?;
            return transfer::send(flow, source, FromFile { source, pipe });
        }
        let pages = Pages::payload(&flow.config.framing, chunk)
            .map_err(|cause| flow.failed("make the pages to send from", cause))?;
        let pipe = Pipe::roomy(chunk, flow.config.id < LARGE_PIPE_FLOWS)
            .map_err(|cause| no_pipe(flow, &cause))?;
        let count = pipe.chunks(chunk);
        let parts: Vec<_> = repeat_with(|| IoSliceRaw::from_slice(&pages)).take(count).collect();
        let mut writer = FromMemory { flow, pages: &pages, parts: &parts, pipe };
        stream::send_pieces(flow, chunk * count, |at, want| writer.write(at, want))
    }
}

fn no_pipe(flow: &Flow, cause: &io::Error) -> MoveError {
    let cause = io::Error::new(cause.kind(), format!("{cause}; {}", needs()));
    MoveError::from_system(flow.config.id, "make a pipe for a chunk", cause)
}

/// Makes both calls with nothing to move: a kernel that has them succeeds.
fn trial() -> io::Result<()> {
    let mut pipe = Pipe::holding(1)?;
    pipe.fill(&[])?;
    splice(&pipe.out, None, &pipe.into, None, 0, SpliceFlags::NONBLOCK)?;
    Ok(())
}

/// What a larger pipe requires (pipe(7)).
fn needs() -> String {
    let sysctl = "/proc/sys/fs/pipe-max-size";
    let limit = std::fs::read_to_string(sysctl).unwrap_or_else(|cause| cause.to_string());
    format!(
        "choose a --chunk within sysctl fs.pipe-max-size, which is {}, or fewer flows because of fs.pipe-user-pages-soft and descriptors, or raise these limits",
        limit.trim()
    )
}

/// vmsplice(2) of the same chunk, several times, into the pipe, then splice(2) into the socket.
struct FromMemory<'a> {
    flow: &'a Flow,
    pages: &'a [u8],
    /// The chunk, repeated as often as the pipe has slots for it.
    parts: &'a [IoSliceRaw<'a>],
    pipe: Pipe,
}

impl FromMemory<'_> {
    /// Writes the rest of the pipe, then whole chunks, or a part of one if no more is wanted. The first byte written is
    /// at offset `at` of a chunk.
    fn write(&mut self, at: usize, want: usize) -> SysResult<usize> {
        let mut written = 0;
        while written < want {
            if self.pipe.filled == 0 {
                self.fill((at + written) % self.pages.len(), want - written)?;
            }
            match self.pipe.empty_into(&self.flow.socket, want - written) {
                Ok(moved) => written += moved,
                Err(Errno::AGAIN | Errno::INTR) if written > 0 => break,
                Err(cause) => return Err(cause),
            }
            if self.pipe.filled > 0 {
                break;
            }
        }
        Ok(written)
    }

    fn fill(&mut self, at: usize, want: usize) -> SysResult<()> {
        self.flow.counters.called();
        let end = self.pages.len().min(at + want);
        match want / self.pages.len() {
            _ if at > 0 => self.pipe.fill(&[IoSliceRaw::from_slice(&self.pages[at..end])]),
            0 => self.pipe.fill(&[IoSliceRaw::from_slice(&self.pages[..end])]),
            whole => self.pipe.fill(&self.parts[..whole.min(self.parts.len())]),
        }
    }
}

/// splice(2) of the source into the pipe, then into the socket.
struct FromFile<'a> {
    source: &'a FileSource,
    pipe: Pipe,
}

impl FromFile<'_> {
    fn fill(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<(), SendFailure> {
        let (mut at, flags) = (offset, SpliceFlags::NONBLOCK);
        let filled = flow.counters.source.during(|| {
            let at = self.source.bytes.map(|_| &mut at);
            splice(&self.source.file, at, &self.pipe.into, None, want, flags)
        });
        flow.counters.called();
        match filled.map_err(SendFailure::Source)? {
            0 => Err(SendFailure::Ended),
            filled => {
                self.pipe.filled = filled;
                Ok(())
            }
        }
    }
}

impl FileSender for FromFile<'_> {
    fn send(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<Sent, SendFailure> {
        if self.pipe.filled == 0 {
            self.fill(flow, offset, want)?;
        }
        let offered = self.pipe.filled.min(want);
        let bytes = self.pipe.empty_into(&flow.socket, offered).map_err(SendFailure::Socket)?;
        Ok(Sent { bytes, full: bytes < offered })
    }
}
