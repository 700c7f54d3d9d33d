//! The loops of all movers of byte streams; a mover only provides its way to write or read.

use goodput_model::Transport;
use rustix::event::PollFlags;
use rustix::io::{Errno, Result as SysResult};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

use crate::bodies::{Begun, Succession, Uploads};
use crate::error::MoveError;
use crate::flow::Flow;
use crate::low_water::LowWater;
use crate::pace::Pacer;
use crate::quiet::Quiet;
use crate::stop::Phase;
use crate::turn::Turn;

/// A way to write a chunk repeatedly to the socket of a flow. A plain function is a way that waits for nothing but
/// room.
pub(crate) trait Write {
    /// Writes up to `want` bytes without waiting, starting at offset `at` of the chunk: a chunk that a full socket has
    /// cut is continued, as programs do. Only a write that starts at the chunk's beginning may go beyond its end.
    fn write(&mut self, at: usize, want: usize) -> SysResult<usize>;

    /// Waits, after `EAGAIN` or a short write, as far as the stop lets it, until a retry is worthwhile. Counts as
    /// blocked.
    fn wait(&mut self, flow: &Flow) -> Result<(), MoveError> {
        flow.wait_writable()
    }

    /// Waits, as far as the stop lets it, until the socket reports no more about what was written.
    fn settle(&mut self, _flow: &Flow) -> Result<(), MoveError> {
        Ok(())
    }

    /// The flow continues on another socket.
    fn go_over(&mut self, _flow: &Flow) -> Result<(), MoveError> {
        Ok(())
    }
}

impl<F: FnMut(usize, usize) -> SysResult<usize>> Write for F {
    fn write(&mut self, at: usize, want: usize) -> SysResult<usize> {
        self(at, want)
    }
}

/// Sends a chunk at a time until the limit or the stop, then ends the stream.
pub(crate) fn send(flow: &Flow, way: impl Write) -> Result<(), MoveError> {
    send_pieces(flow, flow.config.chunk, way)
}

/// Sends up to `most` bytes at a time until the limit or the stop, then ends the stream.
pub(crate) fn send_pieces(flow: &Flow, most: usize, mut way: impl Write) -> Result<(), MoveError> {
    let shown = flow.config.early.bytes;
    flow.counters.came_early(shown);
    let mut left = flow.config.limit_bytes.map_or(u64::MAX, |limit| limit.saturating_sub(shown));
    let (mut pacer, mut turn) = (Pacer::for_stream(flow, most), Turn::of(flow));
    let (chunk, mut at) = (flow.config.chunk.max(1), 0);
    let mut bodies = Uploads::of(flow);
    if bodies.is_none() {
        flow.cork(true)?;
    }
    while left > 0 && turn.may_send(flow)? {
        if !pacer.wait(flow)? {
            continue;
        }
        match bodies.as_mut().map(|bodies| bodies.go_on(left)).transpose()? {
            Some(Begun::Stopped) => break,
            Some(Begun::Anew) => way.go_over(flow)?,
            Some(Begun::Here) | None => {}
        }
        let piece = if at == 0 { pacer.piece } else { pacer.piece.min(chunk - at) };
        let want = turn.at_most(usize::try_from(left).unwrap_or(usize::MAX).min(piece));
        let want = bodies.as_ref().map_or(want, |bodies| bodies.at_most(want));
        match way.write(at, want) {
            Ok(written) => {
                at = (at + written) % chunk;
                flow.counters.moved(written as u64);
                left -= written as u64;
                turn.sent(written);
                pacer.sent(flow, written);
                if let Some(bodies) = &mut bodies
                    && bodies.sent(written)
                {
                    way.settle(flow)?;
                    bodies.complete()?;
                }
                // A short write has filled the socket: another write would only fail.
                if written < want {
                    way.wait(flow)?;
                }
            }
            Err(Errno::AGAIN) => {
                way.wait(flow)?;
                bodies.as_ref().map_or(Ok(()), Uploads::check_progress)?;
            }
            Err(Errno::INTR) => {}
            Err(cause) if flow.is_end(cause) => return Ok(()),
            Err(cause) => {
                let failed = || flow.failed("send", cause);
                return Err(bodies.map_or_else(failed, |bodies| bodies.broke(cause)));
            }
        }
    }
    if let Some(bodies) = bodies {
        return bodies.end();
    }
    flow.cork(false)?;
    end(flow)
}

