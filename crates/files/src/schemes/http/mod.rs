//! HTTP/1.1 (RFC 9110, RFC 9112): one request after the other on one connection, as long as the server keeps it open.
//!
//! `ureq-proto` handles the protocol; the socket is ours. Exactly the header of an answer is read from the socket, so
//! the next bytes are payload for any mover.

mod answer;
mod coded;
mod question;
mod redirect;
mod store;
mod tunnel;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::{Broken, Connection, Heard};
use crate::conversation::{About, Body, Client, Conversation, Extent};
use crate::error::FileError;
use crate::link::{Dial, Wait};
use crate::options::Options;
use crate::place::Place;
use crate::scheme::Scheme;
use crate::tls::Tls;
use answer::{Answer, Outcome};
use coded::Coded;
use question::{Question, Wish};
use store::Storing;

/// The registry's entry.
pub const HTTP: Client = Client {
    scheme: Scheme {
        id: "http",
        summary: "fetch a file from a web server (HTTP/1.1)",
        port: 80,
        decoded: false,
        low_port: false,
        password: true,
        lone_user: false,
        server_query: false,
    },
    open,
};

/// The same, encrypted.
pub const HTTPS: Client = Client {
    scheme: Scheme {
        id: "https",
        summary: "fetch a file from a web server, encrypted (HTTP/1.1 over TLS)",
        port: 443,
        decoded: true,
        low_port: false,
        password: true,
        lone_user: false,
        server_query: false,
    },
    open,
};

/// How long an answer may take, from the request to the end of its header.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest header, bytes: today's servers send less than 16 KiB.
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
        wanted: None,
        file_bytes: None,
        about: About::default(),
    })
}

/// A conversation with a web server.
struct Http {
    /// The user's URL.
    named: Place,
    /// The present location, after redirects.
    place: Place,
    options: Arc<Options>,
    dial: Box<dyn Dial>,
    /// `None` before the first request, and if the server or this end closed the last connection.
    connection: Option<Connection>,
    /// Whether the connection has had no answer yet.
    anew: bool,
    /// Whether the connection ends with its last answer.
    closes: bool,
    /// The TLS configuration, made for the first encrypted connection.
    tls: Option<Tls>,
    /// The body that only this end can read.
    coded: Option<Coded>,
    /// The state of a file being stored.
    storing: Storing,
    /// Bytes that are still wanted of all bodies, if their number is limited.
    wanted: Option<u64>,
    /// The file's length, once the server has announced it.
    file_bytes: Option<u64>,
    about: About,
}

impl Conversation for Http {
    fn connect(&mut self, wait: &dyn Wait) -> Result<(), FileError> {
        self.open_connection(wait).map_err(|why| self.by_way(why))
    }

    fn fetch(&mut self, wait: &dyn Wait) -> Result<Body, FileError> {
        let body = self.ask_and_follow(wait).map_err(|why| self.by_way(why))?;
        self.file_bytes = body.announced_bytes;
        self.wanted = match (self.wanted, body.announced_bytes) {
            (Some(wanted), Some(bytes)) => Some(wanted.saturating_sub(bytes)),
            (wanted, _) => wanted,
        };
        Ok(body)
    }

    fn want(&mut self, bytes: u64) {
        self.wanted = Some(bytes);
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
    /// Adds the proxy to a failure, because the proxy's messages look like the server's.
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
        let (host, address) = (self.place.host(), self.place.address());
        let until = Instant::now() + RESPONSE_TIMEOUT;
        let proxy = self.options.proxy.as_ref();
        let (to, port) =
            proxy.map_or((&*address, self.place.port()), |proxy| (proxy.host.as_str(), proxy.port));
        let mut connection = Connection::new(self.dial.connect(to, port, wait)?)?;
        if self.place.scheme() == &HTTPS.scheme {
            if let Some(proxy) = proxy {
                tunnel::open(proxy, &mut connection, &self.place, wait, until)?;
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
        for _ in 0..=redirect::MAX_REDIRECTS {
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
        let most = redirect::MAX_REDIRECTS;
        Err(FileError::Protocol(format!("the server redirects more than {most} times")))
    }

    /// Requests the file, on the present connection or a new one.
    fn ask(&mut self, wait: &dyn Wait) -> Result<(Answer, Instant, Instant), FileError> {
        self.on_connection(|http| http.ask_on_connection(wait))
    }

    /// Sends one request, on the present connection or a new one. If the server has closed the connection meanwhile,
    /// this doesn't count as an answer (RFC 9110 section 9.2.2).
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

    /// Whether the place is at the server that the user named, and equally protected: passwords go nowhere else.
    fn is_at_home(&self) -> bool {
        let (named, place) = (&self.named, &self.place);
        let protected = named.scheme() == &HTTP.scheme || place.scheme() == &HTTPS.scheme;
        named.host().eq_ignore_ascii_case(place.host()) && protected
    }

    /// Whether the previous body was read to its end and the connection stays open.
    fn is_kept(&self) -> bool {
        !self.closes && self.coded.as_ref().is_none_or(Coded::is_read)
    }

    fn ask_on_connection(&mut self, wait: &dyn Wait) -> Result<(Answer, Instant, Instant), Broken> {
        let wanted = self.first_bytes();
        let Question { mut call, .. } = self.say(Wish::Fetch { wanted }, wait)?;
        let asked = Instant::now();
        let Some(connection) = &mut self.connection else { return Err(Broken::Before) };
        let until = asked + RESPONSE_TIMEOUT;
        let heard =
            connection.hear(HEADER_BYTES, wait, until, |words| answer::parse(&mut call, words))?;
        let Heard { said, first } = heard;
        let answer = Answer::of(&said, call, wanted, &mut self.about)?;
        Ok((answer, asked, first))
    }

    /// How many bytes of the file to ask for; `None`: all of it. A range (RFC 9110 section 14) is only asked for if the rest
    /// of the file is not wanted, as far as this is known.
    fn first_bytes(&self) -> Option<u64> {
        self.wanted.filter(|wanted| *wanted > 0 && self.file_bytes.is_none_or(|all| *wanted < all))
    }

    /// Sends the request, on the present connection or a new one.
    fn say(&mut self, wish: Wish, wait: &dyn Wait) -> Result<Question, Broken> {
        self.anew |= self.connection.is_none();
        self.open_connection(wait)?;
        self.coded = None;
        let login = self.options.login.as_ref().filter(|_| self.is_at_home());
        // Encrypted requests go through a tunnel of the proxy.
        let proxy = self.options.proxy.as_ref().filter(|_| self.place.scheme() == &HTTP.scheme);
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

    /// The body of an answer; decides whether the connection stays.
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
