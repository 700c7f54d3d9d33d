//! A session at a host: one shell there, which answers one request after another.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::client::{Access, Client, Stream};
use super::frames::{Frame, Frames};
use super::trouble;
use crate::address::Address;
use crate::command::Command;
use crate::error::RemoteError;
use crate::plain;
use crate::shell::{Output, Shell};

/// The first input of the host's shell.
const BEGIN: &str = include_str!("begin.sh");

/// How long a login may take.
pub(crate) const LOGIN_TIME: Duration = Duration::from_secs(30);

/// How long one program may take. Less than the dead-man's patience, because a beat waits behind a program.
pub(crate) const PROGRAM_TIME: Duration = Duration::from_secs(20);

/// How long the output of an ssh that has ended may go on.
const DRAIN_TIME: Duration = Duration::from_secs(3);

/// Most bytes that one program may print.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

/// What ssh prints if it ends itself because no packet comes (clientloop.c `server_alive_check`; strerror(3)).
const TIMED_OUT: [&str; 2] = ["not responding", "timed out"];

/// Most bytes that a login may print before the session begins, such as banners.
const MAX_BANNER_BYTES: usize = 64 << 10;

/// A session. It runs programs without knowing what they do.
#[derive(Debug)]
pub struct Session {
    host: String,
    /// Begins each line of the session. No other session has it.
    mark: String,
    client: Client,
    out: Frames,
    err: Frames,
    requests: u64,
    /// Why the session is over, if it is.
    over: Option<String>,
    /// Whether it is over because no answer came, though the host did not close the connection.
    fell_silent: bool,
}

impl Session {
    /// Logs in.
    ///
    /// # Errors
    /// When ssh is missing, the host's key is unknown, the login needs a password, the host does not answer, or
    /// it gives no POSIX shell.
    pub fn open(address: &Address, access: &Access) -> Result<Self, RemoteError> {
        Self::through(Client::start(address, access)?, address.to_string())
    }

    /// Begins a session with the shell that `client` leads to.
    fn through(client: Client, host: String) -> Result<Self, RemoteError> {
        let mark = format!("goodput-{:032x}", rand::random::<u128>());
        let (out, err) = (Frames::new(&mark), Frames::new(&mark));
        let (requests, over, fell_silent) = (0, None, false);
        let mut session = Self { host, mark, client, out, err, requests, over, fell_silent };
        session.client.send(&BEGIN.replace("@MARK@", &session.mark));
        session.begin()?;
        Ok(session)
    }

    /// A session with a shell of this host, without SSH.
    #[cfg(test)]
    pub(crate) fn with_shell<const N: usize>(words: [&str; N]) -> Result<Self, RemoteError> {
        let mut command = std::process::Command::new(words[0]);
        command.args(&words[1..]);
        Self::through(Client::spawn(command).unwrap(), words[0].into())
    }

    fn begin(&mut self) -> Result<(), RemoteError> {
        let deadline = Instant::now() + LOGIN_TIME;
        for stream in [Stream::Out, Stream::Err] {
            self.wait(stream, deadline, MAX_BANNER_BYTES).map_err(|error| match error {
                Ended::Closed => {
                    let status = self.client.end();
                    // ssh may print more at its end.
                    self.drain();
                    let (printed, said) = (self.out.rest(), self.err.rest());
                    trouble::before_it_began(&self.host, status, &printed, &said)
                }
                Ended::Late => RemoteError::NoLogin {
                    host: self.host.clone(),
                    seconds: LOGIN_TIME.as_secs(),
                    said: trouble::last(&self.err.rest()),
                },
                Ended::TooMuch => RemoteError::NoShell {
                    host: self.host.clone(),
                    said: trouble::last(&self.out.rest()),
                },
            })?;
        }
        Ok(())
    }

    /// A word that no other session has: in the command line of the process there that puts back, if there is one.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Whether it is over because no answer came, though the host did not close the connection.
    pub(crate) fn fell_silent(&self) -> bool {
        self.fell_silent
    }