/// Ends a sender's stream, so that the receiver reads to its end.
pub(crate) fn end(flow: &Flow) -> Result<(), MoveError> {
    if flow.stop.phase() == Phase::Abort {
        return Err(flow.aborted());
    }
    debug_assert_eq!(flow.config.transport, Transport::Tcp);
    match shutdown(&flow.socket, Shutdown::Write) {
        Err(cause) if !flow.is_end(cause) => Err(flow.failed("end the stream", cause)),
        Ok(()) if flow.config.framing.answers_streams() => hear_out(flow),
        _ => Ok(()),
    }
}

/// Reads what the receiver sends until it closes too. The outcome does not matter: the kernel has all of the payload.
fn hear_out(flow: &Flow) -> Result<(), MoveError> {
    flow.payload_is_over();
    let mut said = [0; 1024];
    while flow.may_receive()? {
        match recv(&flow.socket, &mut said[..], RecvFlags::empty()) {
            Ok((0, _)) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => flow.park(Some(PollFlags::IN), None)?,
            Err(_) => break,
        }
    }
    Ok(())
}

/// Receives until the peer ends the stream; if the end is reported elsewhere, until nothing more comes, or until the
/// deadline of the stop; a flow of bodies, until there are no more. `read` reads up to the given number of bytes, at
/// most `room`, without waiting.
pub(crate) fn receive(
    flow: &Flow,
    room: usize,
    read: impl FnMut(usize) -> SysResult<usize>,
) -> Result<(), MoveError> {
    receive_with(flow, room, LowWater::default(), ShortRead::MayLeaveSome, read)
}

/// What a read that got less than it wanted says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortRead {
    /// The socket was empty then, as after recv(2): another read would most likely only fail.
    EmptiedSocket,
    /// Nothing: more may be in the socket, or outside of it.
    MayLeaveSome,
}

/// The same, with another low-water mark.
pub(crate) fn receive_with(
    flow: &Flow,
    room: usize,
    mut low_water: LowWater,
    short: ShortRead,
    mut read: impl FnMut(usize) -> SysResult<usize>,
) -> Result<(), MoveError> {
    let mut pacer = Pacer::for_stream(flow, room);
    let mut quiet = Quiet::of(flow);
    let mut bodies = Succession::of(flow);
    flow.counters.came_early(flow.config.early.bytes);
    set_quickack(flow, flow.config.quickack)?;
    while flow.may_receive()? && !quiet.as_mut().is_some_and(|quiet| quiet.is_over(flow, None)) {
        if !pacer.wait(flow)? {
            continue;
        }
        if let Some(bodies) = &mut bodies
            && !bodies.go_on(&mut low_water)?
        {
            break;
        }
        let want = bodies.as_ref().map_or(pacer.piece, |bodies| bodies.at_most(pacer.piece));
        match read(want) {
            Ok(0) => match &mut bodies {
                Some(bodies) => bodies.ended()?,
                None => return Ok(()),
            },
            Ok(taken) => {
                flow.counters.moved(taken as u64);
                set_quickack(flow, flow.config.quickack.filter(|on| *on))?;
                pacer.sent(flow, taken);
                low_water.read(taken);
                quiet.iter_mut().for_each(Quiet::heard);
                match &mut bodies {
                    // What a body's transport has decoded is not in the socket.
                    Some(bodies) => bodies.took(taken),
                    None if taken < want && short == ShortRead::EmptiedSocket => {
                        low_water.wait(flow, quiet.as_ref().and_then(Quiet::until))?;
                    }
                    None => {}
                }
            }
            Err(Errno::AGAIN) => {
                let quiet = quiet.as_ref().and_then(Quiet::until);
                low_water.wait(flow, bodies.as_ref().map(Succession::until).or(quiet))?;
                bodies.as_mut().map_or(Ok(()), Succession::check_progress)?;
            }
            Err(Errno::INTR) => {}
            Err(cause) if flow.is_end(cause) => return Ok(()),
            Err(cause) => {
                let failed = || flow.failed("receive", cause);
                return Err(bodies.map_or_else(failed, |bodies| bodies.broke(cause)));
            }
        }
    }
    bodies.map_or(Ok(()), Succession::end)
}

/// Sets how received data is acknowledged, if the flow has a preference.
fn set_quickack(flow: &Flow, wish: Option<bool>) -> Result<(), MoveError> {
    let Some(on) = wish else { return Ok(()) };
    match crate::socket::set_quickack(&flow.socket, on) {
        // A stream that has ended, or was reset, has no one left who waits.
        Ok(()) | Err(Errno::INVAL | Errno::NOTCONN) => Ok(()),
        Err(cause) => Err(flow.failed("set TCP_QUICKACK", cause)),
    }
}
