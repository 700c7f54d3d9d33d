//! WRITEs to one file: many in flight on one connection, and a COMMIT when all are answered.
//!
//! Payload goes from the caller straight into the socket, after the header of its call. It is never stored, so it
//! can't be sent again: a broken connection, or a server that loses data it accepted, ends the upload.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use super::calls::{self, Handle, Verifier, WRITE};
use super::find::Directory;
use super::later;
use super::rpc;
use super::xdr::{Reader, Unread, padding};
use crate::error::FileError;
use crate::link::{Ready, Wait};
use crate::patience;
use crate::rpc_log::RpcLog;

/// Bytes that are read at once, and the longest answer: even with the longest verifier and all attributes it is below
/// 1 KiB.
const ANSWER_BYTES: usize = 16 << 10;

/// How a file is written.
pub struct Writes {
    /// Bytes of one call; at least 1.
    pub call_bytes: u32,
    /// Calls in flight; at least 1.
    pub slots: u16,
}

/// A connection on which a file is written, again and again.
pub struct Writing {
    directory: Directory,
    file: Handle,
    writes: Writes,
    log: Arc<RpcLog>,
    /// The offset of the next call in the file.
    offset: u64,
    /// Bytes of the file that no call has begun to carry; `None`: its length is unknown.
    left: Option<u64>,
    /// Bytes of calls that the socket has not accepted: the header of a call, or its padding.
    words: Vec<u8>,
    /// Payload of the last call that the socket has not accepted, and then the padding.
    payload: usize,
    padding: usize,
    /// Unanswered calls, in the order in which they began.
    waiting: VecDeque<Waiting>,
    /// Parts of answers.
    came: Vec<u8>,
    /// Identifies the server's start that has payload in memory.
    verifier: Option<Verifier>,
    /// Whether everything begun was stored.
    is_over: bool,
    /// When the next call may be made, if the server asked to come back later, and how many times in a row it did.
    resumes_at: Option<Instant>,
    put_off: usize,
    /// Bytes of the file, if known.
    bytes: Option<u64>,
}

/// An unanswered call.
struct Waiting {
    xid: u32,
    bytes: u32,
    sent: Instant,
}

impl Writing {
    /// Makes the file.
    pub fn begin(
        mut directory: Directory,
        writes: Writes,
        log: Arc<RpcLog>,
        wait: &dyn Wait,
    ) -> Result<Self, FileError> {
        let Directory { dialogue, handle, name, .. } = &mut directory;
        let file = dialogue.create(wait, handle, name)?;
        log.begin(writes.call_bytes, writes.slots);
        log.put_off(dialogue.take_put_off());
        Ok(Self {
            directory,
            file,
            writes,
            log,
            offset: 0,
            left: None,
            words: Vec::new(),
            payload: 0,
            padding: 0,
            waiting: VecDeque::new(),
            came: Vec::new(),
            verifier: None,
            is_over: true,
            resumes_at: None,
            put_off: 0,
            bytes: None,
        })
    }

    /// Empties the file, to write it again.
    pub fn empty(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        self.directory.dialogue.empty(wait, &self.file)
    }

    /// The next payload is the file from its beginning: this many bytes, if known.
    pub fn expect(&mut self, bytes: Option<u64>) {
        (self.offset, self.left, self.verifier, self.is_over) = (0, bytes, None, false);
        self.bytes = bytes;
    }

