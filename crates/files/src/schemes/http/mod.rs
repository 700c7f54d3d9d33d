//! HTTP/1.1 (RFC 9110, RFC 9112): one question after the other on one connection, as long as the server keeps it.
//!
//! The words are `ureq-proto`'s; the socket is ours. The header of an answer is taken off the socket to its last byte
//! and no further, so that what comes next is payload, for whoever moves it.

mod answer;
mod redirect;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq_proto::client::Call;
use ureq_proto::client::state::{RecvBody, RecvResponse};
use ureq_proto::http::{Request, header};

use crate::connection::{Broken, Connection, Heard};
use crate::conversation::{About, Body, Conversation, Extent, Options, Scheme};
use crate::error::FileError;
use crate::link::{Dial, Wait};
use crate::place::Place;
use answer::{Answer, Outcome};

/// The registry's entry.
pub const HTTP: Scheme =
    Scheme { id: "http", summary: "fetch a file from a web server (HTTP/1.1)", port: 80, open };

/// How long an answer may take, from the question to the end of its header.
const ANSWER: Duration = Duration::from_secs(30);
/// Bytes of a header at most: what servers of today send is below 16 KiB.
const HEADER_BYTES: usize = 64 << 10;
/// Bytes of a question at most.
const QUESTION_BYTES: usize = 32 << 10;
/// Bytes of payload in chunks that are read at once.
const CODED_BYTES: usize = 128 << 10;

fn open(place: Place, options: Arc<Options>, dial: Box<dyn Dial>) -> Box<dyn Conversation> {
    Box::new(Http {
        named: place.clone(),
        place,
        options,
        dial,
        connection: None,
        anew: false,
        closes: false,
        coded: None,
        about: About::default(),
    })
}

/// A conversation with a web server.
struct Http {
    /// What the user named.
    named: Place,
    /// Where that is, by what the server said so far.
    place: Place,
    options: Arc<Options>,
    dial: Box<dyn Dial>,
    /// `None` before the first question, and where the server or this end gave the last one up.
    connection: Option<Connection>,
    /// Whether the connection has had no answer yet.
    anew: bool,
    /// Whether the connection is over with the answer that came on it.
    closes: bool,
    /// The body that only this end can read.
    coded: Option<Coded>,
    about: About,
}

/// A body in chunks while it is read.
struct Coded {
    call: Call<RecvBody>,
    /// What has come and is not decoded.
    raw: Vec<u8>,
}

impl Conversation for Http {
    fn connect(&mut self) -> Result<(), FileError> {
        if self.connection.is_none() {
            let socket = self.dial.connect(self.place.host(), self.place.port())?;
            self.connection = Some(Connection::new(socket)?);
        }
        Ok(())
    }

    fn fetch(&mut self, wait: &dyn Wait) -> Result<Body, FileError> {
        for _ in 0..=redirect::MOST {
            let (answer, asked, first) = self.ask(wait)?;
            match answer.outcome {
                Outcome::Body { extent, announced_bytes } => {
                    return Ok(self.body(answer, extent, announced_bytes, (asked, first)));
                }
                Outcome::Moved(to) => {
                    self.place = redirect::judge(&self.named, &self.place, &to, &self.options)?;
                    self.about.moved_to = Some(self.place.to_string());
                    self.hang_up();
                }
            }
        }
        let most = redirect::MOST;
        Err(FileError::Protocol(format!("the server redirects more than {most} times")))
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let (Some(coded), Some(connection)) = (&mut self.coded, &mut self.connection) else {
            return Ok(0);
        };
        coded.read(connection, room)
    }

    fn socket(&self) -> Option<&OwnedFd> {
        self.connection.as_ref().map(Connection::socket)
    }

    fn hang_up(&mut self) {
        (self.connection, self.coded, self.closes) = (None, None, false);
    }

    fn about(&self) -> About {
        self.about.clone()
    }
}

