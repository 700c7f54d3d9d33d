//! NFS version 3 (RFC 1813) over TCP, for programs of any user: no mount, no cache, and many READs or WRITEs in
//! flight.

mod calls;
mod dialogue;
mod find;
mod later;
mod mapper;
mod pipeline;
mod reading;
mod rpc;
mod writing;
mod xdr;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::conversation::{About, Body, Client, Conversation, Extent};
use crate::error::FileError;
use crate::link::{Dial, Ready, Wait};
use crate::options::{MOST_SLOTS, NfsOptions, Options};
use crate::place::Place;
use crate::rpc_log::RpcLog;
use crate::scheme::Scheme;
use find::Directory;
use pipeline::{Pipeline, Reads};
use reading::Reading;
use writing::{Writes, Writing};

/// The registry's entry.
pub const NFS: Client = Client {
    scheme: Scheme {
        id: "nfs",
        summary: "read or write a file of an NFS server (version 3, TCP)",
        port: 2049,
        decoded: true,
        low_port: true,
        password: false,
        lone_user: false,
        server_query: true,
    },
    open,
};

/// Default payload of one READ or WRITE, if the server accepts that many bytes.
const DEFAULT_CALL_BYTES: u32 = 1 << 20;
/// Default number of calls in flight.
const DEFAULT_SLOTS: u16 = 16;

/// Pauses before each replacement of a broken connection, until one carries payload. After the last, the server is
/// given up.
const RECONNECT_PAUSES: [Duration; 3] =
    [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(4)];

fn open(place: Place, options: Arc<Options>, dial: Box<dyn Dial>) -> Box<dyn Conversation> {
    Box::new(Nfs {
        place,
        options: options.nfs,
        dial,
        found: None,
        reading: None,
        writing: None,
        wanted: u64::MAX,
        refused: None,
        port: 0,
        fruitless: 0,
        broke: None,
        log: Arc::default(),
    })
}

/// A conversation with an NFS server.
struct Nfs {
    place: Place,
    options: NfsOptions,
    dial: Box<dyn Dial>,
    /// The directory of the file, on a connection that carries no payload.
    found: Option<Directory>,
    reading: Option<Reading>,
    writing: Option<Writing>,
    /// Bytes that are wanted of all passes; `u64::MAX`: any number.
    wanted: u64,
    /// Why the last write failed.
    refused: Option<FileError>,
    /// NFS's port, once it is known.
    port: u16,
    /// Consecutive connections that carried no payload.
    fruitless: usize,
    /// Why the last one broke, until another carries payload.
    broke: Option<String>,
    log: Arc<RpcLog>,
}

impl Conversation for Nfs {
    fn connect(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        if !self.is_connected() {
            self.found = Some(find::find(&self.place, self.dial.as_mut(), wait)?);
        }
        Ok(())
    }

    fn fetch(&mut self, wait: &dyn Wait) -> Result<Body, FileError> {
        let goes_on = self.is_cut();
        if !goes_on && self.reading.as_ref().is_some_and(|reading| !reading.is_over()) {
            self.hang_up();
        }
        let mut anew = goes_on || !self.is_connected();
        if self.reading.is_none() {
            self.begin_reading(wait)?;
        }
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

    fn want(&mut self, bytes: u64) {
        self.wanted = bytes;
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.reading.as_mut().map_or(Ok(0), |reading| reading.read(room))?;
        if read > 0 {
            (self.fruitless, self.broke) = (0, None);
        }
        Ok(read)
    }

    fn store(&mut self, bytes: Option<u64>, wait: &dyn Wait) -> Result<Body, FileError> {
        if self.writing.as_ref().is_some_and(|writing| !writing.is_over()) {
            self.hang_up();
        }
        let anew = !self.is_connected();
        let asked;
        match &mut self.writing {
            Some(writing) => {
                asked = Instant::now();
                // The file exists, even if this fails.
                writing.empty(wait).map_err(FileError::after_payload)?;
            }
            None => {
                self.connect(wait)?;
                asked = Instant::now();
                self.begin_writing(wait)?;
            }
        }
        self.writing.iter_mut().for_each(|writing| writing.expect(bytes));
        let answered = Instant::now();
        Ok(Body { extent: Extent::Decoded, announced_bytes: bytes, anew, asked, answered })
    }

    fn write(&mut self, payload: &[u8]) -> io::Result<usize> {
        let Some(writing) = &mut self.writing else { return Ok(0) };
        match writing.write(payload) {
            Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
            Ok(written) => Ok(written),
            Err(why) => {
                let kind = match why.not_permitted() {
                    true => io::ErrorKind::PermissionDenied,
                    false => io::ErrorKind::Other,
                };
                let error = io::Error::new(kind, why.to_string());
                self.refused = Some(why);
                Err(error)
            }
        }
    }

    fn refusal(&mut self, wait: &dyn Wait) -> Option<FileError> {
        match self.refused.take()? {
            why if why.is_refusal() => Some(self.take_back(why, wait)),
            why => Some(why),
        }
    }

    fn awaits(&self) -> Ready {
        self.writing.as_ref().map_or(Ready::Write, Writing::awaits)
    }

    fn stored(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        let finished = self.writing.as_mut().map_or(Ok(()), |writing| writing.finish(wait));
        match finished {
            Err(why) if why.is_refusal() => Err(self.take_back(why, wait)),
            finished => finished,
        }
    }

    fn remove(&mut self, wait: &dyn Wait) -> Result<bool, FileError> {
        match self.writing.take() {
            Some(writing) if writing.is_over() => self.found = Some(writing.into_directory()),
            Some(_) => self.hang_up(),
            None => {}
        }
        self.connect(wait)?;
        let Directory { dialogue, handle, name, .. } = self.found()?;
        dialogue.remove(wait, handle, name)
    }

    fn is_cut(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| !reading.is_over() && reading.lost().is_some())
    }

