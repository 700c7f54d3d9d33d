//! sendfile(2) from a memory file: the payload is never copied on its way out.

use goodput_model::{HostWork, Plan, Role, Source};
use rustix::fs::sendfile;
use rustix::io::Errno;

use super::Mover;
use crate::asleep::SleepMeter;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::limits::Needs;
use crate::storage::FileSource;
use crate::transfer::{self, FileSender, SendFailure, Sent};
use crate::{payload, stream};

/// Sends from the page cache. Memory: for each sending flow a file of at least 1 MiB, in whole chunks.
pub struct Sendfile;

impl Mover for Sendfile {
    fn id(&self) -> &'static str {
        "sendfile"
    }

    fn summary(&self) -> &'static str {
        "send straight from the page cache, without a copy"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Sender]
    }

    fn work(&self, _role: Role) -> HostWork {
        HostWork::PageReferences
    }

    fn needs(&self, plan: &Plan, _role: Role) -> Needs {
        Needs::own_file(plan)
    }

    fn takes(&self, source: &Source) -> bool {
        *source != Source::Input
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        if let Some(source) = flow.config.storage.source.as_deref() {
            return transfer::send(
                flow,
                source,
                FromFile { source, asleep: SleepMeter::new(flow) },
            );
        }
        let len = payload::file_len(flow.config.chunk);
        let file = payload::memory_file(&flow.config.framing, len)
            .map_err(|cause| flow.failed("make the file in memory to send from", cause))?;
        let mut offset = 0;
        stream::send(flow, |_at, want: usize| {
            // After a chunk that a full socket cut, the rest of the file may be shorter than the next chunk.
            if offset >= len as u64 {
                offset = 0;
            }
            let want = want.min(len - offset as usize);
            sendfile(&flow.socket, &file, Some(&mut offset), want)
        })
    }
}

/// sendfile(2) of the source.
struct FromFile<'a> {
    source: &'a FileSource,
    asleep: SleepMeter,
}

impl FileSender for FromFile<'_> {
    fn send(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<Sent, SendFailure> {
        let (mut at, file) = (offset, &self.source.file);
        let call = || sendfile(&flow.socket, file, Some(&mut at), want);
        match self.asleep.during(flow, call) {
            Ok(0) => Err(SendFailure::Ended),
            Ok(bytes) => Ok(Sent { bytes, full: bytes < want }),
            // Errors that only a file or its file system reports.
            Err(cause @ (Errno::IO | Errno::INVAL | Errno::STALE | Errno::OPNOTSUPP)) => {
                Err(SendFailure::Source(cause))
            }
            Err(cause) => Err(SendFailure::Socket(cause)),
        }
    }
}
