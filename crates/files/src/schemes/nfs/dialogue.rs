//! One call after the other: preparations and conclusions of a transfer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::time::Timespec;

use super::calls::{self, Attributes, Handle, Limits, Verifier};
use super::later;
use super::rpc::{self, Credential, Procedure};
use super::xdr::{Reader, Unread, put_opaque};
use crate::connection::{Broken, Connection};
use crate::error::FileError;
use crate::link::{Dial, Ready, Wait};

/// Longest answer, bytes. The longest is MNT's, with a list of flavours.
const ANSWER_BYTES: usize = 16 << 10;

/// Calls on one connection.
pub struct Dialogue {
    connection: Connection,
    credential: Credential,
    xid: u32,
    /// Calls that the server asked to repeat later.
    put_off: u64,
}

impl Dialogue {
    pub fn connect(
        dial: &mut dyn Dial,
        host: &str,
        port: u16,
        wait: &dyn Wait,
    ) -> Result<Self, FileError> {
        let connection = connection(dial.connect(host, port, wait)?)?;
        Ok(Self { connection, credential: Credential::own(), xid: first_xid(), put_off: 0 })
    }

    /// The connection, whose last call was answered, and the number of the next call.
    pub fn into_parts(self) -> (Connection, Credential, u32) {
        (self.connection, self.credential, self.xid)
    }

    pub fn socket(&self) -> &OwnedFd {
        self.connection.socket()
    }

    /// Waits until the socket is ready; an error after the deadline.
    pub fn wait(&self, wait: &dyn Wait, ready: Ready, until: Instant) -> Result<(), FileError> {
        self.connection.wait(wait, ready, until)
    }

    /// Adds a call whose last `tail` bytes the caller sends, and returns its number. This function doesn't wait for
    /// the answer.
    pub fn begin_call(
        &mut self,
        out: &mut Vec<u8>,
        procedure: Procedure,
        tail: usize,
        args: impl FnOnce(&mut Vec<u8>),
    ) -> u32 {
        let xid = self.xid;
        self.xid = xid.wrapping_add(1);
        rpc::call_with_tail(out, xid, procedure, &self.credential, tail, args);
        xid
    }

    /// Calls that the server asked to repeat later, since the last call of this function.
    pub fn take_put_off(&mut self) -> u64 {
        std::mem::take(&mut self.put_off)
    }

