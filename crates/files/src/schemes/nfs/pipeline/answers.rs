//! Splits the input of a connection with READs in flight into headers of answers and their payload.

use std::time::Instant;

use super::super::calls::{self, Read};
use super::super::rpc::{self, LAST_FRAGMENT_BIT};
use super::super::xdr::{Reader, Unread, padding};
use super::{Pipeline, Range, Waiting};
use crate::error::FileError;

/// Most bytes of an answer before its payload: even the longest verifier and all attributes need fewer.
pub(super) const HEAD_BYTES: usize = 1 << 10;

/// The stream's position within a record.
#[derive(Default)]
pub(super) struct Fragment {
    mark: [u8; 4],
    /// Bytes of the mark that have arrived.
    marked: usize,
    /// Remaining bytes of the fragment.
    left: usize,
    /// Whether this is the record's last fragment.
    is_last: bool,
}

/// The next part of an answer.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    Head,
    Payload { left: u32, then: Ending },
    Padding { left: usize, then: Ending },
    End(Ending),
}

/// What to note when an answer is complete.
#[derive(Clone, Copy)]
pub(super) struct Ending {
    sent: Instant,
    /// Where its payload ends in the file.
    pub(super) end: u64,
    bytes: u32,
    is_short: bool,
    /// Whether the server asks to retry later, and sent nothing.
    is_later: bool,
}

impl Stage {
    /// Moves to the next stage if nothing remains.
    fn settled(self) -> Self {
        match self {
            Self::Payload { left: 0, then } => {
                Self::Padding { left: padding(then.bytes as usize), then }.settled()
            }
            Self::Padding { left: 0, then } => Self::End(then),
            other => other,
        }
    }
}

impl Pipeline {
    /// How many of the next bytes are payload; 0: pass them to [`Self::take`].
    pub fn payload(&self) -> usize {
        match self.stage {
            Stage::Payload { left, .. } => self.fragment.left.min(left as usize),
            _ => 0,
        }
    }

    /// `bytes` of payload arrived, at most [`Self::payload`].
    pub fn took(&mut self, bytes: usize, now: Instant) -> Result<(), FileError> {
        if let Stage::Payload { left, then } = self.stage {
            let left = left.saturating_sub(bytes as u32);
            self.stage = Stage::Payload { left, then }.settled();
        }
        self.advance(bytes, now)
    }

    /// Takes at least one byte that is not payload from the beginning of `bytes`. Returns how many.
    pub fn take(&mut self, bytes: &[u8], now: Instant) -> Result<usize, FileError> {
        if self.fragment.left == 0 {
            return self.take_mark(bytes, now);
        }
        let piece = &bytes[..bytes.len().min(self.fragment.left)];
        let used = match self.stage {
            Stage::Head => self.take_head(piece, now)?,
            Stage::Payload { .. } => return Ok(0),
            Stage::Padding { left, then } => {
                let used = piece.len().min(left);
                self.stage = Stage::Padding { left: left - used, then }.settled();
                used
            }
            Stage::End(_) => return Err(protocol("the server's answer is longer than it says")),
        };
        self.advance(used, now)?;
        Ok(used)
    }

    fn take_mark(&mut self, bytes: &[u8], now: Instant) -> Result<usize, FileError> {
        if let Some(since) = self.idle_since.take() {
            self.log.idled(now.saturating_duration_since(since));
        }
        let fragment = &mut self.fragment;
        let used = bytes.len().min(4 - fragment.marked);
        fragment.mark[fragment.marked..][..used].copy_from_slice(&bytes[..used]);
        fragment.marked += used;
        if fragment.marked == 4 {
            let mark = u32::from_be_bytes(fragment.mark);
            if mark == 0 {
                // Otherwise any number of them could arrive without any data.
                return Err(protocol("the server's answer has an empty fragment"));
            }
            *fragment = Fragment {
                left: (mark & !LAST_FRAGMENT_BIT) as usize,
                is_last: mark & LAST_FRAGMENT_BIT != 0,
                ..Fragment::default()
            };
            self.advance(0, now)?;
        }
        Ok(used)
    }

