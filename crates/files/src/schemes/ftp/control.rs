//! The control connection: commands and replies.

use std::time::{Duration, Instant};

use super::reply::{self, MOST_BYTES, Reply};
use super::{FTPS, REPLY_TIMEOUT};
use crate::connection::Connection;
use crate::error::FileError;
use crate::link::{Dial, Wait};
use crate::options::Options;
use crate::place::Place;
use crate::tls::Tls;
use crate::words::LOGIN_ADVICE;

/// The login if no user is named (RFC 1635).
const ANONYMOUS: (&str, &str) = ("anonymous", "goodput@");

/// A logged-in control connection.
pub(super) struct Control {
    connection: Connection,
    /// How data connections are encrypted, if they are.
    pub(super) tls: Option<Tls>,
    /// The server's greeting.
    pub(super) greeting: String,
    /// Whether the server supports EPSV, as far as known.
    knows_extended: bool,
    /// Whether it reports sizes.
    knows_size: bool,
}

impl Control {
    /// Connects, encrypts if requested, and logs in.
    pub(super) fn open(
        place: &Place,
        options: &Options,
        dial: &mut dyn Dial,
        wait: &dyn Wait,
    ) -> Result<Self, FileError> {
        let socket = dial.connect(&place.address(), place.port(), wait)?;
        let mut connection = Connection::new(socket)?;
        connection.be_prompt();
        let (knows_extended, knows_size) = (true, true);
        let mut control =
            Self { connection, tls: None, greeting: String::new(), knows_extended, knows_size };
        let greeting = control.reply(wait)?;
        if !greeting.is_good() {
            return Err(greeting.refused("the connection"));
        }
        control.greeting = greeting.words;
        if place.scheme() == &FTPS.scheme {
            control.encrypt(place, options, wait)?;
        }
        control.log_in(place, options, wait)?;
        control.must("TYPE I", "binary transfers", wait)?;
        Ok(control)
    }

    fn encrypt(
        &mut self,
        place: &Place,
        options: &Options,
        wait: &dyn Wait,
    ) -> Result<(), FileError> {
        self.must("AUTH TLS", "encryption", wait)?;
        let tls = Tls::new(options, &[])?;
        self.connection.encrypt(&tls, place.host(), wait, Instant::now() + REPLY_TIMEOUT)?;
        self.tls = Some(tls);
        self.must("PBSZ 0", "encrypted payload", wait)?;
        self.must("PROT P", "encrypted payload", wait).map(drop)
    }

    fn log_in(
        &mut self,
        place: &Place,
        options: &Options,
        wait: &dyn Wait,
    ) -> Result<(), FileError> {
        let (user, password) = match (&options.login, place.user()) {
            (Some(login), _) => (login.user.as_str(), login.password.as_str()),
            (None, Some(user)) => (user, ""),
            (None, None) => ANONYMOUS,
        };
        let asked = self.ask("USER", user.as_bytes(), wait)?;
        let answer = match asked.code {
            331 => self.ask("PASS", password.as_bytes(), wait)?,
            _ => asked,
        };
        match answer.code {
            200..300 => Ok(()),
            332 => Err(answer.refused("a login without an account")),
            _ => {
                let advice = format!("; {LOGIN_ADVICE}");
                Err(answer.refused_with(&format!("the login of {user}"), &advice))
            }
        }
    }

    /// The length of a file, if the server reports it.
    pub(super) fn size(&mut self, path: &[u8], wait: &dyn Wait) -> Result<Option<u64>, FileError> {
        if !self.knows_size {
            return Ok(None);
        }
        let Reply { code, words } = self.ask("SIZE", path, wait)?;
        // If the file doesn't exist, the server says so again when the file is requested.
        self.knows_size = !matches!(code, 500 | 502 | 504);
        Ok(if code == 213 { words.trim().parse().ok() } else { None })
    }

