//! NFS version 3 (RFC 1813) over TCP, as a program of any user: no mount, no cache, and many READs in flight.

mod calls;
mod dialogue;
mod find;
mod log;
mod pipeline;
mod reading;
mod rpc;
mod xdr;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::conversation::{About, Body, Conversation, Extent, Options, Scheme};
use crate::error::FileError;
use crate::link::{Dial, Wait};
use crate::place::Place;
use find::Found;
use pipeline::{Pipeline, Reads};
use reading::Reading;

pub use log::{RpcLog, Rpcs};

/// The registry's entry.
pub const NFS: Scheme = Scheme {
    id: "nfs",
    summary: "read a file of an NFS server (version 3, TCP)",
    port: 2049,
    decoded: true,
    low_port: true,
    lone_user: false,
    open,
};

/// Bytes of one READ, if the server takes that many and nobody says otherwise.
const DEFAULT_CALL_BYTES: u32 = 1 << 20;
/// READs in flight, if nobody says otherwise.
const DEFAULT_SLOTS: u16 = 16;
/// READs in flight at most.
pub const MOST_SLOTS: u16 = 1024;

/// How long to rest before each of the connections that take the place of one that broke, until one brings payload.
/// After the last the server is given up.
const RECONNECT_PAUSES: [Duration; 3] =
    [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(4)];

/// How files of NFS servers are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NfsOptions {
    /// Bytes of one READ; `None`: 1 MiB, or what the server takes at most.
    pub read_bytes: Option<u32>,
    /// READs in flight, 1 to [`MOST_SLOTS`]; `None`: 16.
    pub slots: Option<u16>,
}

fn open(place: Place, options: Arc<Options>, dial: Box<dyn Dial>) -> Box<dyn Conversation> {
    Box::new(Nfs {
        place,
        options: options.nfs,
        dial,
        reading: None,
        port: 0,
        fruitless: 0,
        log: Arc::default(),
    })
}

/// A conversation with an NFS server.
struct Nfs {
    place: Place,
    options: NfsOptions,
    dial: Box<dyn Dial>,
    reading: Option<Reading>,
    /// Where NFS listens, once that is known.
    port: u16,
    /// Connections in a row that brought no payload.
    fruitless: usize,
    log: Arc<RpcLog>,
}

impl Conversation for Nfs {
    fn connect(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        if self.reading.is_none() {
            let found = find::find(&self.place, self.dial.as_mut(), wait)?;
            self.port = found.port;
            self.reading = Some(self.begin(found)?);
            self.fruitless = 0;
        }
        Ok(())
    }

    fn fetch(&mut self, wait: &dyn Wait) -> Result<Body, FileError> {
        let goes_on = self.is_cut();
        if !goes_on && self.reading.as_ref().is_some_and(|reading| !reading.is_over()) {
            self.hang_up();
        }
        let mut anew = goes_on || self.reading.is_none();
        self.connect(wait)?;
        let asked = if goes_on { Instant::now() } else { self.reading()?.begin_pass()? };
        loop {
            if self.reading()?.lost().is_some() {
                self.reconnect(wait)?;
                anew = true;
            }
            self.reading()?.await_payload(wait)?;
            if self.reading()?.lost().is_none() {
                break;
            }
        }
        let announced_bytes = Some(self.reading()?.file_bytes());
        let answered = Instant::now();
        Ok(Body { extent: Extent::Decoded, announced_bytes, anew, asked, answered })
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.reading.as_mut().map_or(Ok(0), |reading| reading.read(room))?;
        if read > 0 {
            self.fruitless = 0;
        }
        Ok(read)
    }

    fn is_cut(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| !reading.is_over() && reading.lost().is_some())
    }

    fn cut(&mut self, why: &str) -> bool {
        self.reading.iter_mut().for_each(|reading| reading.lose(why));
        self.is_cut()
    }

    fn socket(&self) -> Option<&OwnedFd> {
        self.reading.as_ref().map(Reading::socket)
    }

    fn hang_up(&mut self) {
        self.reading = None;
    }

    fn about(&self) -> About {
        About { version: Some("NFSv3".into()), ..About::default() }
    }

    fn rpcs(&self) -> Option<Arc<RpcLog>> {
        Some(Arc::clone(&self.log))
    }
}

impl Nfs {
    fn reading(&mut self) -> Result<&mut Reading, FileError> {
        self.reading.as_mut().ok_or_else(|| FileError::Protocol("there is no connection".into()))
    }

    /// Connects again, and sends the calls again that are not answered. A file handle outlives the connection, and a
    /// restart of the server too (RFC 1813 section 2.3.1), so the file need not be found again.
    fn reconnect(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        let mut broke = self.reading()?.lost().unwrap_or("the connection broke").to_owned();
        loop {
            let Some(rest) = RECONNECT_PAUSES.get(self.fruitless) else {
                let times = RECONNECT_PAUSES.len();
                return Err(FileError::TimedOut(format!(
                    "{broke}; {times} new connections in a row brought no payload"
                )));
            };
            self.fruitless += 1;
            wait.rest(Instant::now() + *rest)?;
            match self.dial.connect(self.place.host(), self.port, wait) {
                Ok(socket) => return self.reading()?.renew(Connection::new(socket)?),
                Err(FileError::Stopped) => return Err(FileError::Stopped),
                Err(why) => broke = why.to_string(),
            }
        }
    }

    fn begin(&self, found: Found<'_>) -> Result<Reading, FileError> {
        let most = found.most_at_once;
        let call_bytes = match self.options.read_bytes {
            Some(bytes) if bytes > most => {
                return Err(FileError::Refused(format!(
                    "the server reads at most {most} bytes at once, and {bytes} are asked for: lower nfs.rsize"
                )));
            }
            Some(bytes) => bytes.max(1),
            None => most.min(DEFAULT_CALL_BYTES),
        };
        let slots = self.options.slots.unwrap_or(DEFAULT_SLOTS).clamp(1, MOST_SLOTS);
        let (connection, credential, xid): (Connection, _, u32) = found.dialogue.into_parts();
        let reads = Reads { file: found.file, file_bytes: found.bytes, call_bytes, slots };
        let pipeline = Pipeline::new(reads, credential, Arc::clone(&self.log), xid);
        Ok(Reading::new(connection, pipeline))
    }
}