    /// `bytes` of the fragment are done.
    fn advance(&mut self, bytes: usize, now: Instant) -> Result<(), FileError> {
        self.fragment.left = self.fragment.left.saturating_sub(bytes);
        if self.fragment.left > 0 || !self.fragment.is_last {
            return Ok(());
        }
        self.fragment = Fragment::default();
        let Stage::End(answer) = self.stage else {
            return Err(protocol("the server's answer is shorter than it says"));
        };
        self.stage = Stage::Head;
        self.answers += 1;
        // While calls are postponed, an idle connection doesn't mean that this end requests too little.
        self.idle_since = self.later.is_empty().then_some(now);
        if answer.is_later {
            return Ok(());
        }
        self.log.answered(now.saturating_duration_since(answer.sent), answer.is_short);
        Ok(())
    }

    fn take_head(&mut self, piece: &[u8], now: Instant) -> Result<usize, FileError> {
        let had = self.head.len();
        let more = piece.len().min(HEAD_BYTES - had);
        self.head.extend(&piece[..more]);
        match read_head(&self.head) {
            Ok((used, xid, read)) => {
                self.head.clear();
                let then = match read {
                    Some(read) => self.answered(xid, read)?,
                    None => self.deferred(xid, now)?,
                };
                self.stage = Stage::Payload { left: then.bytes, then }.settled();
                // The earlier part was too short, so the head ends in this piece.
                Ok(used.saturating_sub(had))
            }
            Err(Unread::Short) if self.head.len() < HEAD_BYTES => Ok(more),
            Err(Unread::Short) => Err(protocol("the head of the server's answer has no end")),
            Err(Unread::Failed(why)) => Err(why),
        }
    }

    /// Finds the call of an answer, and the part of it that must still be requested.
    fn answered(&mut self, xid: u32, read: Read) -> Result<Ending, FileError> {
        let call = self.take_call(xid)?;
        let (asked, bytes) = (call.range.bytes, read.bytes);
        if bytes > asked {
            let why = format!("the server answers {bytes} bytes, but {asked} were asked for");
            return Err(FileError::Protocol(why));
        }
        if bytes < asked {
            if read.is_end {
                let at = call.range.offset + u64::from(bytes);
                let announced = self.reads.file_bytes;
                return Err(FileError::Refused(format!(
                    "the file ends after {at} bytes, but the server had announced {announced}"
                )));
            }
            if bytes == 0 {
                return Err(protocol("the server answers a READ with nothing"));
            }
            let offset = call.range.offset + u64::from(bytes);
            self.rest.push(Range { offset, bytes: asked - bytes, put_off: 0 });
        }
        let end = call.range.offset + u64::from(bytes);
        Ok(Ending { sent: call.first, end, bytes, is_short: bytes < asked, is_later: false })
    }

    /// Finds the call that the server postpones.
    fn deferred(&mut self, xid: u32, now: Instant) -> Result<Ending, FileError> {
        let call = self.take_call(xid)?;
        self.put_off(call.range, now)?;
        let end = call.range.offset;
        Ok(Ending { sent: call.first, end, bytes: 0, is_short: false, is_later: true })
    }

    fn take_call(&mut self, xid: u32) -> Result<Waiting, FileError> {
        let at = self.waiting.iter().position(|call| call.xid == xid);
        at.and_then(|at| self.waiting.remove(at)).ok_or_else(|| {
            protocol("the server answers a call that was not made, or one that it had answered")
        })
    }
}

fn read_head(bytes: &[u8]) -> Result<(usize, u32, Option<Read>), Unread> {
    let mut reader = Reader::new(bytes);
    let xid = rpc::reply(&mut reader)?;
    let read = calls::read(&mut reader)?;
    Ok((reader.used(), xid, read))
}

fn protocol(why: &str) -> FileError {
    FileError::Protocol(why.into())
}
