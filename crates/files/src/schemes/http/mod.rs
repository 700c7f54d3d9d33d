//! HTTP/1.1 (RFC 9110, RFC 9112): one question after the other on one connection, as long as the server keeps it.
//!
//! The words are `ureq-proto`'s; the socket is ours. The header of an answer is taken off the socket to its last byte
//! and no further, so that what comes next is payload, for whoever moves it.

mod answer;
mod coded;
mod question;
mod redirect;
mod store;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::{Broken, Connection, Heard};
use crate::conversation::{About, Body, Conversation, Extent, Options, Scheme};
use crate::error::FileError;
use crate::link::{Dial, Wait};
use crate::place::Place;
use crate::tls::Tls;
use answer::{Answer, Outcome};
use coded::Coded;
use question::{Question, Wish};
use store::Storing;

/// The registry's entry.
pub const HTTP: Scheme = Scheme {
    id: "http",
    summary: "fetch a file from a web server (HTTP/1.1)",
    port: 80,
    decoded: false,
    low_port: false,
    lone_user: false,
    server_query: false,
    open,
};

/// The same, encrypted.
pub const HTTPS: Scheme = Scheme {
    id: "https",
    summary: "fetch a file from a web server, encrypted (HTTP/1.1 over TLS)",
    port: 443,
    decoded: true,
    low_port: false,
    lone_user: false,
    server_query: false,
    open,
};

/// How long an answer may take, from the question to the end of its header.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a header at most: what servers of today send is below 16 KiB.
const HEADER_BYTES: usize = 64 << 10;

