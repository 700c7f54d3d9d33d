//! A pipeline of READs on its socket.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::{Errno, readv};
use rustix::net::{SendFlags, send};

use super::dialogue::wait_for;
use super::pipeline::Pipeline;
use super::rpc;
use crate::connection::Connection;
use crate::error::FileError;
use crate::link::{Ready, Wait};

/// Bytes that are read at once if more than payload may arrive. Payload in this buffer is copied once more.
const BUFFER_BYTES: usize = 64 << 10;
/// The same if answers are longer than the buffer: the headers between two of them need little more than half of it.
const WORDS_BYTES: usize = 256;
/// How long an answer may take before its call is repeated on a new connection.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);
/// Length of one wait for room to write.
const WRITE_WAIT_TIME: Duration = Duration::from_millis(100);

/// A connection on which a file is read, pass after pass.
pub struct Reading {
    connection: Connection,
    pipeline: Pipeline,
    /// Calls that the socket has not accepted.
    out: Vec<u8>,
    /// Input that was not split yet: `buffer[start..end]`.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Remaining bytes of this pass over the file.
    left: u64,
    /// Why the connection must be replaced.
    lost: Option<String>,
}

/// Why nothing more can be read.
enum Trouble {
    /// A new connection may help.
    Lost(String),
    Failed(FileError),
}

impl From<FileError> for Trouble {
    fn from(why: FileError) -> Self {
        Self::Failed(why)
    }
}

/// The result of a read from the socket.
enum Came {
    /// Payload, and perhaps bytes in the buffer.
    Some(usize),
    /// Nothing to read.
    Nothing,
}

impl Reading {
    pub fn new(connection: Connection, pipeline: Pipeline) -> Self {
        let is_long = pipeline.call_bytes() >= BUFFER_BYTES;
        let bytes = if is_long { WORDS_BYTES } else { BUFFER_BYTES };
        let buffer = vec![0; bytes].into_boxed_slice();
        Self {
            connection,
            pipeline,
            out: Vec::new(),
            buffer,
            start: 0,
            end: 0,
            left: 0,
            lost: None,
        }
    }

    pub fn socket(&self) -> &OwnedFd {
        self.connection.socket()
    }

    pub fn file_bytes(&self) -> u64 {
        self.pipeline.file_bytes()
    }

    /// Whether the pass was read to its end.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Why the connection must be replaced, if so.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// When postponed calls are due.
    pub fn resumes_at(&self) -> Option<Instant> {
        self.pipeline.resumes_at()
    }

    /// Whether calls for the next pass leave before this one is over.
    pub fn asks_ahead(&self) -> bool {
        self.pipeline.asks_ahead()
    }

    /// Gives up the connection.
    pub fn lose(&mut self, why: &str) {
        self.lost.get_or_insert_with(|| why.into());
    }

    /// Continues on a new connection, at the point where the old one ended.
    pub fn renew(&mut self, connection: Connection) -> Result<(), FileError> {
        (self.start, self.end) = (0, 0);
        self.out.clear();
        self.connection = connection;
        self.pipeline.ask_again(&mut self.out, Instant::now())?;
        self.lost = None;
        Ok(())
    }

    /// Begins the next pass, and returns when it was requested.
    pub fn begin_pass(&mut self) -> Result<Instant, FileError> {
        self.left = self.file_bytes();
        if let Err(Trouble::Failed(why)) = self.ask() {
            return Err(why);
        }
        Ok(self.pipeline.next_pass().unwrap_or_else(Instant::now))
    }

    /// Waits for payload of this pass, or until the connection is lost.
    pub fn await_payload(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        match self.try_await(wait) {
            Err(Trouble::Lost(why)) => {
                self.lost = Some(why);
                Ok(())
            }
            Err(Trouble::Failed(why)) => Err(rpc::with_advice(why, self.socket())),
            Ok(()) => Ok(()),
        }
    }

    fn try_await(&mut self, wait: &dyn Wait) -> Result<(), Trouble> {
        let mut until = Instant::now() + REPLY_TIMEOUT;
        self.ask()?;
        loop {
            self.sort(&mut [])?;
            if self.pipeline.payload() > 0 {
                return Ok(());
            }
            match self.receive(&mut [])? {
                Came::Some(_) => {}
                Came::Nothing if Instant::now() >= until => return Err(unanswered()),
                Came::Nothing => {
                    let resumes_at = self.pipeline.resumes_at();
                    // A postponed call doesn't count as unanswered.
                    until = resumes_at.map_or(until, |at| until.max(at + REPLY_TIMEOUT));
                    let first = resumes_at.map_or(until, |at| at.min(until));
                    wait.wait(self.socket().as_fd(), Ready::Read, first)?;
                    self.ask()?;
                }
            }
        }
    }

