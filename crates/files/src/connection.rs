//! One connection to a server, on which words and payload come one after the other.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::error::FileError;
use crate::link::{Ready, Wait};

/// Bytes that are looked at at once.
const LOOK_BYTES: usize = 16 << 10;

/// A connection.
pub(crate) struct Connection {
    socket: OwnedFd,
}

/// How the answer of a server ended before it was one.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The connection was over before anything of it came, as is usual for one that had been idle.
    Before,
    /// Anything else.
    Error(FileError),
}

impl From<FileError> for Broken {
    fn from(error: FileError) -> Self {
        Self::Error(error)
    }
}

/// Words that were read, and when the first of them had come.
#[derive(Debug)]
pub(crate) struct Heard<T> {
    pub(crate) said: T,
    pub(crate) first: Instant,
}

/// What a parser made of bytes: how many it needs no more, and what they say once that is whole.
pub(crate) type Parsed<T> = Result<(usize, Option<T>), FileError>;

impl Connection {
    /// Of a connected socket, which is put into non-blocking mode.
    pub(crate) fn new(socket: OwnedFd) -> Result<Self, FileError> {
        rustix::io::ioctl_fionbio(&socket, true)
            .map_err(|cause| FileError::io("make a connection non-blocking")(cause.into()))?;
        Ok(Self { socket })
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Writes all of `bytes`.
    pub(crate) fn say(
        &mut self,
        mut bytes: &[u8],
        wait: &dyn Wait,
        until: Instant,
    ) -> Result<(), Broken> {
        while !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(wait, Ready::Write, until)?,
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Broken::Before),
                Err(cause) => {
                    return Err(FileError::io("send a request")(cause.into()).into());
                }
            }
        }
        Ok(())
    }

    /// Reads words of up to `most` bytes, and nothing of what follows them.
    pub(crate) fn hear<T>(
        &mut self,
        most: usize,
        wait: &dyn Wait,
        until: Instant,
        mut parse: impl FnMut(&[u8]) -> Parsed<T>,
    ) -> Result<Heard<T>, Broken> {
        let (mut words, mut first) = (Vec::new(), None);
        loop {
            let fresh = self.look(&mut words, wait, until, first.is_some())?;
            let first = *first.get_or_insert_with(Instant::now);
            let mut at = 0;
            loop {
                let (used, said) = parse(&words[at..])?;
                at += used;
                if let Some(said) = said {
                    self.take(fresh.saturating_sub(words.len() - at))?;
                    return Ok(Heard { said, first });
                }
                if used == 0 {
                    break;
                }
            }
            self.take(fresh)?;
            words.drain(..at);
            if words.len() > most {
                let why = format!("the server's answer has a header of more than {most} bytes");
                return Err(FileError::Protocol(why).into());
            }
        }
    }

    /// Looks at what has come, without taking it, and adds it to `words`. How much that is.
    fn look(
        &mut self,
        words: &mut Vec<u8>,
        wait: &dyn Wait,
        until: Instant,
        began: bool,
    ) -> Result<usize, Broken> {
        let at = words.len();
        words.resize(at + LOOK_BYTES, 0);
        loop {
            match recv(&self.socket, &mut words[at..], RecvFlags::PEEK) {
                Ok((0, _)) | Err(Errno::CONNRESET) if !began => return Err(Broken::Before),
                Ok((0, _)) => {
                    let why = "the server closed the connection in the middle of its answer";
                    return Err(FileError::Protocol(why.into()).into());
                }
                Ok((seen, _)) => {
                    words.truncate(at + seen);
                    return Ok(seen);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(wait, Ready::Read, until)?,
                Err(cause) => return Err(FileError::io("read an answer")(cause.into()).into()),
            }
        }
    }

    /// Takes `bytes` out of the socket that were looked at.
    fn take(&mut self, bytes: usize) -> Result<(), FileError> {
        let mut room = [0; LOOK_BYTES];
        let mut left = bytes;
        while left > 0 {
            match recv(&self.socket, &mut room[..left.min(LOOK_BYTES)], RecvFlags::empty()) {
                Ok((taken, _)) if taken > 0 => left -= taken,
                Err(Errno::INTR) => {}
                outcome => {
                    let cause = outcome.err().map_or(ErrorKind::UnexpectedEof.into(), Into::into);
                    return Err(FileError::io("read an answer")(cause));
                }
            }
        }
        Ok(())
    }

    /// Reads what has come.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.socket, room, RecvFlags::empty())?.0)
    }

    fn wait(&self, wait: &dyn Wait, ready: Ready, until: Instant) -> Result<(), FileError> {
        if Instant::now() >= until {
            return Err(FileError::TimedOut("the server did not answer in time".into()));
        }
        wait.wait(self.socket.as_fd(), ready, until)
    }
}