    /// Whether the host still answers.
    pub(crate) fn answers(&mut self) -> bool {
        self.run(&Command::new(":", [""; 0])).is_ok()
    }

    /// Sends a line whose answer comes from elsewhere.
    pub(super) fn send(&mut self, line: &str) {
        self.client.send(&format!("{line}\n"));
    }

    /// Sends a line whenever there is nothing else to do.
    pub(crate) fn keep_sending(&mut self, line: &'static str) {
        self.client.keep_sending(line);
    }

    /// Waits for a line of the session and returns its words.
    pub(super) fn answer(&mut self, doing: &str) -> Result<Vec<String>, RemoteError> {
        self.frame(Stream::Out, doing).map(|frame| frame.words)
    }

    /// Ends the input, and waits until the host's side of the session has ended.
    pub(crate) fn end(&mut self) {
        self.client.end_input();
        let deadline = Instant::now() + PROGRAM_TIME;
        let ended = loop {
            match self.wait(Stream::Out, deadline, MAX_OUTPUT_BYTES) {
                // Pending output is read without waiting, so the deadline doesn't end that.
                Ok(_) if Instant::now() < deadline => {}
                Ok(_) => break Ended::Late,
                Err(ended) => break ended,
            }
        };
        if !matches!(ended, Ended::Closed) {
            self.client.kill();
        }
        self.over.get_or_insert("it was ended".into());
    }

    fn frame(&mut self, stream: Stream, doing: &str) -> Result<Frame, RemoteError> {
        let lost = |host: &str, why: String| RemoteError::Lost {
            host: host.into(),
            doing: doing.into(),
            why,
        };
        if let Some(why) = &self.over {
            return Err(lost(&self.host, why.clone()));
        }
        let deadline = Instant::now() + PROGRAM_TIME;
        self.wait(stream, deadline, MAX_OUTPUT_BYTES).map_err(|ended| {
            let why = match &ended {
                Ended::Closed => {
                    let _ = self.client.end();
                    self.drain();
                    format!("the connection was closed ({})", trouble::last(&self.err.rest()))
                }
                Ended::Late => format!("no answer for {} s", PROGRAM_TIME.as_secs()),
                Ended::TooMuch => format!("it printed more than {} MiB", MAX_OUTPUT_BYTES >> 20),
            };
            self.fell_silent =
                matches!(ended, Ended::Late) || TIMED_OUT.iter().any(|words| why.contains(words));
            // Later output would pass for the answer to something else.
            self.client.end_input();
            self.over = Some(why.clone());
            lost(&self.host, why)
        })
    }

    /// The next line of the session on a stream.
    fn wait(
        &mut self,
        stream: Stream,
        deadline: Instant,
        max_bytes: usize,
    ) -> Result<Frame, Ended> {
        loop {
            let frame = match stream {
                Stream::Out => self.out.next(),
                Stream::Err => self.err.next(),
            };
            if let Some(frame) = frame {
                return Ok(frame);
            }
            let (from, bytes) = self.client.piece(deadline).map_err(|none| match none {
                RecvTimeoutError::Timeout => Ended::Late,
                RecvTimeoutError::Disconnected => Ended::Closed,
            })?;
            if bytes.is_empty() && from == Stream::Out {
                return Err(Ended::Closed);
            }
            let frames = self.stream(from);
            frames.add(&bytes);
            if frames.waiting_bytes() > max_bytes {
                return Err(Ended::TooMuch);
            }
        }
    }

    fn stream(&mut self, stream: Stream) -> &mut Frames {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    /// After the end, reads the remaining output, until it ends as well: a process that ssh left may hold it open.
    fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN_TIME;
        while let Ok((from, bytes)) = self.client.piece(deadline) {
            if bytes.is_empty() && from == Stream::Err
                || self.err.waiting_bytes() > MAX_BANNER_BYTES
            {
                return;
            }
            self.stream(from).add(&bytes);
        }
    }

    /// Ends ssh as if it were killed, which ends the input of the shell at the host.
    #[cfg(test)]
    pub(crate) fn cut(&mut self) {
        self.client.end_input();
        self.client.kill();
    }
}

