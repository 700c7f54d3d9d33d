//! FTP (RFC 959) in passive mode (EPSV, RFC 2428; else PASV), encrypted on request (RFC 4217): one control connection,
//! and a data connection for each fetch.

mod control;
mod data;
mod reply;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::conversation::{About, Body, Client, Conversation, Extent};
use crate::error::FileError;
use crate::link::{Dial, Wait};
use crate::options::Options;
use crate::patience;
use crate::place::Place;
use crate::scheme::Scheme;
use control::Control;
use data::Data;

/// The registry's entry.
pub const FTP: Client = Client {
    scheme: Scheme {
        id: "ftp",
        summary: "fetch a file from an FTP server, in passive mode",
        port: 21,
        decoded: false,
        low_port: false,
        password: true,
        lone_user: true,
        server_query: false,
    },
    open,
};

/// The same, encrypted.
pub const FTPS: Client = Client {
    scheme: Scheme {
        id: "ftps",
        summary: "fetch a file from an FTP server, encrypted (AUTH TLS)",
        port: 21,
        decoded: true,
        low_port: false,
        password: true,
        lone_user: true,
        server_query: false,
    },
    open,
};

/// Longest time for a reply, a handshake or the first byte of a file.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for the message of a server that takes no more.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

fn open(place: Place, options: Arc<Options>, dial: Box<dyn Dial>) -> Box<dyn Conversation> {
    let about = About::default();
    Box::new(Ftp { place, options, dial, control: None, data: None, storing: None, about })
}

/// A conversation with an FTP server.
struct Ftp {
    place: Place,
    options: Arc<Options>,
    dial: Box<dyn Dial>,
    control: Option<Control>,
    data: Option<Data>,
    /// Length of the file being stored, bytes; `None`: unknown.
    storing: Option<u64>,
    about: About,
}

impl Conversation for Ftp {
    fn connect(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        if self.control.is_some() {
            return Ok(());
        }
        let control = Control::open(&self.place, &self.options, self.dial.as_mut(), wait)?;
        self.about.version = Some("FTP".into());
        self.about.server = Some(control.greeting.clone());
        self.about.tls = control.tls();
        self.control = Some(control);
        Ok(())
    }

    fn fetch(&mut self, wait: &dyn Wait) -> Result<Body, FileError> {
        self.finish(wait)?;
        self.connect(wait)?;
        let Some(control) = &mut self.control else { return Err(FileError::Stopped) };
        let path = control::path(&self.place)?;
        let size = control.size(&path, wait)?;
        let mut data = Data::open(&self.place, control, self.dial.as_mut(), wait)?;
        let asked = Instant::now();
        control.retrieve(&path, wait)?;
        data.begin(control, self.place.host(), size, wait)?;
        let answered = Instant::now();
        let encrypted = control.is_encrypted();
        let extent = match size {
            _ if encrypted => Extent::Decoded,
            Some(bytes) => Extent::Bytes(bytes),
            None => Extent::ToClose,
        };
        self.data = Some(data);
        Ok(Body { extent, announced_bytes: size, anew: true, asked, answered })
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.data.as_mut().map_or(Ok(0), |data| data.read(room))
    }

    fn store(&mut self, bytes: Option<u64>, wait: &dyn Wait) -> Result<Body, FileError> {
        if self.data.is_some() {
            self.hang_up();
        }
        self.connect(wait)?;
        let Some(control) = &mut self.control else { return Err(FileError::Stopped) };
        let path = control::path(&self.place)?;
        let mut data = Data::open(&self.place, control, self.dial.as_mut(), wait)?;
        let asked = Instant::now();
        control.store(&path, wait)?;
        data.encrypt(control, self.place.host(), wait)?;
        let answered = Instant::now();
        let extent = match bytes {
            _ if control.is_encrypted() => Extent::Decoded,
            Some(bytes) => Extent::Bytes(bytes),
            None => Extent::ToClose,
        };
        (self.data, self.storing) = (Some(data), bytes);
        Ok(Body { extent, announced_bytes: bytes, anew: true, asked, answered })
    }

    fn write(&mut self, payload: &[u8]) -> io::Result<usize> {
        self.data.as_mut().map_or(Ok(0), |data| data.write(payload))
    }

    fn stored(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        let (Some(data), Some(control)) = (&mut self.data, &mut self.control) else {
            return Ok(());
        };
        let patience = patience::to_confirm(self.storing);
        let ended = data.end_of_file(patience, wait);
        let kept = ended.and_then(|()| control.transferred("to keep the file", patience, wait));
        // The server has taken bytes, but doesn't say what happened to them.
        kept.map_err(|why| patience::unconfirmed(why.after_payload(), patience))?;
        self.data = None;
        Ok(())
    }

    fn refusal(&mut self, wait: &dyn Wait) -> Option<FileError> {
        let ended =
            self.control.as_mut()?.transferred("to take more of the file", REFUSAL_TIMEOUT, wait);
        ended.err().filter(FileError::is_refusal).map(FileError::after_payload)
    }

    fn remove(&mut self, wait: &dyn Wait) -> Result<bool, FileError> {
        if self.data.is_some() {
            self.hang_up();
        }
        self.connect(wait)?;
        let Some(control) = &mut self.control else { return Err(FileError::Stopped) };
        control.delete(&control::path(&self.place)?, wait)
    }

    fn turn_to(&mut self, place: &Place) -> bool {
        self.place = place.clone();
        true
    }

    fn socket(&self) -> Option<&OwnedFd> {
        let data = self.data.as_ref().map(Data::connection);
        let control = self.control.as_ref().map(Control::connection);
        data.or(control).map(Connection::socket)
    }

    fn hang_up(&mut self) {
        (self.control, self.data) = (None, None);
    }

    fn about(&self) -> About {
        self.about.clone()
    }
}

impl Ftp {
    /// Receives the result of the last transfer, if there was one.
    fn finish(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        let (Some(data), Some(control)) = (self.data.take(), &mut self.control) else {
            return Ok(());
        };
        data.end(wait)?;
        control.transferred("the rest of the file", REPLY_TIMEOUT, wait)
    }
}