    fn cut(&mut self, why: &str) -> bool {
        self.reading.iter_mut().for_each(|reading| reading.lose(why));
        self.is_cut()
    }

    fn broken(&self) -> Option<String> {
        let broke = self.broke.as_ref()?;
        Some(format!("{broke}; {} new connections in a row brought no payload", self.fruitless))
    }

    fn resumes_at(&self) -> Option<Instant> {
        let reading = self.reading.as_ref().and_then(Reading::resumes_at);
        reading.or_else(|| self.writing.as_ref().and_then(Writing::resumes_at))
    }

    fn asks_ahead(&self) -> bool {
        self.reading.as_ref().is_some_and(Reading::asks_ahead)
    }

    fn socket(&self) -> Option<&OwnedFd> {
        let found = self.found.as_ref().map(|found| found.dialogue.socket());
        let reading = self.reading.as_ref().map(Reading::socket);
        reading.or(self.writing.as_ref().map(Writing::socket)).or(found)
    }

    fn hang_up(&mut self) {
        (self.found, self.reading, self.writing) = (None, None, None);
    }

    fn about(&self) -> About {
        About { version: Some("NFSv3".into()), ..About::default() }
    }

    fn rpcs(&self) -> Option<Arc<RpcLog>> {
        Some(Arc::clone(&self.log))
    }
}

impl Nfs {
    fn is_connected(&self) -> bool {
        self.found.is_some() || self.reading.is_some() || self.writing.is_some()
    }

    /// Removes a file that the server made and then refused to fill, so that no trace remains.
    fn take_back(&mut self, refusal: FileError, wait: &dyn Wait) -> FileError {
        match self.remove(wait) {
            Ok(_) => refusal,
            Err(why) => FileError::Protocol(format!("{refusal}; the file stays, as {why}")),
        }
    }

    fn found(&mut self) -> Result<&mut Directory, FileError> {
        self.found.as_mut().ok_or_else(gone)
    }

    fn reading(&mut self) -> Result<&mut Reading, FileError> {
        self.reading.as_mut().ok_or_else(gone)
    }

    /// Connects again, and repeats the unanswered calls. A file handle outlives the connection, and even a restart of
    /// the server (RFC 1813 section 2.3.1), so the file need not be found again.
    fn reconnect(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        let mut broke = self.reading()?.lost().unwrap_or("the connection broke").to_owned();
        loop {
            let Some(rest) = RECONNECT_PAUSES.get(self.fruitless) else {
                let times = RECONNECT_PAUSES.len();
                return Err(FileError::TimedOut(format!(
                    "{broke}; {times} new connections in a row brought no payload"
                )));
            };
            self.broke = Some(broke);
            self.fruitless += 1;
            wait.rest(Instant::now() + *rest)?;
            match self.dial.connect(&self.place.address(), self.port, wait) {
                Ok(socket) => return self.reading()?.renew(dialogue::connection(socket)?),
                Err(FileError::Stopped) => return Err(FileError::Stopped),
                Err(why) => broke = why.to_string(),
            }
        }
    }

    fn begin_reading(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        self.connect(wait)?;
        let mut directory = self.found.take().ok_or_else(gone)?;
        let found = directory.file(wait)?;
        let call_bytes = call_bytes(self.options.read_bytes, found.most_at_once, "reads")?;
        let put_off = directory.dialogue.take_put_off();
        let (connection, credential, xid) = directory.dialogue.into_parts();
        let (file, file_bytes) = (found.file, found.bytes);
        let (slots, wanted) = (self.slots(), self.wanted);
        let reads = Reads { file, file_bytes, call_bytes, slots, wanted };
        let pipeline = Pipeline::new(reads, credential, Arc::clone(&self.log), xid);
        self.log.put_off(put_off);
        self.reading = Some(Reading::new(connection, pipeline));
        (self.port, self.fruitless, self.broke) = (directory.port, 0, None);
        Ok(())
    }

    fn begin_writing(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        let mut directory = self.found.take().ok_or_else(gone)?;
        let most = directory.dialogue.limits(wait, &directory.handle)?.write_bytes;
        let call_bytes = call_bytes(self.options.write_bytes, most, "writes")?;
        let writes = Writes { call_bytes, slots: self.slots() };
        self.writing = Some(Writing::begin(directory, writes, Arc::clone(&self.log), wait)?);
        Ok(())
    }

    fn slots(&self) -> u16 {
        self.options.slots.unwrap_or(DEFAULT_SLOTS).clamp(1, MOST_SLOTS)
    }
}

/// Bytes of one call: as requested, up to the server's maximum, as the kernel's client does it.
fn call_bytes(asked: Option<u32>, most: u32, does: &str) -> Result<u32, FileError> {
    if most == 0 {
        return Err(FileError::Protocol(format!("FSINFO: the server {does} 0 bytes at most")));
    }
    Ok(asked.unwrap_or(DEFAULT_CALL_BYTES).clamp(1, most))
}

fn gone() -> FileError {
    FileError::Protocol("there is no connection".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_nothing_is_an_error_only_where_it_counts() {
        let bytes = |asked, most| call_bytes(asked, most, "writes");
        let why = bytes(None, 0).unwrap_err().to_string();
        assert!(why.contains("writes 0 bytes at most"), "{why}");
        assert!(bytes(Some(1), 0).is_err());
        assert_eq!(bytes(None, 1000).ok(), Some(1000));
        assert_eq!(bytes(Some(1 << 20), 1 << 18).ok(), Some(1 << 18), "what the server allows");
    }
}
