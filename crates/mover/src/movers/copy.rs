//! The plain way: send(2) from one buffer, recv(2) into another.

use goodput_model::Source;

use super::Mover;
use crate::buffer_pool::BUFFER_BYTES;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::low_water::LowWater;
use crate::pages::Pages;
use crate::refilled::{READ_BYTES, Refilled};
use crate::storage::FileSource;
use crate::stream::{self, ShortRead};
use crate::transfer::{self, FileSender, SendFailure, Sent};
use crate::{chunks, storing};

/// Most bytes of one read of payload that somebody looks at, or that a requester may have to decode.
const KEPT_BYTES: usize = 64 << 10;

/// Copies between user space and the kernel. Memory: one chunk shared by all sending flows; 16 KiB for each receiving
/// flow, or 64 KiB if the payload comes in bodies.
pub struct Copy;

impl Mover for Copy {
    fn id(&self) -> &'static str {
        "copy"
    }

    fn summary(&self) -> &'static str {
        "send and receive through a buffer; received bytes are copied into it again and again"
    }

    fn takes(&self, _source: &Source) -> bool {
        true
    }

    fn stores(&self) -> bool {
        true
    }

    fn decodes(&self) -> bool {
        true
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        send(flow)
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        receive(flow)
    }
}

/// Writes a byte stream from a buffer.
pub(super) fn send(flow: &Flow) -> Result<(), MoveError> {
    if let Some(source) = flow.config.storage.source.as_deref() {
        return transfer::send(flow, source, Copying::new(source, flow.config.chunk));
    }
    if let Some(header) = flow.config.framing.chunk_header() {
        return chunks::send(flow, header);
    }
    let chunk = Pages::payload(&flow.config.framing, flow.config.chunk)
        .map_err(|cause| flow.failed("make the buffer to send from", cause))?;
    stream::send(flow, |at, want| flow.put(&chunk[at..at + want]))
}

/// Reads a byte stream, however it was sent.
pub(super) fn receive(flow: &Flow) -> Result<(), MoveError> {
    if let Some(sink) = flow.config.storage.sink.as_deref() {
        return storing::receive(flow, sink, flow.config.chunk.max(BUFFER_BYTES));
    }
    let (mark, short) = (LowWater::default(), ShortRead::EmptiedSocket);
    if flow.config.tap.is_some() || flow.config.bodies.is_some() {
        let mut buffer = vec![0; KEPT_BYTES];
        return stream::receive_with(flow, KEPT_BYTES, mark, short, |want| {
            let taken = flow.take(&mut buffer[..want])?;
            flow.show(&buffer[..taken]);
            Ok(taken)
        });
    }
    let mut buffer = Refilled::new();
    stream::receive_with(flow, READ_BYTES, mark, short, |want| buffer.read(&flow.socket, want))
}

/// Reads the source into a buffer with read(2) and sends the buffer with send(2).
struct Copying<'a> {
    source: &'a FileSource,
    buffer: Vec<u8>,
    /// The part of the buffer that is not sent yet.
    waiting: std::ops::Range<usize>,
}

impl<'a> Copying<'a> {
    fn new(source: &'a FileSource, chunk: usize) -> Self {
        Self { source, buffer: vec![0; chunk], waiting: 0..0 }
    }

    fn read(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<(), SendFailure> {
        let (file, room) = (&self.source.file, &mut self.buffer[..want]);
        let read = flow.counters.source.during(|| match self.source.bytes {
            Some(_) => rustix::io::pread(file, room, offset),
            None => rustix::io::read(file, room),
        });
        flow.counters.called();
        match read.map_err(SendFailure::Source)? {
            0 => Err(SendFailure::Ended),
            read => {
                self.waiting = 0..read;
                Ok(())
            }
        }
    }
}

impl FileSender for Copying<'_> {
    fn send(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<Sent, SendFailure> {
        if self.waiting.is_empty() {
            self.read(flow, offset, want)?;
        }
        let part =
            &self.buffer[self.waiting.start..self.waiting.end.min(self.waiting.start + want)];
        let sent = flow.put(part).map_err(SendFailure::Socket)?;
        self.waiting.start += sent;
        Ok(Sent { bytes: sent, full: sent < part.len() })
    }
}
