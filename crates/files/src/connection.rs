//! One connection to a server, plain or encrypted, that alternates between protocol text and payload.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustls::ClientConnection;

use crate::error::FileError;
use crate::link::{Ready, Wait};
use crate::tls::{self, Tls};
use crate::tls_words;

/// Bytes that are examined at once.
const LOOK_BYTES: usize = 16 << 10;
/// Encrypted bytes that are read at once: sixteen records of the largest size (RFC 8446 section 5.2).
const READ_AHEAD_BYTES: usize = 256 << 10;

/// A connection.
pub(crate) struct Connection {
    socket: OwnedFd,
    tls: Option<Box<ClientConnection>>,
    ahead: ReadAhead,
    /// Whether incoming data is acknowledged at once.
    prompt: bool,
    /// Decrypted data after the requested text.
    pending: Vec<u8>,
}

/// How a server's answer ended too early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The connection ended before any byte of the answer, as is common after an idle time.
    Before,
    /// Anything else.
    Error(FileError),
}

impl From<FileError> for Broken {
    fn from(error: FileError) -> Self {
        Self::Error(error)
    }
}

impl Broken {
    /// As an error of a connection that was not idle.
    pub(crate) fn error(self) -> FileError {
        match self {
            Self::Error(error) => error,
            Self::Before => {
                FileError::Protocol("the server closed the connection without an answer".into())
            }
        }
    }
}

/// Text that was read, and when its first byte arrived.
#[derive(Debug)]
pub(crate) struct Heard<T> {
    pub(crate) said: T,
    pub(crate) first: Instant,
}

/// A parser's result: how many bytes it has consumed, and the value once it is complete.
pub(crate) type Parsed<T> = Result<(usize, Option<T>), FileError>;

/// The raw bytes of a connection, written with these flags.
struct Raw<'a>(&'a OwnedFd, SendFlags);

impl Read for Raw<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0, room, RecvFlags::empty())?.0)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, self.1 | SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Encrypted bytes that were read but not yet decrypted. `rustls` reads 4 KiB at a time; without this, a record would take
/// five system calls.
#[derive(Default)]
struct ReadAhead {
    bytes: Vec<u8>,
    taken: usize,
}

/// The encrypted bytes of a connection.
struct Encrypted<'a>(&'a mut ReadAhead, &'a OwnedFd);

impl ReadAhead {
    fn of<'a>(&'a mut self, socket: &'a OwnedFd) -> Encrypted<'a> {
        Encrypted(self, socket)
    }
}

impl Read for Encrypted<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Self(ReadAhead { bytes, taken }, socket) = self;
        if *taken == bytes.len() {
            bytes.clear();
            *taken = 0;
            bytes.reserve(READ_AHEAD_BYTES);
            recv(socket, rustix::buffer::spare_capacity(bytes), RecvFlags::empty())?;
        }
        let mut left = &bytes[*taken..];
        let count = left.read(room)?;
        *taken += count;
        Ok(count)
    }
}

impl Connection {
    /// Wraps a connected socket, and makes it non-blocking.
    pub(crate) fn new(socket: OwnedFd) -> Result<Self, FileError> {
        rustix::io::ioctl_fionbio(&socket, true)
            .map_err(|cause| FileError::io("make a connection non-blocking")(cause.into()))?;
        let (ahead, pending) = (ReadAhead::default(), Vec::new());
        Ok(Self { socket, tls: None, ahead, prompt: false, pending })
    }

    /// Acknowledges incoming data at once. A server that sends two messages in a row holds back the second until the
    /// first is acknowledged (RFC 896), which otherwise takes 40 ms.
    pub(crate) fn be_prompt(&mut self) {
        self.prompt = true;
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Version of TLS and cipher, if the connection is encrypted.
    pub(crate) fn tls(&self) -> Option<String> {
        self.tls.as_deref().and_then(tls::summary)
    }

    /// Whether payload arrives encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Encrypts everything after this. Fails if the server can't prove its identity.
    pub(crate) fn encrypt(
        &mut self,
        tls: &Tls,
        host: &str,
        wait: &dyn Wait,
        until: Instant,
    ) -> Result<(), FileError> {
        let mut session = Box::new(tls.connection(host)?);
        while session.is_handshaking() {
            let done = if session.wants_write() {
                session.write_tls(&mut Raw(&self.socket, SendFlags::empty()))
            } else {
                session.read_tls(&mut self.ahead.of(&self.socket))
            };
            let ready = if session.wants_write() { Ready::Write } else { Ready::Read };
            match done {
                Ok(0) if ready == Ready::Read => {
                    let why =
                        format!("{host} closed the connection in the middle of a TLS handshake");
                    return Err(FileError::Protocol(why));
                }
                Ok(_) => {}
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                    self.wait(wait, ready, until)?;
                }
                Err(cause) => return Err(FileError::io("shake hands by TLS")(cause)),
            }
            if let Err(why) = session.process_new_packets() {
                // Sends the server the reason, if it listens.
                let _ = session.write_tls(&mut Raw(&self.socket, SendFlags::empty()));
                return Err(tls::refused(host, &why));
            }
        }
        self.tls = Some(session);
        self.flush(wait, until).map_err(Broken::error)
    }