    /// The port of the next data connection, at the same host.
    pub(super) fn passive(&mut self, wait: &dyn Wait) -> Result<u16, FileError> {
        let unread = |reply: &Reply| {
            let words = &reply.words;
            FileError::Protocol(format!("the server names no port for data: {words}"))
        };
        if self.knows_extended {
            let reply = self.ask("EPSV", b"", wait)?;
            match reply.code {
                229 => return reply::extended_port(&reply.words).ok_or_else(|| unread(&reply)),
                500..=504 | 522 => self.knows_extended = false,
                _ => return Err(reply.refused("a connection for data")),
            }
        }
        let reply = self.must("PASV", "a connection for data", wait)?;
        reply::passive_port(&reply.words).ok_or_else(|| unread(&reply))
    }

    /// Requests a file.
    pub(super) fn retrieve(&mut self, path: &[u8], wait: &dyn Wait) -> Result<(), FileError> {
        let reply = self.ask("RETR", path, wait)?;
        if (100..200).contains(&reply.code) { Ok(()) } else { Err(reply.refused("the file")) }
    }

    /// Requests to store a file.
    pub(super) fn store(&mut self, path: &[u8], wait: &dyn Wait) -> Result<(), FileError> {
        let reply = self.ask("STOR", path, wait)?;
        let refused = || reply.refused("to take a file");
        match reply.code {
            100..200 => Ok(()),
            // Only a permanent refusal (RFC 959 section 4.2) certainly comes before a file is made.
            ..500 => Err(refused().after_payload()),
            _ => Err(refused()),
        }
    }

    /// Removes a file. Returns whether it existed: few servers give the reason of a refusal.
    pub(super) fn delete(&mut self, path: &[u8], wait: &dyn Wait) -> Result<bool, FileError> {
        let reply = self.ask("DELE", path, wait)?;
        if (200..300).contains(&reply.code) {
            return Ok(true);
        }
        // If the server reports no sizes, a missing size proves nothing.
        let is_gone = reply.code == 550 && self.size(path, wait)?.is_none() && self.knows_size;
        if is_gone { Ok(false) } else { Err(reply.refused("to remove the file")) }
    }

    /// Receives the result of a transfer, for at most this time.
    pub(super) fn transferred(
        &mut self,
        rest: &str,
        patience: Duration,
        wait: &dyn Wait,
    ) -> Result<(), FileError> {
        let reply = self.reply_within(patience, wait)?;
        if reply.is_good() { Ok(()) } else { Err(reply.refused(rest)) }
    }

    fn must(&mut self, command: &str, what: &str, wait: &dyn Wait) -> Result<Reply, FileError> {
        let reply = self.ask(command, b"", wait)?;
        if reply.is_good() { Ok(reply) } else { Err(reply.refused(what)) }
    }

    /// Sends a command with its argument, and receives the reply.
    fn ask(&mut self, command: &str, about: &[u8], wait: &dyn Wait) -> Result<Reply, FileError> {
        let mut line = command.as_bytes().to_vec();
        if !about.is_empty() {
            line.push(b' ');
            line.extend_from_slice(about);
        }
        if line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            let why = format!("what follows {command} has a line end in it, which FTP can't say");
            return Err(FileError::Place(why));
        }
        line.extend_from_slice(b"\r\n");
        let until = Instant::now() + REPLY_TIMEOUT;
        self.connection.say(&line, wait, until).map_err(|broken| broken.error())?;
        self.reply(wait)
    }

    fn reply(&mut self, wait: &dyn Wait) -> Result<Reply, FileError> {
        self.reply_within(REPLY_TIMEOUT, wait)
    }

    fn reply_within(&mut self, patience: Duration, wait: &dyn Wait) -> Result<Reply, FileError> {
        let until = Instant::now() + patience;
        let heard = self.connection.hear(MOST_BYTES, wait, until, reply::parse);
        heard.map(|heard| heard.said).map_err(|broken| broken.error())
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    pub(super) fn tls(&self) -> Option<String> {
        self.connection.tls()
    }
}

/// The path to request.
pub(super) fn path(place: &Place) -> Result<Vec<u8>, FileError> {
    let path = place.path();
    if path.is_empty() {
        return Err(FileError::Place("the URL names no file".into()));
    }
    Ok(path)
}