fn open(place: Place, options: Arc<Options>, dial: Box<dyn Dial>) -> Box<dyn Conversation> {
    Box::new(Http {
        named: place.clone(),
        place,
        options,
        dial,
        connection: None,
        anew: false,
        closes: false,
        tls: None,
        coded: None,
        storing: Storing::default(),
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
    /// `None` before the first question, and if the server or this end gave the last one up.
    connection: Option<Connection>,
    /// Whether the connection has had no answer yet.
    anew: bool,
    /// Whether the connection is over with the answer that came on it.
    closes: bool,
    /// How connections are encrypted, once one was to be.
    tls: Option<Tls>,
    /// The body that only this end can read.
    coded: Option<Coded>,
    /// What of a file that is stored goes on.
    storing: Storing,
    about: About,
}

impl Conversation for Http {
    fn connect(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        self.open_connection(wait).map_err(|why| self.by_way(why))
    }

    fn fetch(&mut self, wait: &dyn Wait) -> Result<Body, FileError> {
        self.ask_and_follow(wait).map_err(|why| self.by_way(why))
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match (&mut self.coded, &mut self.connection) {
            (Some(coded), Some(connection)) => coded.read(connection, room),
            _ => Ok(0),
        }
    }

    fn store(&mut self, bytes: Option<u64>, wait: &dyn Wait) -> Result<Body, FileError> {
        self.begin_storing(bytes, wait).map_err(|why| self.by_way(why))
    }

    fn write(&mut self, payload: &[u8]) -> io::Result<usize> {
        self.connection.as_mut().map_or(Ok(0), |connection| connection.write(payload))
    }

    fn stored(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        self.hear_stored(wait).map_err(|why| self.by_way(why))
    }

    fn refusal(&mut self, wait: &dyn Wait) -> Option<FileError> {
        self.hear_refusal(wait).map(|why| self.by_way(why))
    }

    fn remove(&mut self, wait: &dyn Wait) -> Result<bool, FileError> {
        self.ask_to_remove(wait).map_err(|why| self.by_way(why))
    }

    fn turn_to(&mut self, place: &Place) -> bool {
        (self.named, self.place) = (place.clone(), place.clone());
        true
    }

    fn socket(&self) -> Option<&OwnedFd> {
        self.connection.as_ref().map(Connection::socket)
    }

    fn hang_up(&mut self) {
        (self.connection, self.coded, self.closes) = (None, None, false);
        self.storing.hang_up();
    }

    fn about(&self) -> About {
        self.about.clone()
    }
}

impl Http {
    /// Says of a failure by which proxy the server was asked: its words and the server's look alike.
    fn by_way(&self, why: FileError) -> FileError {
        match (&self.options.proxy, why) {
            (None, why) | (_, why @ (FileError::Place(_) | FileError::Stopped)) => why,
            (Some(proxy), why) if why.to_string().contains(&format!("the proxy {proxy}")) => why,
            (Some(proxy), why) => why.after(&format!("through the proxy {proxy}")),
        }
    }

    fn open_connection(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        if self.connection.is_some() {
            return Ok(());
        }
        let (host, until) = (self.place.host(), Instant::now() + RESPONSE_TIMEOUT);
        let proxy = self.options.proxy.as_ref();
        let (to, port) =
            proxy.map_or((host, self.place.port()), |proxy| (proxy.host.as_str(), proxy.port));
        let mut connection = Connection::new(self.dial.connect(to, port, wait)?)?;
        if self.place.scheme().id == HTTPS.id {
            if let Some(proxy) = proxy {
                proxy.tunnel(&mut connection, &self.place, wait, until)?;
            }
            let tls = match &mut self.tls {
                Some(tls) => tls,
                none => none.insert(Tls::new(&self.options, &[b"http/1.1"])?),
            };
            connection.encrypt(tls, host, wait, until)?;
        }
        self.about.tls = connection.tls();
        self.connection = Some(connection);
        Ok(())
    }

    fn ask_and_follow(&mut self, wait: &dyn Wait) -> Result<Body, FileError> {
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

    /// Asks for the file, on the connection that there is or on a new one.
    fn ask(&mut self, wait: &dyn Wait) -> Result<(Answer, Instant, Instant), FileError> {
        self.on_connection(|http| http.ask_on_connection(wait))
    }

    /// Asks once, on the connection that there is or on a new one. A connection that the server gave up meanwhile is
    /// no answer (RFC 9110 section 9.2.2).
    fn on_connection<T>(
        &mut self,
        mut ask: impl FnMut(&mut Self) -> Result<T, Broken>,
    ) -> Result<T, FileError> {
        if !self.is_kept() {
            self.hang_up();
        }
        loop {
            let reused = self.connection.is_some();
            match ask(self) {
                Ok(answer) => return Ok(answer),
                Err(Broken::Before) if reused => self.hang_up(),
                Err(broken) => return Err(broken.error()),
            }
        }
    }

    /// Whether the place is at the server that the user named, and no less protected: passwords go nowhere else.
    fn is_at_home(&self) -> bool {
        let (named, place) = (&self.named, &self.place);
        let protected = named.scheme().id == HTTP.id || place.scheme().id == HTTPS.id;
        named.host().eq_ignore_ascii_case(place.host()) && protected
    }

    /// Whether the body before was read to its end on a connection that goes on.
    fn is_kept(&self) -> bool {
        !self.closes && self.coded.as_ref().is_none_or(Coded::is_read)
    }

    fn ask_on_connection(&mut self, wait: &dyn Wait) -> Result<(Answer, Instant, Instant), Broken> {
        let Question { mut call, .. } = self.say(Wish::Fetch, wait)?;
        let asked = Instant::now();
        let Some(connection) = &mut self.connection else { return Err(Broken::Before) };
        let until = asked + RESPONSE_TIMEOUT;
        let heard =
            connection.hear(HEADER_BYTES, wait, until, |words| answer::parse(&mut call, words))?;
        let Heard { said, first } = heard;
        let answer = Answer::of(&said, call, &mut self.about)?;
        Ok((answer, asked, first))
    }

    /// Says what is wished, on the connection that there is or on a new one.
    fn say(&mut self, wish: Wish, wait: &dyn Wait) -> Result<Question, Broken> {
        self.anew |= self.connection.is_none();
        self.open_connection(wait)?;
        self.coded = None;
        let login = self.options.login.as_ref().filter(|_| self.is_at_home());
        // What is encrypted goes through a tunnel of the proxy.
        let proxy = self.options.proxy.as_ref().filter(|_| self.place.scheme().id == HTTP.id);
        let question = Question::new(wish, &self.place, login, proxy)?;
        let Some(connection) = &mut self.connection else { return Err(Broken::Before) };
        let until = Instant::now() + RESPONSE_TIMEOUT;
        match wish {
            Wish::Store { asks: false, .. } => {
                connection.say_before_payload(&question.bytes, wait, until)?;
            }
            _ => connection.say(&question.bytes, wait, until)?,
        }
        Ok(question)
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
        let encrypted = self.connection.as_ref().is_some_and(Connection::is_encrypted);
        self.coded =
            Coded::of(answer.chunks, extent).filter(|coded| encrypted || coded.is_chunked());
        let extent = if self.coded.is_some() { Extent::Decoded } else { extent };
        let anew = std::mem::take(&mut self.anew);
        Body { extent, announced_bytes, anew, asked, answered }
    }
}