/// Why nothing more comes.
enum Ended {
    /// The stream has ended.
    Closed,
    /// The time is over.
    Late,
    /// Too much was printed without an end.
    TooMuch,
}

impl Shell for Session {
    fn host(&self) -> &str {
        &self.host
    }

    fn run(&mut self, command: &Command) -> Result<Output, RemoteError> {
        if !command.is_one_line() {
            return Err(RemoteError::LineBreak { command: command.shown() });
        }
        self.requests += 1;
        let request = self.requests.to_string();
        self.send(&format!("{command} </dev/null 4>&-; e {request}"));
        let doing = command.shown();
        let out = self.frame(Stream::Out, &doing)?;
        let err = self.frame(Stream::Err, &doing)?;
        let status = match &out.words[..] {
            [number, status] if *number == request => status.parse().ok(),
            _ => None,
        };
        match status.filter(|_| err.words == [request]) {
            Some(status) => {
                let [stdout, stderr] = [&out.text, &err.text].map(|text| plain::lines(text));
                Ok(Output { status, stdout, stderr })
            }
            None => {
                let why = format!("it answered {:?} and {:?}", out.words, err.words);
                self.over = Some(why.clone());
                Err(RemoteError::Lost { host: self.host.clone(), doing, why })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELLS: [&[&str]; 3] = [&["sh"], &["bash"], &["busybox", "sh"]];

    fn each_shell(test: impl Fn(Session)) {
        for shell in SHELLS {
            let known = std::process::Command::new(shell[0]).arg("--help").output().is_ok();
            let session = match shell {
                [one] => Session::with_shell([one]),
                [one, two, ..] => Session::with_shell([one, two]),
                [] => unreachable!("each has a name"),
            };
            if known {
                test(session.unwrap());
            }
        }
    }

    fn run(session: &mut Session, script: &str) -> Result<Output, RemoteError> {
        session.run(&Command::new("sh", ["-c", script]))
    }

    #[test]
    fn output_errors_and_exit_codes_come_apart() {
        each_shell(|mut session| {
            let output = run(&mut session, "printf out; echo err >&2; exit 3").unwrap();
            let (stdout, stderr) = ("out".to_owned(), "err\n".to_owned());
            assert_eq!(output, Output { status: 3, stdout, stderr });
            assert_eq!(run(&mut session, "cat; echo $LC_ALL").unwrap().stdout, "C\n", "no input");
            let missing = session.output(&Command::new("no-such-program", [""; 0])).unwrap_err();
            assert!(matches!(missing, RemoteError::NoProgram { .. }), "{missing}");
            assert_eq!(
                session.output(&Command::new("echo", ["it's $HOME;`x`"])).unwrap(),
                "it's $HOME;`x`\n"
            );
        });
    }

    #[test]
    fn a_program_that_prints_without_end_ends_the_session() {
        let mut session = Session::with_shell(["sh"]).unwrap();
        let error = run(&mut session, "yes").unwrap_err().to_string();
        assert!(error.contains("4 MiB"), "{error}");
        assert!(!session.answers());
    }

    #[test]
    fn a_banner_is_passed_over_and_an_endless_one_is_not() {
        let banner = "echo Welcome!; echo >&2 Authorised use only; exec sh";
        let mut session = Session::with_shell(["sh", "-c", banner]).unwrap();
        assert_eq!(run(&mut session, "echo x").unwrap().stdout, "x\n");
        let endless = Session::with_shell(["sh", "-c", "yes"]).unwrap_err();
        assert!(matches!(endless, RemoteError::NoShell { .. }), "{endless}");
        let no_login = Session::with_shell(["sh", "-c", "echo not available; exit 1"]).unwrap_err();
        assert!(no_login.to_string().contains("not available"), "{no_login}");
    }

    #[test]
    fn a_connection_that_ends_is_reported_with_what_was_under_way() {
        let mut session = Session::with_shell(["sh"]).unwrap();
        session.cut();
        let error = run(&mut session, "echo x").unwrap_err();
        assert!(matches!(error, RemoteError::Lost { .. }), "{error}");
    }
}