    /// Reads payload of this pass, without waiting. Zero is the end of the pass, or of its connection.
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(room.len());
        if most == 0 || self.lost.is_some() {
            return Ok(0);
        }
        let taken = match self.read_some(&mut room[..most]) {
            Ok(taken) => taken,
            Err(Trouble::Lost(why)) => {
                self.lost = Some(why);
                return Ok(0);
            }
            Err(Trouble::Failed(why)) => {
                return Err(rpc::with_advice(why, self.socket()).into_io());
            }
        };
        self.left -= taken as u64;
        Ok(taken)
    }

    fn read_some(&mut self, room: &mut [u8]) -> Result<usize, Trouble> {
        if self.pipeline.is_overdue(REPLY_TIMEOUT, Instant::now()) {
            return Err(unanswered());
        }
        loop {
            let mut taken = self.sort(room)?;
            self.ask()?;
            if taken == room.len() {
                return Ok(taken);
            }
            match self.receive(&mut room[taken..]) {
                Ok(Came::Some(payload)) => {
                    taken += payload;
                    taken += self.sort(&mut room[taken..])?;
                    self.ask()?;
                    if taken > 0 {
                        return Ok(taken);
                    }
                }
                Ok(Came::Nothing) if taken == 0 => return Err(self.nothing()?.into()),
                Ok(Came::Nothing) => return Ok(taken),
                // Earlier input is valid.
                Err(Trouble::Lost(why)) if taken > 0 => {
                    self.lost = Some(why);
                    return Ok(taken);
                }
                Err(why) => return Err(why),
            }
        }
    }

    /// Splits the buffer: moves as much payload as fits into `room`. Returns its length.
    fn sort(&mut self, room: &mut [u8]) -> Result<usize, FileError> {
        let (now, mut taken) = (Instant::now(), 0);
        while self.start < self.end {
            let payload = self.pipeline.payload();
            if payload == 0 {
                self.start += self.pipeline.take(&self.buffer[self.start..self.end], now)?;
                continue;
            }
            let bytes = payload.min(self.end - self.start).min(room.len() - taken);
            if bytes == 0 {
                break;
            }
            room[taken..taken + bytes].copy_from_slice(&self.buffer[self.start..][..bytes]);
            self.pipeline.took(bytes, now)?;
            (taken, self.start) = (taken + bytes, self.start + bytes);
        }
        Ok(taken)
    }

    /// Reads from the socket, if the buffer is empty: payload into `room`, and everything else into the buffer.
    fn receive(&mut self, room: &mut [u8]) -> Result<Came, Trouble> {
        if self.start < self.end {
            return Ok(Came::Some(0));
        }
        let payload = self.pipeline.payload().min(room.len());
        let buffer = if self.pipeline.payload() > room.len() { &mut [] } else { &mut *self.buffer };
        let mut parts = [IoSliceMut::new(&mut room[..payload]), IoSliceMut::new(buffer)];
        let came = match readv(self.connection.socket(), &mut parts) {
            Ok(0) => return Err(Trouble::Lost("the server closed the connection".into())),
            Ok(came) => came,
            Err(Errno::AGAIN) => return Ok(Came::Nothing),
            Err(Errno::INTR) => return Ok(Came::Some(0)),
            Err(Errno::CONNRESET) => {
                return Err(Trouble::Lost("the server reset the connection".into()));
            }
            Err(cause) => {
                let why = format!("no answer could be read: {}", io::Error::from(cause));
                return Err(Trouble::Lost(why));
            }
        };
        let payload = payload.min(came);
        (self.start, self.end) = (0, came - payload);
        self.pipeline.took(payload, Instant::now())?;
        Ok(Came::Some(payload))
    }

    /// Sends as many calls as the socket accepts.
    fn ask(&mut self) -> Result<(), Trouble> {
        if self.out.is_empty() {
            self.pipeline.ask(&mut self.out, Instant::now());
        }
        while !self.out.is_empty() {
            match send(self.connection.socket(), &self.out, SendFlags::NOSIGNAL) {
                Ok(sent) => _ = self.out.drain(..sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                // The server's earlier input must still be read.
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    self.out.clear();
                    return Ok(());
                }
                Err(cause) => {
                    let why = format!("a call could not be sent: {}", io::Error::from(cause));
                    return Err(Trouble::Lost(why));
                }
            }
        }
        Ok(())
    }

    /// Returns that there is nothing to read. The reader waits only for input, so this function waits for room for
    /// calls.
    fn nothing(&self) -> Result<FileError, FileError> {
        let again = |kind: io::ErrorKind| FileError::io("read an answer")(kind.into());
        if self.out.is_empty() {
            return Ok(again(io::ErrorKind::WouldBlock));
        }
        wait_for(self.socket().as_fd(), PollFlags::IN | PollFlags::OUT, WRITE_WAIT_TIME)?;
        Ok(again(io::ErrorKind::Interrupted))
    }
}

fn unanswered() -> Trouble {
    Trouble::Lost(format!(
        "the server left a call without an answer for {} s",
        REPLY_TIMEOUT.as_secs()
    ))
}