    /// Whether everything begun was stored, so that the connection is free for other calls.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn socket(&self) -> &OwnedFd {
        self.directory.dialogue.socket()
    }

    pub fn into_directory(self) -> Directory {
        self.directory
    }

    /// What to wait for when no more payload is accepted.
    pub fn awaits(&self) -> Ready {
        if self.is_between_calls() {
            Ready::Read
        } else if self.waiting.len() > 1 {
            Ready::Either
        } else {
            Ready::Write
        }
    }

    /// When it continues, if the server asked to come back later.
    pub fn resumes_at(&self) -> Option<Instant> {
        self.resumes_at.filter(|at| Instant::now() < *at)
    }

    /// Whether no call may be made yet.
    fn is_put_off(&self) -> bool {
        self.resumes_at().is_some()
    }

    fn is_between_calls(&self) -> bool {
        self.payload == 0 && self.words.is_empty()
    }

    /// Writes as much payload as there are free slots and room in the socket, without waiting. Zero means nothing was
    /// written.
    pub fn write(&mut self, payload: &[u8]) -> Result<usize, FileError> {
        let mut taken = 0;
        while taken < payload.len() {
            if self.is_between_calls() {
                self.hear()?;
                let is_full = self.waiting.len() >= usize::from(self.writes.slots);
                if is_full || self.left == Some(0) || self.is_put_off() {
                    break;
                }
                self.begin_call(payload.len() - taken);
            }
            match self.send(&payload[taken..])? {
                Some(sent) => taken += sent,
                None => {
                    self.hear()?;
                    break;
                }
            }
        }
        // The padding of the last call must not wait for the next one.
        if self.payload == 0 && !self.words.is_empty() {
            self.send(&[])?;
        }
        Ok(taken)
    }

    /// Begins a call. A file of unknown length may end with the `at_hand` bytes that must be written now.
    fn begin_call(&mut self, at_hand: usize) {
        let left = self.left.unwrap_or(at_hand as u64);
        let bytes = u32::try_from(left).unwrap_or(u32::MAX).min(self.writes.call_bytes);
        let length = bytes as usize;
        let (file, offset) = (&self.file, self.offset);
        let args = |out: &mut Vec<u8>| calls::write_args(out, file, offset, bytes);
        let tail = length + padding(length);
        let xid = self.directory.dialogue.begin_call(&mut self.words, WRITE, tail, args);
        self.waiting.push_back(Waiting { xid, bytes, sent: Instant::now() });
        (self.payload, self.padding) = (length, padding(length));
        self.offset += u64::from(bytes);
        self.left = self.left.map(|left| left - u64::from(bytes));
    }

    /// Sends the waiting header bytes, and the part of `payload` that belongs to the last call. `None`: there is no
    /// room.
    fn send(&mut self, payload: &[u8]) -> Result<Option<usize>, FileError> {
        let piece = &payload[..payload.len().min(self.payload)];
        let is_last = piece.len() == self.payload;
        let pad = &[0; 3][..if is_last { self.padding } else { 0 }];
        let parts = [IoSlice::new(&self.words), IoSlice::new(piece), IoSlice::new(pad)];
        let mut none = SendAncillaryBuffer::default();
        let sent = match sendmsg(self.socket(), &parts, &mut none, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => 0,
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(self.closed()),
            Err(cause) => return Err(FileError::io("send a WRITE")(cause.into())),
        };
        let words = self.words.len();
        self.words.drain(..sent.min(words));
        let taken = sent.saturating_sub(words).min(piece.len());
        self.payload -= taken;
        if self.payload == 0 {
            let padded = sent.saturating_sub(words + piece.len());
            self.words.extend(&[0; 3][..std::mem::take(&mut self.padding) - padded]);
        }
        Ok(Some(taken))
    }

    /// Takes all answers that have arrived.
    fn hear(&mut self) -> Result<(), FileError> {
        let mut room = [0; ANSWER_BYTES];
        while !self.waiting.is_empty() {
            match recv(self.socket(), &mut room, RecvFlags::empty()) {
                Ok((0, _)) => return Err(self.closed()),
                Ok((came, _)) => {
                    self.came.extend(&room[..came]);
                    self.take_answers()?;
                    if came < room.len() {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Err(self.closed()),
                Err(cause) => {
                    return Err(FileError::io("read the answer to a WRITE")(cause.into()));
                }
            }
        }
        Ok(())
    }

    fn take_answers(&mut self) -> Result<(), FileError> {
        while let Some((used, answer)) = rpc::record(&self.came) {
            self.came.drain(..used);
            self.answered(&answer)?;
        }
        if self.came.len() > ANSWER_BYTES {
            return Err(protocol("the server's answer to a WRITE has no end"));
        }
        Ok(())
    }

    fn answered(&mut self, answer: &[u8]) -> Result<(), FileError> {
        let mut reader = Reader::new(answer);
        let unread = |why| match why {
            Unread::Short => protocol("WRITE: the server's answer is cut short"),
            Unread::Failed(why) => rpc::with_advice(why, self.socket()),
        };
        let xid = rpc::reply(&mut reader).map_err(unread)?;
        let written = match calls::written(&mut reader).map_err(unread) {
            Err(FileError::Later(_)) => None,
            written => Some(written?),
        };
        let at = self.waiting.iter().position(|call| call.xid == xid);
        if at.is_some_and(|at| at + 1 == self.waiting.len()) && self.payload > 0 {
            return Err(protocol("the server answers a WRITE before it has all of it"));
        }
        let call = at.and_then(|at| self.waiting.remove(at));
        let call = call.ok_or_else(|| {
            protocol("the server answers a call that was not made, or one that it had answered")
        })?;
        let Some(written) = written else { return self.come_back_later() };
        self.put_off = 0;
        if written.bytes == 0 || written.bytes > call.bytes {
            let (bytes, sent) = (written.bytes, call.bytes);
            return Err(FileError::Protocol(format!(
                "the server says that it wrote {bytes} of the {sent} bytes of a WRITE"
            )));
        }
        if let Some(verifier) = written.uncommitted {
            self.keeps(verifier)?;
        }
        // Bytes that it did not write leave a hole in a file that nobody reads; they are not counted.
        self.log.stored(written.bytes);
        self.log.answered(call.sent.elapsed(), written.bytes < call.bytes);
        Ok(())
    }

    /// The server did not carry out a call, and asks to come back later. The next payload belongs to the rest of the
    /// file: the skipped bytes leave a hole in a file that nobody reads, and are not counted.
    fn come_back_later(&mut self) -> Result<(), FileError> {
        self.log.put_off(1);
        // Calls in flight are postponed together.
        if !self.is_put_off() {
            self.put_off += 1;
            self.resumes_at = Some(later::again_at(WRITE, self.put_off, Instant::now())?);
        }
        Ok(())
    }

    /// The server holds in memory what it has accepted since it used this verifier.
    fn keeps(&mut self, verifier: Verifier) -> Result<(), FileError> {
        match self.verifier.replace(verifier) {
            Some(before) if before != verifier => Err(FileError::Refused(
                "the server restarted while the file was written, and has lost what it had not brought to its disk \
                 (its write verifier changed): test again"
                    .into(),
            )),
            _ => Ok(()),
        }
    }

    /// Returns when the server has all written data on disk.
    pub fn finish(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        if self.payload > 0 {
            return Err(protocol("the file ends in the middle of a WRITE"));
        }
        let patience = patience::to_confirm(self.bytes);
        let until = Instant::now() + patience;
        self.hear_all(wait, until).map_err(|why| patience::unconfirmed(why, patience))?;
        if !self.came.is_empty() {
            return Err(protocol("the server says more than was asked"));
        }
        let verifier = self.directory.dialogue.commit(wait, &self.file)?;
        self.log.put_off(self.directory.dialogue.take_put_off());
        if self.verifier.is_some() {
            self.keeps(verifier)?;
        }
        self.is_over = true;
        Ok(())
    }

    /// Sends waiting bytes, and receives all answers.
    fn hear_all(&mut self, wait: &dyn Wait, until: Instant) -> Result<(), FileError> {
        while !self.words.is_empty() {
            if self.send(&[])?.is_none() {
                self.directory.dialogue.wait(wait, Ready::Write, until)?;
            }
        }
        loop {
            self.hear()?;
            if self.waiting.is_empty() {
                return Ok(());
            }
            self.directory.dialogue.wait(wait, Ready::Read, until)?;
        }
    }

    fn closed(&self) -> FileError {
        let calls = self.waiting.len();
        FileError::Protocol(format!(
            "the server closed the connection, and left {calls} WRITEs without an answer"
        ))
    }
}

fn protocol(why: &str) -> FileError {
    FileError::Protocol(why.into())
}
