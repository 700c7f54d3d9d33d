//! The OpenSSH client as a process: its input, its output, and its end.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::trouble;
use crate::address::Address;
use crate::error::RemoteError;

/// Interval of a session's heartbeat. The dead-man hears it well before its patience ends.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);

/// Pieces of output that may wait to be read. Beyond that the host waits.
const MAX_PIECES: usize = 16;

/// Bytes of output per read.
const PIECE_BYTES: usize = 16 << 10;

/// How long ssh may take to exit after its output has ended.
const END_TIME: Duration = Duration::from_secs(2);

/// How to reach hosts: the part that differs between users.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Access {
    /// Configuration file instead of the user's and the host's own (ssh(1), `-F`).
    pub config: Option<PathBuf>,
}

/// Which stream of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output.
    Out,
    /// Standard error of the host's programs and of ssh itself.
    Err,
}

/// A piece of output; empty when the stream has ended.
pub(super) type Piece = (Stream, Vec<u8>);

/// A running ssh. Dropping it ends it, and with it the session.
#[derive(Debug)]
pub(super) struct Client {
    child: Child,
    input: Option<Sender<Input>>,
    output: Receiver<Piece>,
}

/// Input to write.
enum Input {
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, repeated as long as there is nothing else.
    Beats(&'static [u8]),
}

impl Client {
    /// Starts ssh with a shell at `address`. Overrules only those parts of the user's configuration that would ask,
    /// need a terminal, share a connection or run another command.
    pub(super) fn start(address: &Address, access: &Access) -> Result<Self, RemoteError> {
        Self::spawn(command(address, access))
            .map_err(|cause| RemoteError::NoSsh { host: address.to_string(), cause })
    }

    /// Starts a program that carries a shell's input and output.
    pub(super) fn spawn(mut command: Command) -> io::Result<Self> {
        // An interrupt from the terminal is for goodput, which then puts settings back through this process.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (pieces, output) = mpsc::sync_channel(MAX_PIECES);
        // Whatever fails below drops it, which ends the program.
        let mut client = Self { child: command.spawn()?, input: None, output };
        if let Some(stdout) = client.child.stdout.take() {
            let pieces = pieces.clone();
            in_thread("ssh-output", move || pass_on(Stream::Out, stdout, &pieces))?;
        }
        if let Some(stderr) = client.child.stderr.take() {
            in_thread("ssh-errors", move || pass_on(Stream::Err, stderr, &pieces))?;
        }
        if let Some(stdin) = client.child.stdin.take() {
            let (input, inputs) = mpsc::channel();
            in_thread("ssh-input", move || write(stdin, &inputs, HEARTBEAT_INTERVAL))?;
            client.input = Some(input);
        }
        Ok(client)
    }

    /// Queues bytes for writing, possibly for later: whoever waits for the answer has a deadline.
    pub(super) fn send(&self, text: &str) {
        self.pass(Input::Bytes(text.into()));
    }

    /// From now on, writes `beat` whenever there is nothing else.
    pub(super) fn keep_sending(&self, beat: &'static str) {
        self.pass(Input::Beats(beat.as_bytes()));
    }

    fn pass(&self, input: Input) {
        if let Some(inputs) = &self.input {
            // If the writer is gone, ssh has ended, and the reader notices that too.
            let _ = inputs.send(input);
        }
    }

    /// Ends the input, so that the host notices the end of the session.
    pub(super) fn end_input(&mut self) {
        self.input = None;
    }

    /// The next piece of output, or why there is none: the deadline has passed or both streams have ended.
    pub(super) fn piece(&self, deadline: Instant) -> Result<Piece, RecvTimeoutError> {
        self.output.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    }