    /// Writes all of `bytes`.
    pub(crate) fn say(
        &mut self,
        bytes: &[u8],
        wait: &dyn Wait,
        until: Instant,
    ) -> Result<(), Broken> {
        self.say_with(SendFlags::empty(), bytes, wait, until)
    }

    /// Writes all of `bytes`, followed at once by payload: both share a segment (`MSG_MORE`, send(2)). Otherwise
    /// payload shorter than a segment waits until these bytes are acknowledged (Nagle, RFC 896), which the peer may
    /// delay for 40 ms.
    pub(crate) fn say_before_payload(
        &mut self,
        bytes: &[u8],
        wait: &dyn Wait,
        until: Instant,
    ) -> Result<(), Broken> {
        self.say_with(SendFlags::MORE, bytes, wait, until)
    }

    fn say_with(
        &mut self,
        flags: SendFlags,
        mut bytes: &[u8],
        wait: &dyn Wait,
        until: Instant,
    ) -> Result<(), Broken> {
        if let Some(session) = &mut self.tls {
            session.writer().write_all(bytes).map_err(FileError::io("encrypt a request"))?;
            return self.flush_with(flags, wait, until);
        }
        while !bytes.is_empty() {
            match Raw(&self.socket, flags).write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(cause) => self.bear(cause, wait, until)?,
            }
        }
        Ok(())
    }

    /// Writes as much payload as there is room for, without waiting: an error of the kind `WouldBlock` if there is
    /// none.
    pub(crate) fn write(&mut self, payload: &[u8]) -> io::Result<usize> {
        let Some(session) = &mut self.tls else {
            return Raw(&self.socket, SendFlags::empty()).write(payload);
        };
        while session.wants_write() {
            session.write_tls(&mut Raw(&self.socket, SendFlags::empty()))?;
        }
        let taken = session.writer().write(payload)?;
        while session.wants_write() {
            match session.write_tls(&mut Raw(&self.socket, SendFlags::empty())) {
                // The rest is sent before the next payload.
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                sent => _ = sent?,
            }
        }
        Ok(taken)
    }

    /// Ends this end's stream, so that the peer reads to the end.
    pub(crate) fn end(&mut self, wait: &dyn Wait, until: Instant) -> Result<(), FileError> {
        if let Some(session) = &mut self.tls {
            session.send_close_notify();
            self.flush(wait, until).map_err(Broken::error)?;
        }
        shutdown(&self.socket, Shutdown::Write)
            .map_err(|cause| FileError::io("end the payload")(cause.into()))
    }

    /// Waits until `until` for input. Returns whether there is any.
    pub(crate) fn is_spoken_on(
        &mut self,
        wait: &dyn Wait,
        until: Instant,
    ) -> Result<bool, FileError> {
        loop {
            let seen = match &self.tls {
                Some(_) if !self.pending.is_empty() => Ok(1),
                // Some encrypted records contain no data.
                Some(_) => {
                    let mut words = vec![0; LOOK_BYTES];
                    let read = self.read(&mut words);
                    self.pending.extend(&words[..*read.as_ref().unwrap_or(&0)]);
                    read
                }
                None => {
                    let seen = recv(&self.socket, &mut [0], RecvFlags::PEEK);
                    seen.map(|(seen, _)| seen).map_err(Into::into)
                }
            };
            match seen {
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() >= until {
                        return Ok(false);
                    }
                    self.wait(wait, Ready::Read, until)?;
                }
                // The next read will show what it is.
                _ => return Ok(true),
            }
        }
    }

    /// Writes encrypted data that was not sent yet.
    pub(crate) fn flush(&mut self, wait: &dyn Wait, until: Instant) -> Result<(), Broken> {
        self.flush_with(SendFlags::empty(), wait, until)
    }

    fn flush_with(
        &mut self,
        flags: SendFlags,
        wait: &dyn Wait,
        until: Instant,
    ) -> Result<(), Broken> {
        while let Some(session) = self.tls.as_mut().filter(|session| session.wants_write()) {
            if let Err(cause) = session.write_tls(&mut Raw(&self.socket, flags)) {
                self.bear(cause, wait, until)?;
            }
        }
        Ok(())
    }

    /// Waits after a failed write, if a retry makes sense.
    fn bear(&self, cause: io::Error, wait: &dyn Wait, until: Instant) -> Result<(), Broken> {
        match cause.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock => Ok(self.wait(wait, Ready::Write, until)?),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Err(Broken::Before),
            _ => Err(FileError::io("send a request")(cause).into()),
        }
    }

    /// Reads text of up to `most` bytes, and nothing after it.
    pub(crate) fn hear<T>(
        &mut self,
        most: usize,
        wait: &dyn Wait,
        until: Instant,
        mut parse: impl FnMut(&[u8]) -> Parsed<T>,
    ) -> Result<Heard<T>, Broken> {
        let mut words = std::mem::take(&mut self.pending);
        let (mut fresh, mut first, mut over) = (words.len(), None, 0);
        loop {
            if fresh == 0 {
                fresh = self.look(&mut words, wait, until, first.is_some())?;
            }
            let first = *first.get_or_insert_with(Instant::now);
            let mut at = 0;
            loop {
                let (used, said) = parse(&words[at..])?;
                at += used;
                if let Some(said) = said {
                    self.leave(words, at, fresh)?;
                    return Ok(Heard { said, first });
                }
                if used == 0 {
                    break;
                }
            }
            self.take(fresh)?;
            fresh = 0;
            // Ignored text counts, too: there may be any amount of it.
            words.drain(..at);
            over += at;
            if over + words.len() > most {
                let why = format!("the server's answer has a header of more than {most} bytes");
                return Err(FileError::Protocol(why).into());
            }
        }
    }

    /// Peeks at incoming data, adds it to `words`, and returns its length. On a plain connection the data stays in the
    /// socket.
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
            let seen = match &self.tls {
                Some(_) => self.read(&mut words[at..]),
                None => recv(&self.socket, &mut words[at..], RecvFlags::PEEK)
                    .map(|(seen, _)| seen)
                    .map_err(Into::into),
            };
            match seen {
                Ok(0) if !began => return Err(Broken::Before),
                Ok(0) => {
                    let why = "the server closed the connection in the middle of its answer";
                    return Err(FileError::Protocol(why.into()).into());
                }
                Ok(seen) => {
                    words.truncate(at + seen);
                    return Ok(seen);
                }
                Err(cause) => match cause.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => self.wait(wait, Ready::Read, until)?,
                    ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof if !began => {
                        return Err(Broken::Before);
                    }
                    _ => return Err(FileError::io("read an answer")(cause).into()),
                },
            }
        }
    }

    /// Puts back everything after the first `used` bytes of `words`; the last `fresh` bytes were only peeked at.
    fn leave(&mut self, mut words: Vec<u8>, used: usize, fresh: usize) -> Result<(), FileError> {
        if self.is_encrypted() {
            self.pending = words.split_off(used);
            return Ok(());
        }
        self.take(fresh.saturating_sub(words.len() - used))
    }

    /// Removes peeked `bytes` from the socket.
    fn take(&mut self, bytes: usize) -> Result<(), FileError> {
        if self.is_encrypted() {
            return Ok(());
        }
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

    /// Reads incoming data, decrypted, without waiting.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if !self.pending.is_empty() {
            let taken = self.pending.len().min(room.len());
            room[..taken].copy_from_slice(&self.pending[..taken]);
            self.pending.drain(..taken);
            return Ok(taken);
        }
        let Some(session) = &mut self.tls else {
            return Raw(&self.socket, SendFlags::empty()).read(room);
        };
        loop {
            match session.reader().read(room) {
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
            session.read_tls(&mut self.ahead.of(&self.socket))?;
            session.process_new_packets().map_err(|why| {
                let why = tls_words::of_tls(&why);
                io::Error::other(format!("what the server sends by TLS can't be read: {why}"))
            })?;
            if session.wants_write() {
                // The rest is sent with the next request.
                let _ = session.write_tls(&mut Raw(&self.socket, SendFlags::empty()));
            }
        }
    }

    /// Waits until the socket is ready; an error after the deadline.
    pub(crate) fn wait(
        &self,
        wait: &dyn Wait,
        ready: Ready,
        until: Instant,
    ) -> Result<(), FileError> {
        if Instant::now() >= until {
            return Err(FileError::TimedOut("the server did not answer in time".into()));
        }
        if self.prompt && ready == Ready::Read {
            // If this fails, answers only take longer. The kernel resets this now and then (tcp(7)).
            let _ = rustix::net::sockopt::set_tcp_quickack(&self.socket, true);
        }
        wait.wait(self.socket.as_fd(), ready, until)
    }
}
