//! The loop of all movers that send a file; a mover only provides its way to send a part of it.

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, send as send_bytes};

use crate::bodies::{Begun, Uploads};
use crate::error::MoveError;
use crate::flow::Flow;
use crate::pace::Pacer;
use crate::payload;
use crate::storage::FileSource;
use crate::stream;

/// A way to send a file.
pub(crate) trait FileSender {
    /// Sends up to `want` bytes, at least one, of the file from `offset`, without waiting for the socket. A pipe
    /// ignores the offset.
    fn send(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<Sent, SendFailure>;

    /// Waits, after `EAGAIN` or for room in a full socket, until a retry is worthwhile. Counts as blocked.
    fn wait(&mut self, flow: &Flow) -> Result<(), MoveError> {
        flow.wait_writable()
    }

    /// Waits, as far as the stop lets it, until the socket reports no more about what was sent.
    fn settle(&mut self, _flow: &Flow) -> Result<(), MoveError> {
        Ok(())
    }

    /// The flow continues on another socket.
    fn go_over(&mut self, _flow: &Flow) -> Result<(), MoveError> {
        Ok(())
    }
}

/// The result of a call.
pub(crate) struct Sent {
    /// Bytes that the socket took.
    pub(crate) bytes: usize,
    /// Whether the socket is full, so that another call would only fail.
    pub(crate) full: bool,
}

/// Why nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// The socket did not take the bytes.
    Socket(Errno),
    /// The source did not provide the bytes; `EAGAIN` if a pipe is empty.
    Source(Errno),
    /// The source ends here.
    Ended,
}

/// How a transfer ended.
enum Transfer {
    /// All was sent.
    Whole,
    /// The peer, the stop or the source ended it.
    Cut,
}

/// Sends the source once, or repeatedly until the limit or the stop; then ends the stream.
pub(crate) fn send(
    flow: &Flow,
    source: &FileSource,
    mut way: impl FileSender,
) -> Result<(), MoveError> {
    flow.counters.came_early(flow.config.early.bytes);
    let header = payload::random(flow.config.storage.header_bytes);
    let mut left = flow.config.limit_bytes.unwrap_or(u64::MAX);
    let mut pacer = Pacer::for_stream(flow, flow.config.chunk);
    let mut bodies = Uploads::of(flow);
    while left > 0 && flow.may_send() {
        let whole = source.bytes.map_or(left, |bytes| bytes.min(left));
        let ended = match &mut bodies {
            Some(bodies) => send_body(flow, source, &mut way, &mut pacer, (bodies, whole))?,
            None => {
                flow.cork(true)?;
                send_header(flow, &header)?;
                let ended = send_once(flow, source, &mut way, &mut pacer, whole, None)?;
                flow.cork(false)?;
                ended
            }
        };
        left -= whole;
        if !source.again || matches!(ended, Transfer::Cut) {
            break;
        }
    }
    bodies.map_or_else(|| stream::end(flow), Uploads::end)
}

/// Sends the source as one body of `whole` bytes, or of the source's length.
fn send_body(
    flow: &Flow,
    source: &FileSource,
    way: &mut impl FileSender,
    pacer: &mut Pacer,
    (bodies, whole): (&mut Uploads<'_>, u64),
) -> Result<Transfer, MoveError> {
    match bodies.begin(source.bytes.map(|_| whole))? {
        Begun::Stopped => return Ok(Transfer::Cut),
        Begun::Anew => way.go_over(flow)?,
        Begun::Here => {}
    }
    let ended = send_once(flow, source, way, pacer, whole, Some(bodies))?;
    if source.bytes.is_none() && flow.may_send() {
        way.settle(flow)?;
        bodies.complete()?;
    }
    Ok(ended)
}

fn send_once(
    flow: &Flow,
    source: &FileSource,
    way: &mut impl FileSender,
    pacer: &mut Pacer,
    whole: u64,
    mut bodies: Option<&mut Uploads<'_>>,
) -> Result<Transfer, MoveError> {
    let mut at = 0;
    while at < whole {
        if !flow.may_send() {
            return Ok(Transfer::Cut);
        }
        if !pacer.wait(flow)? {
            continue;
        }
        let want = usize::try_from(whole - at).unwrap_or(usize::MAX).min(pacer.piece);
        match way.send(flow, at, want) {
            Ok(sent) => {
                flow.counters.moved(sent.bytes as u64);
                at += sent.bytes as u64;
                pacer.sent(flow, sent.bytes);
                let is_whole = bodies.as_mut().is_some_and(|bodies| bodies.sent(sent.bytes));
                if is_whole {
                    way.settle(flow)?;
                    bodies.as_mut().map_or(Ok(()), |bodies| bodies.complete())?;
                } else if sent.full {
                    way.wait(flow)?;
                }
            }
            Err(SendFailure::Socket(Errno::AGAIN)) => {
                way.wait(flow)?;
                bodies.as_ref().map_or(Ok(()), |bodies| bodies.check_progress())?;
            }
            Err(SendFailure::Source(Errno::AGAIN)) => wait_for_input(flow, source)?,
            Err(SendFailure::Socket(Errno::INTR) | SendFailure::Source(Errno::INTR)) => {}
            Err(SendFailure::Socket(cause)) if flow.is_end(cause) => return Ok(Transfer::Cut),
            Err(SendFailure::Ended) if source.bytes.is_none() => return Ok(Transfer::Cut),
            Err(trouble) => {
                return Err(match (trouble, bodies) {
                    (SendFailure::Socket(cause), Some(bodies)) => bodies.broke(cause),
                    (trouble, _) => failed(flow, source, trouble, at),
                });
            }
        }
    }
    Ok(Transfer::Whole)
}

fn failed(flow: &Flow, source: &FileSource, trouble: SendFailure, at: u64) -> MoveError {
    let (flow_id, name) = (flow.config.id, source.name.clone());
    match trouble {
        SendFailure::Socket(cause) => flow.failed("send", cause),
        SendFailure::Source(cause) => {
            MoveError::Source { flow: flow_id, name, cause: cause.into() }
        }
        SendFailure::Ended => {
            let has = rustix::fs::fstat(&source.file).map_or(at, |stat| stat.st_size as u64);
            MoveError::Shrunk { flow: flow_id, name, had: source.bytes.unwrap_or(0), has }
        }
    }
}

/// Waits until a pipe has more, as far as the stop lets it. Counts as time in the source.
fn wait_for_input(flow: &Flow, source: &FileSource) -> Result<(), MoveError> {
    let wait = || flow.park_on(&source.file, Some(PollFlags::IN), None);
    flow.counters.source.during(wait)
}

/// Writes the header on its own, as a program does that builds the header before it opens the file.
fn send_header(flow: &Flow, header: &[u8]) -> Result<(), MoveError> {
    let more = flow.config.storage.header_more;
    let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
    let mut at = 0;
    while at < header.len() && flow.may_send() {
        match send_bytes(&flow.socket, &header[at..], flags) {
            Ok(sent) => {
                flow.counters.moved(sent as u64);
                at += sent;
            }
            Err(Errno::AGAIN) => flow.wait_writable()?,
            Err(Errno::INTR) => {}
            Err(cause) if flow.is_end(cause) => return Ok(()),
            Err(cause) => return Err(flow.failed("send the header", cause)),
        }
    }
    Ok(())
}
