//! One call after the other: what has to be known before the file can be read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::calls::{self, Attributes, Handle, PORTMAP_PORT};
use super::rpc::{self, Credential, Procedure};
use super::xdr::{Reader, Unread};
use crate::connection::{Broken, Connection};
use crate::error::FileError;
use crate::link::{Dial, Wait};

/// How long one answer may take.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of an answer at most. The longest is that to MNT, with a list of flavours.
const ANSWER_BYTES: usize = 16 << 10;

/// Calls on one connection.
pub struct Dialogue<'a> {
    wait: &'a dyn Wait,
    connection: Connection,
    credential: Credential,
    xid: u32,
}

impl<'a> Dialogue<'a> {
    pub fn connect(
        dial: &mut dyn Dial,
        host: &str,
        port: u16,
        wait: &'a dyn Wait,
    ) -> Result<Self, FileError> {
        let connection = Connection::new(dial.connect(host, port, wait)?)?;
        Ok(Self { wait, connection, credential: Credential::own(), xid: first_xid() })
    }

    /// The connection, whose last call was answered, and the number of the next call.
    pub fn into_parts(self) -> (Connection, Credential, u32) {
        (self.connection, self.credential, self.xid)
    }

    pub fn socket(&self) -> &OwnedFd {
        self.connection.socket()
    }

    /// Calls, and reads the results.
    pub fn call<T>(
        &mut self,
        procedure: Procedure,
        args: impl FnOnce(&mut Vec<u8>),
        results: impl Fn(&mut Reader<'_>) -> Result<T, Unread>,
    ) -> Result<T, FileError> {
        let (xid, until) = (self.xid, Instant::now() + REPLY_TIMEOUT);
        self.xid = xid.wrapping_add(1);
        let mut out = Vec::new();
        rpc::call(&mut out, xid, procedure, &self.credential, args);
        let said = self.connection.say(&out, self.wait, until).and_then(|()| {
            self.connection.hear(ANSWER_BYTES, self.wait, until, |bytes| match rpc::record(bytes) {
                Some((used, whole)) => Ok((used, Some(whole))),
                None => Ok((0, None)),
            })
        });
        let heard = said.map_err(|why| in_words(procedure, why))?;
        let answer = answer(&heard.said, xid, procedure, results);
        answer.map_err(|why| rpc::with_advice(why, self.connection.socket()))
    }

    /// Where a program listens.
    pub fn port(&mut self, of: Procedure, what: &str) -> Result<u16, FileError> {
        let port = self.call(calls::GETPORT, |out| calls::port_args(out, of), calls::port)?;
        port.ok_or_else(|| {
            FileError::Refused(format!(
                "the server's port mapper has no {what} version {} over TCP",
                of.version
            ))
        })
    }

    pub fn lookup(
        &mut self,
        directory: &Handle,
        name: &[u8],
    ) -> Result<(Handle, Attributes), FileError> {
        let args = |out: &mut Vec<u8>| calls::lookup_args(out, directory, name);
        let (found, attributes) = self.call(calls::LOOKUP, args, calls::found)?;
        let attributes = match attributes {
            Some(attributes) => attributes,
            None => self.call(
                calls::GETATTR,
                |out| super::xdr::put_opaque(out, &found.0),
                calls::attributes_of,
            )?,
        };
        Ok((found, attributes))
    }

    /// Bytes that one READ brings at most.
    pub fn most_at_once(&mut self, file: &Handle) -> Result<u32, FileError> {
        let args = |out: &mut Vec<u8>| super::xdr::put_opaque(out, &file.0);
        let most = self.call(calls::FSINFO, args, calls::most_at_once)?;
        if most == 0 {
            return Err(FileError::Protocol("FSINFO: the server reads 0 bytes at most".into()));
        }
        Ok(most)
    }
}

/// Asks the port mapper of a host.
pub fn ports(
    dial: &mut dyn Dial,
    host: &str,
    of: &[(Procedure, &str)],
    wait: &dyn Wait,
) -> Result<Vec<u16>, FileError> {
    let mapper = Dialogue::connect(dial, host, PORTMAP_PORT, wait);
    let mut mapper = mapper.map_err(|why| match why {
        FileError::Refused(why) => FileError::Refused(format!(
            "{why}: NFS version 3 is found by the port mapper; name the port of a server without one, as in \
             nfs://{host}:2049/…?mountport=20048"
        )),
        other => other,
    })?;
    of.iter().map(|(procedure, what)| mapper.port(*procedure, what)).collect()
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

/// Says which call a server did not execute.
fn named(why: Unread, name: &str) -> Unread {
    match why {
        Unread::Failed(FileError::Refused(why)) => {
            FileError::Refused(format!("{name}: {why}")).into()
        }
        Unread::Failed(FileError::NotPermitted(why)) => {
            FileError::NotPermitted(format!("{name}: {why}")).into()
        }
        other => other,
    }
}

fn in_words(procedure: Procedure, why: Broken) -> FileError {
    let name = procedure.name;
    match why {
        Broken::Before => FileError::Protocol(format!(
            "{name}: the server closed the connection without an answer"
        )),
        Broken::Error(FileError::TimedOut(_)) => {
            let seconds = REPLY_TIMEOUT.as_secs();
            FileError::TimedOut(format!("{name}: the server did not answer within {seconds} s"))
        }
        Broken::Error(why) => why,
    }
}

/// A number that an earlier connection of this host has hardly used: a server may take the same one for a repetition.
fn first_xid() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u32)
}

/// Waits until a socket is ready, for `most` at most.
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
