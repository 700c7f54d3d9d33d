//! A pipeline of READs on its socket.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::{Errno, readv};
use rustix::net::{SendFlags, send};

use super::dialogue::wait_for;
use super::pipeline::Pipeline;
use crate::connection::Connection;
use crate::error::FileError;
use crate::link::{Ready, Wait};

/// Bytes that are read at once where not only payload may come.
const BUFFER_BYTES: usize = 64 << 10;
/// How long the first answer may take.
const FIRST_REPLY_TIMEOUT: Duration = Duration::from_secs(15);
/// How long one wait is for room to write.
const WRITE_WAIT_TIME: Duration = Duration::from_millis(100);

/// A connection on which a file is read, pass after pass.
pub struct Reading {
    connection: Connection,
    pipeline: Pipeline,
    /// Calls that the socket has not taken.
    out: Vec<u8>,
    /// What came and is not told apart: `buffer[start..end]`.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes of this pass over the file that are to come.
    left: u64,
}

/// What a read from the socket brought.
enum Came {
    /// Payload, and perhaps something in the buffer.
    Some(usize),
    /// Nothing is there.
    Nothing,
}

impl Reading {
    pub fn new(connection: Connection, pipeline: Pipeline) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { connection, pipeline, out: Vec::new(), buffer, start: 0, end: 0, left: 0 }
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

    /// Waits for the payload of the next pass, and returns when it was asked for.
    pub fn begin_pass(&mut self, wait: &dyn Wait) -> Result<Instant, FileError> {
        let until = Instant::now() + FIRST_REPLY_TIMEOUT;
        self.ask()?;
        let asked = self.pipeline.next_pass().unwrap_or_else(Instant::now);
        self.left = self.file_bytes();
        loop {
            self.sort(&mut [])?;
            if self.pipeline.payload() > 0 {
                return Ok(asked);
            }
            match self.receive(&mut [])? {
                Came::Some(_) => {}
                Came::Nothing if Instant::now() >= until => {
                    let seconds = FIRST_REPLY_TIMEOUT.as_secs();
                    return Err(FileError::TimedOut(format!(
                        "READ: the server did not answer within {seconds} s"
                    )));
                }
                Came::Nothing => {
                    wait.wait(self.socket().as_fd(), Ready::Read, until)?;
                    self.ask()?;
                }
            }
        }
    }

    /// Reads payload of this pass, without waiting for it. Zero is the end of the pass.
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(room.len());
        if most == 0 {
            return Ok(0);
        }
        let taken = self.read_some(&mut room[..most]).map_err(|why| match why {
            FileError::Io { cause, .. } => cause,
            why => io::Error::other(why.to_string()),
        })?;
        self.left -= taken as u64;
        Ok(taken)
    }

    fn read_some(&mut self, room: &mut [u8]) -> Result<usize, FileError> {
        loop {
            let mut taken = self.sort(room)?;
            self.ask()?;
            if taken > 0 {
                return Ok(taken);
            }
            match self.receive(room)? {
                Came::Some(payload) => {
                    taken = payload + self.sort(&mut room[payload..])?;
                    self.ask()?;
                    if taken > 0 {
                        return Ok(taken);
                    }
                }
                Came::Nothing => return Err(self.nothing()?),
            }
        }
    }

    /// Tells apart what is in the buffer: payload goes into `room`, as much as fits. How much that is.
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

    /// Reads from the socket, if the buffer is empty: payload into `room`, and what is none into the buffer.
    fn receive(&mut self, room: &mut [u8]) -> Result<Came, FileError> {
        if self.start < self.end {
            return Ok(Came::Some(0));
        }
        let payload = self.pipeline.payload().min(room.len());
        let buffer = if self.pipeline.payload() > room.len() { &mut [] } else { &mut *self.buffer };
        let mut parts = [IoSliceMut::new(&mut room[..payload]), IoSliceMut::new(buffer)];
        let came = match readv(self.connection.socket(), &mut parts) {
            Ok(0) => {
                let why = "the server closed the connection in the middle of its answers";
                return Err(FileError::Protocol(why.into()));
            }
            Ok(came) => came,
            Err(Errno::AGAIN) => return Ok(Came::Nothing),
            Err(Errno::INTR) => return Ok(Came::Some(0)),
            Err(Errno::CONNRESET) => {
                let why = "the server reset the connection in the middle of its answers";
                return Err(FileError::Protocol(why.into()));
            }
            Err(cause) => return Err(FileError::io("read an answer")(cause.into())),
        };
        let payload = payload.min(came);
        (self.start, self.end) = (0, came - payload);
        self.pipeline.took(payload, Instant::now())?;
        Ok(Came::Some(payload))
    }

    /// Sends calls as far as the socket takes them.
    fn ask(&mut self) -> Result<(), FileError> {
        if self.out.is_empty() {
            self.pipeline.ask(&mut self.out, Instant::now());
        }
        while !self.out.is_empty() {
            match send(self.connection.socket(), &self.out, SendFlags::NOSIGNAL) {
                Ok(sent) => _ = self.out.drain(..sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                // What it said before is still to be read.
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    self.out.clear();
                    return Ok(());
                }
                Err(cause) => return Err(FileError::io("send a call")(cause.into())),
            }
        }
        Ok(())
    }

    /// That nothing is there to read. Whoever reads waits for that alone, so room for calls is waited for here.
    fn nothing(&self) -> Result<FileError, FileError> {
        let again = |kind: io::ErrorKind| FileError::io("read an answer")(kind.into());
        if self.out.is_empty() {
            return Ok(again(io::ErrorKind::WouldBlock));
        }
        wait_for(self.socket().as_fd(), PollFlags::IN | PollFlags::OUT, WRITE_WAIT_TIME)?;
        Ok(again(io::ErrorKind::Interrupted))
    }
}
