//! send(2) straight from a mapped file, as a server does that maps its files instead of reading them.

use goodput_model::{Plan, Role, Source};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::Mover;
use crate::asleep::SleepMeter;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::limits::Needs;
use crate::mapping::Mapping;
use crate::pages::Pages;
use crate::storage::FileSource;
use crate::transfer::{self, FileSender, SendFailure, Sent};
use crate::{payload, stream};

/// Sends from a mapped memory file. Memory: for each sending flow a file of at least 1 MiB, in whole chunks. The kernel
/// copies from the page cache into the socket.
pub struct MmapSend;

impl Mover for MmapSend {
    fn id(&self) -> &'static str {
        "mmap-send"
    }

    fn summary(&self) -> &'static str {
        "send from a mapped file: one copy instead of the two of read and send"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Sender]
    }

    fn needs(&self, plan: &Plan, _role: Role) -> Needs {
        Needs::own_file(plan)
    }

    fn takes(&self, source: &Source) -> bool {
        *source != Source::Input
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        if let Some(source) = flow.config.storage.source.as_deref() {
            return transfer::send(flow, source, Mapped::new(flow, source)?);
        }
        let len = payload::file_len(flow.config.chunk);
        let mapped = payload::memory_file(&flow.config.framing, len)
            .and_then(|file| Pages::of_file(&file, len));
        let mapped = mapped.map_err(|cause| flow.failed("map the file to send from", cause))?;
        let mut offset = 0;
        stream::send(flow, |_at, want: usize| {
            // After a chunk that a full socket cut, the rest of the file may be shorter than the next chunk.
            if offset >= len {
                offset = 0;
            }
            let want = want.min(len - offset);
            let sent = send(&flow.socket, &mapped[offset..offset + want], SendFlags::NOSIGNAL)?;
            offset += sent;
            Ok(sent)
        })
    }
}

/// send(2) from a mapping of the source.
pub(super) struct Mapped<'a> {
    source: &'a FileSource,
    mapping: Mapping,
    asleep: SleepMeter,
}

impl<'a> Mapped<'a> {
    /// Maps the source, whose length is known.
    pub(super) fn new(flow: &Flow, source: &'a FileSource) -> Result<Self, MoveError> {
        let mapping = Mapping::new(&source.file, source.bytes.unwrap_or(0));
        let mapping = mapping.map_err(|cause| MoveError::Source {
            flow: flow.config.id,
            name: source.name.clone(),
            cause: cause.into(),
        })?;
        Ok(Self { source, mapping, asleep: SleepMeter::new(flow) })
    }

    /// Sends a part of the mapping, with `flags`.
    pub(super) fn send_part(
        &mut self,
        flow: &Flow,
        offset: u64,
        want: usize,
        flags: i32,
    ) -> Result<usize, SendFailure> {
        let call = || self.mapping.send(&flow.socket, offset, want, flags);
        self.asleep.during(flow, call).map_err(|cause| match cause {
            // The kernel reports the same error for an unreadable page and for a page beyond the end.
            Errno::FAULT if self.is_cut(offset, want) => SendFailure::Ended,
            Errno::FAULT => SendFailure::Source(Errno::IO),
            cause => SendFailure::Socket(cause),
        })
    }

    fn is_cut(&self, offset: u64, want: usize) -> bool {
        let now = rustix::fs::fstat(&self.source.file).map(|stat| stat.st_size as u64);
        now.is_ok_and(|bytes| bytes < offset + want as u64)
    }
}

impl FileSender for Mapped<'_> {
    fn send(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<Sent, SendFailure> {
        let bytes = self.send_part(flow, offset, want, 0)?;
        Ok(Sent { bytes, full: bytes < want })
    }
}