    /// How ssh exited after its output ended; ssh is killed if it does not exit.
    pub(super) fn end(&mut self) -> Option<ExitStatus> {
        self.input = None;
        let deadline = Instant::now() + END_TIME;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Err(_) => return None,
            }
        }
        self.kill();
        None
    }

    /// Ends ssh at once.
    pub(super) fn kill(&mut self) {
        // It may have ended meanwhile, which is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        self.kill();
    }
}

/// Does this in a thread of its own, which ends with the stream that it serves.
fn in_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let failed = |cause: io::Error| {
        io::Error::new(cause.kind(), format!("can't create the thread {name}: {cause}"))
    };
    thread::Builder::new().name(name.into()).spawn(work).map(drop).map_err(failed)
}

/// The name by which ssh looks a host up: that of the user's configuration for it (ssh_config(5), `HostName`).
pub(crate) fn host_name(address: &Address, access: &Access) -> Result<String, RemoteError> {
    let host = address.to_string();
    let output = options(address, access).arg("-G").arg(&address.host).output();
    let output = output.map_err(|cause| RemoteError::NoSsh { host: host.clone(), cause })?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let name = printed.lines().find_map(|line| line.strip_prefix("hostname "));
    name.map(str::to_owned).ok_or_else(|| {
        let said = trouble::last(&String::from_utf8_lossy(&output.stderr));
        RemoteError::Unreachable { host, said }
    })
}

fn command(address: &Address, access: &Access) -> Command {
    let mut command = options(address, access);
    // The login shell need not be a POSIX shell. `exec` means the same in all shells.
    command.args([&address.host, "exec /bin/sh"]);
    command
}

/// ssh with its options for a host.
fn options(address: &Address, access: &Access) -> Command {
    let mut command = Command::new("ssh");
    // What ssh says of its errors is all that tells them apart, also if the user's configuration silences it.
    command.args(["-T", "-o", "BatchMode=yes", "-o", "LogLevel=INFO"]);
    // A shared connection would pass for a new one, and outlive ours (ssh_config(5)).
    command.args(["-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "RemoteCommand=none"]);
    if let Some(config) = &access.config {
        command.arg("-F").arg(config);
    }
    if let Some(port) = address.port {
        command.arg("-p").arg(port.to_string());
    }
    if let Some(user) = &address.user {
        command.arg("-l").arg(user);
    }
    // The language of the errors that we look for.
    command.env("LC_ALL", "C");
    command
}

fn pass_on(stream: Stream, mut from: impl Read, pieces: &SyncSender<Piece>) {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let read = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // An error here counts as the end of the stream.
            read => read.unwrap_or(0),
        };
        if pieces.send((stream, buffer[..read].to_vec())).is_err() || read == 0 {
            return;
        }
    }
}

/// Writes until all senders are gone. Dropping the input then ends the session. A beat is due at each `every`,
/// also between other input: the dead-man hears nothing else.
fn write(mut stdin: impl Write, inputs: &Receiver<Input>, every: Duration) {
    let mut beats: Option<(&[u8], Instant)> = None;
    let mut put = |bytes: &[u8]| stdin.write_all(bytes).and_then(|()| stdin.flush()).is_ok();
    loop {
        if let Some((beat, due)) = &mut beats
            && *due <= Instant::now()
        {
            *due = Instant::now() + every;
            if !put(beat) {
                return;
            }
        }
        let input = match beats {
            None => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some((_, due)) => inputs.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        match input {
            Ok(Input::Bytes(bytes)) if !put(&bytes) => return,
            Ok(Input::Bytes(_)) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Input::Beats(bytes)) => beats = Some((bytes, Instant::now() + every)),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_always_busy_says_that_it_is_there() {
        let (input, inputs) = mpsc::channel();
        input.send(Input::Beats(b"+")).unwrap();
        for _ in 0..3 {
            input.send(Input::Bytes(b"-".to_vec())).unwrap();
        }
        drop(input);
        let mut written = Vec::new();
        write(&mut written, &inputs, Duration::ZERO);
        assert_eq!(written, b"+-+-+-+");
    }
}