    /// Makes a call, and reads the results; repeats it if the server asks to come back later. No other call may be
    /// pending.
    pub fn call<T>(
        &mut self,
        wait: &dyn Wait,
        procedure: Procedure,
        args: impl Fn(&mut Vec<u8>),
        results: impl Fn(&mut Reader<'_>) -> Result<T, Unread>,
    ) -> Result<T, FileError> {
        for times in 1.. {
            match self.call_once(wait, procedure, &args, &results) {
                Err(FileError::Later(_)) => {
                    self.put_off += 1;
                    wait.rest(later::again_at(procedure, times, Instant::now())?)?;
                }
                answered => return answered,
            }
        }
        Err(FileError::Stopped)
    }

    fn call_once<T>(
        &mut self,
        wait: &dyn Wait,
        procedure: Procedure,
        args: impl Fn(&mut Vec<u8>),
        results: impl Fn(&mut Reader<'_>) -> Result<T, Unread>,
    ) -> Result<T, FileError> {
        let until = Instant::now() + procedure.patience;
        let mut out = Vec::new();
        let xid = self.begin_call(&mut out, procedure, 0, args);
        let said = self.connection.say(&out, wait, until).and_then(|()| {
            self.connection.hear(ANSWER_BYTES, wait, until, |bytes| match rpc::record(bytes) {
                Some((used, whole)) => Ok((used, Some(whole))),
                None => Ok((0, None)),
            })
        });
        let heard = said.map_err(|why| in_words(procedure, why))?;
        let answer = answer(&heard.said, xid, procedure, results);
        answer.map_err(|why| rpc::with_advice(why, self.connection.socket()))
    }

    pub fn lookup(
        &mut self,
        wait: &dyn Wait,
        directory: &Handle,
        name: &[u8],
    ) -> Result<(Handle, Attributes), FileError> {
        let args = |out: &mut Vec<u8>| calls::entry_args(out, directory, name);
        let (found, attributes) = self.call(wait, calls::LOOKUP, args, calls::found)?;
        let attributes = match attributes {
            Some(attributes) => attributes,
            None => self.call(
                wait,
                calls::GETATTR,
                |out| put_opaque(out, &found.0),
                calls::attributes_of,
            )?,
        };
        Ok((found, attributes))
    }

    /// Most payload of one call.
    pub fn limits(&mut self, wait: &dyn Wait, file: &Handle) -> Result<Limits, FileError> {
        self.call(wait, calls::FSINFO, |out| put_opaque(out, &file.0), calls::limits)
    }

    /// Makes a file without content, or empties an existing one.
    pub fn create(
        &mut self,
        wait: &dyn Wait,
        directory: &Handle,
        name: &[u8],
    ) -> Result<Handle, FileError> {
        let args = |out: &mut Vec<u8>| calls::create_args(out, directory, name);
        if let Some(made) = self.call(wait, calls::CREATE, args, calls::created)? {
            return Ok(made);
        }
        // It was just made, so its absence is not a refusal.
        let found = self.lookup(wait, directory, name);
        found.map(|(file, _)| file).map_err(|why| match why {
            FileError::Refused(why) | FileError::NotPermitted(why) | FileError::Distrusted(why) => {
                FileError::Protocol(format!("after CREATE: {why}"))
            }
            why => why,
        })
    }

    /// Empties a file.
    pub fn empty(&mut self, wait: &dyn Wait, file: &Handle) -> Result<(), FileError> {
        self.call(wait, calls::SETATTR, |out| calls::empty_args(out, file), calls::emptied)
    }

    /// Removes a file. Returns whether it existed.
    pub fn remove(
        &mut self,
        wait: &dyn Wait,
        directory: &Handle,
        name: &[u8],
    ) -> Result<bool, FileError> {
        let args = |out: &mut Vec<u8>| calls::entry_args(out, directory, name);
        // A user who may not remove files may still see that there is nothing to remove.
        let is_there = self.call(wait, calls::LOOKUP, args, calls::is_there)?;
        Ok(is_there && self.call(wait, calls::REMOVE, args, calls::removed)?)
    }

    /// Asks the server to flush a file's written data to disk.
    pub fn commit(&mut self, wait: &dyn Wait, file: &Handle) -> Result<Verifier, FileError> {
        self.call(wait, calls::COMMIT, |out| calls::commit_args(out, file), calls::committed)
    }
}

/// A connection on which no call waits for the acknowledgement of the previous one (RFC 896).
pub fn connection(socket: OwnedFd) -> Result<Connection, FileError> {
    // If this fails, calls only take longer.
    let _ = set_tcp_nodelay(&socket, true);
    Connection::new(socket)
}

fn answer<T>(
    bytes: &[u8],
    xid: u32,
    procedure: Procedure,
    results: impl Fn(&mut Reader<'_>) -> Result<T, Unread>,
) -> Result<T, FileError> {
    let name = procedure.name;
    let mut reader = Reader::new(bytes);
    let answered = rpc::reply(&mut reader).map_err(|why| named(why, name));
    match answered.and_then(|answered| Ok((answered, results(&mut reader)?))) {
        Ok((answered, results)) if answered == xid => Ok(results),
        Ok(_) => {
            Err(FileError::Protocol(format!("{name}: the server answers a call that was not made")))
        }
        Err(Unread::Short) => {
            Err(FileError::Protocol(format!("{name}: the server's answer is cut short")))
        }
        Err(Unread::Failed(why)) => Err(why),
    }
}

/// Names the call that a server did not execute.
fn named(why: Unread, name: &str) -> Unread {
    match why {
        Unread::Failed(why) => why.after(name).into(),
        Unread::Short => Unread::Short,
    }
}

fn in_words(procedure: Procedure, why: Broken) -> FileError {
    let name = procedure.name;
    match why {
        Broken::Before => FileError::Protocol(format!(
            "{name}: the server closed the connection without an answer"
        )),
        Broken::Error(FileError::TimedOut(_)) => {
            let seconds = procedure.patience.as_secs();
            FileError::TimedOut(format!("{name}: the server did not answer within {seconds} s"))
        }
        Broken::Error(why) => why,
    }
}

/// A number that an earlier connection of this host has hardly used: a server may treat a repeated number as a
/// retransmission.
fn first_xid() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u32)
}

/// Waits until a socket is ready, for at most `most`.
pub fn wait_for(
    socket: BorrowedFd<'_>,
    events: PollFlags,
    most: Duration,
) -> Result<(), FileError> {
    let most = Timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    match poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), events)], Some(&most)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(cause) => Err(FileError::io("wait for the server")(cause.into())),
    }
}
