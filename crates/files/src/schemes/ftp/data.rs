//! A data connection, for one file.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

use super::REPLY_TIMEOUT;
use super::control::Control;
use crate::connection::Connection;
use crate::error::FileError;
use crate::link::{Dial, Ready, Wait};
use crate::place::Place;

/// A data connection.
pub(super) struct Data {
    connection: Connection,
    /// Announced bytes, and how many have passed through this end; only if announced.
    announced: Option<u64>,
    read: u64,
}

impl Data {
    /// Connects to the server's data port: always at the host of the control connection, whatever address the server
    /// sends.
    pub(super) fn open(
        place: &Place,
        control: &mut Control,
        dial: &mut dyn Dial,
        wait: &dyn Wait,
    ) -> Result<Self, FileError> {
        let port = control.passive(wait)?;
        let connection = Connection::new(dial.connect(&place.address(), port, wait)?)?;
        Ok(Self { connection, announced: None, read: 0 })
    }

    /// Waits for the first byte, or for the end if there is none.
    pub(super) fn begin(
        &mut self,
        control: &Control,
        host: &str,
        announced: Option<u64>,
        wait: &dyn Wait,
    ) -> Result<(), FileError> {
        self.announced = announced;
        self.encrypt(control, host, wait)?;
        self.look(wait, Instant::now() + REPLY_TIMEOUT).map(drop)
    }

    /// Encrypts everything after this, if agreed.
    pub(super) fn encrypt(
        &mut self,
        control: &Control,
        host: &str,
        wait: &dyn Wait,
    ) -> Result<(), FileError> {
        match &control.tls {
            Some(tls) => self.connection.encrypt(tls, host, wait, Instant::now() + REPLY_TIMEOUT),
            None => Ok(()),
        }
    }

    /// Writes payload, without waiting.
    pub(super) fn write(&mut self, payload: &[u8]) -> io::Result<usize> {
        self.connection.write(payload)
    }

    /// All payload was written: ends the stream.
    pub(super) fn end_of_file(
        &mut self,
        patience: Duration,
        wait: &dyn Wait,
    ) -> Result<(), FileError> {
        self.connection.end(wait, Instant::now() + patience)
    }

    /// Waits until there is something to read. Returns whether it is more than the end.
    fn look(&self, wait: &dyn Wait, until: Instant) -> Result<bool, FileError> {
        loop {
            match recv(self.connection.socket(), &mut [0], RecvFlags::PEEK) {
                Ok((seen, _)) => return Ok(seen > 0),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.connection.wait(wait, Ready::Read, until)?,
                Err(cause) => {
                    let operation = "read the connection for data".into();
                    return Err(FileError::Io { operation, cause: cause.into() });
                }
            }
        }
    }

    /// The payload was read: nothing may remain.
    pub(super) fn end(self, wait: &dyn Wait) -> Result<(), FileError> {
        if !self.connection.is_encrypted()
            && let (true, Some(bytes)) =
                (self.look(wait, Instant::now() + REPLY_TIMEOUT)?, self.announced)
        {
            return Err(FileError::Protocol(format!(
                "the server sends more than the {bytes} bytes that it had announced"
            )));
        }
        // A server may wait until the end of its stream is acknowledged, which otherwise takes 40 ms. The connection
        // is over even if this fails.
        let _ = shutdown(self.connection.socket(), Shutdown::Write);
        Ok(())
    }

    /// Reads encrypted payload, without waiting; zero is its end.
    pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = match self.connection.read(room) {
            // Many servers end such a connection without a close alert; the announced length shows whether the file is
            // complete.
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof && self.announced.is_some() => 0,
            outcome => outcome?,
        };
        self.read += read as u64;
        match self.announced {
            Some(bytes) if self.read > bytes || (read == 0 && self.read < bytes) => {
                Err(io::Error::other(format!(
                    "the server sent {} bytes, though it had announced {bytes}",
                    self.read
                )))
            }
            _ => Ok(read),
        }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}