impl Http {
    /// Asks once, on the connection that there is or on a new one. A connection that the server gave up meanwhile is
    /// no answer (RFC 9110 section 9.2.2).
    fn ask(&mut self, wait: &dyn Wait) -> Result<(Answer, Instant, Instant), FileError> {
        if !self.is_kept() {
            self.hang_up();
        }
        loop {
            let reused = self.connection.is_some();
            match self.ask_on_connection(wait) {
                Ok(answer) => return Ok(answer),
                Err(Broken::Before) if reused => self.hang_up(),
                Err(Broken::Before) => {
                    return Err(FileError::Protocol(
                        "the server closed the connection without an answer".into(),
                    ));
                }
                Err(Broken::Error(error)) => return Err(error),
            }
        }
    }

    /// Whether the body before was read to its end on a connection that goes on.
    fn is_kept(&self) -> bool {
        let is_read = |coded: &Coded| coded.call.can_proceed() && coded.raw.is_empty();
        !self.closes && self.coded.as_ref().is_none_or(is_read)
    }

    fn ask_on_connection(&mut self, wait: &dyn Wait) -> Result<(Answer, Instant, Instant), Broken> {
        self.anew |= self.connection.is_none();
        self.connect()?;
        self.coded = None;
        let Some(connection) = &mut self.connection else { return Err(Broken::Before) };
        let (question, mut call) = question(&self.place)?;
        let until = Instant::now() + ANSWER;
        connection.say(&question, wait, until)?;
        let asked = Instant::now();
        let heard =
            connection.hear(HEADER_BYTES, wait, until, |words| answer::parse(&mut call, words))?;
        let Heard { said, first } = heard;
        let answer = Answer::of(&said, call, &mut self.about)?;
        Ok((answer, asked, first))
    }

    /// The body of an answer, and what becomes of its connection.
    fn body(
        &mut self,
        answer: Answer,
        extent: Extent,
        announced_bytes: Option<u64>,
        (asked, answered): (Instant, Instant),
    ) -> Body {
        self.closes = answer.closes;
        self.coded = answer.coded.map(|call| Coded { call, raw: Vec::new() });
        let anew = std::mem::take(&mut self.anew);
        Body { extent, announced_bytes, anew, asked, answered }
    }
}

/// The bytes of a question, and who reads the answer.
fn question(place: &Place) -> Result<(Vec<u8>, Call<RecvResponse>), FileError> {
    let unfit = |why: String| FileError::Place(format!("{place} can't be asked for: {why}"));
    let request = Request::get(place.request())
        .header(header::USER_AGENT, concat!("goodput/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "*/*")
        // What is compressed would be another file.
        .header(header::ACCEPT_ENCODING, "identity")
        .body(())
        .map_err(|why| unfit(why.to_string()))?;
    let mut call = Call::new(request).map_err(|why| unfit(why.to_string()))?.proceed();
    let mut bytes = vec![0; QUESTION_BYTES];
    let length = call.write(&mut bytes).map_err(|why| unfit(why.to_string()))?;
    bytes.truncate(length);
    match call.proceed() {
        Ok(Some(ureq_proto::client::SendRequestResult::RecvResponse(call))) => Ok((bytes, call)),
        Ok(_) => Err(unfit("its name is too long".into())),
        Err(why) => Err(unfit(why.to_string())),
    }
}

impl Coded {
    fn read(&mut self, connection: &mut Connection, room: &mut [u8]) -> io::Result<usize> {
        loop {
            let decoded = self.call.read(&self.raw, room);
            let (used, given) = decoded.map_err(|why| {
                io::Error::other(format!("the server's chunks can't be read: {why}"))
            })?;
            self.raw.drain(..used);
            if given > 0 || self.call.can_proceed() {
                return Ok(given);
            }
            if used == 0 {
                self.fill(connection)?;
            }
        }
    }

    /// Reads more of what is coded.
    fn fill(&mut self, connection: &mut Connection) -> io::Result<()> {
        if self.raw.len() >= CODED_BYTES {
            return Err(io::Error::other("the server's chunks can't be read: one has no length"));
        }
        let at = self.raw.len();
        self.raw.resize(at + CODED_BYTES, 0);
        let read = connection.read(&mut self.raw[at..]);
        self.raw.truncate(at + read.as_ref().map_or(0, |read| *read));
        match read? {
            0 => Err(io::Error::other("the server ended the connection in the middle of a chunk")),
            _ => Ok(()),
        }
    }
}
