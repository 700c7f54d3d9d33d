//! Drives one protocol session over its control connection, if it has one: bytes in, actions out.

use std::collections::VecDeque;
use std::future::pending;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_mover::SharedRate;
use goodput_wire::error::WireError;
use goodput_wire::session::{Action, Input, Output, Session};
use rustix::net::SendFlags;
use socket2::SockRef;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use crate::control::budget::{Budget, ConversationPace};

/// How long a closing connection may take to send the rest.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes that a peer may leave unread while it is not measured with: a few answers.
const MAX_UNREAD_BYTES: usize = 1 << 20;

/// Bytes that a peer may leave unread during a measurement: a report, and the samples of a while.
const MAX_UNREAD_MEASURING_BYTES: usize = 16 << 20;

/// A session and its connection, if it has one: some protocols have only flows, others turn the
/// connection into a flow. Every method may be cancelled between two awaits without losing bytes or
/// actions.
pub struct Conversation {
    session: Box<dyn Session>,
    stream: Option<TcpStream>,
    outgoing: VecDeque<u8>,
    /// The session's last output while it had no connection.
    unheard: Vec<u8>,
    unread_max: usize,
    /// How much the peer may still send; `None`: any amount.
    budget: Option<Arc<Budget>>,
    /// How fast to send, and how fast to receive.
    paces: (ConversationPace, ConversationPace),
    actions: VecDeque<Action>,
    failure: Option<WireError>,
    closing: bool,
    /// Whether the session sends nothing more, but still receives.
    only_hears: bool,
    /// Whether the peer sends nothing more.
    heard_all: bool,
    heard_bytes: u64,
}

impl Conversation {
    /// Begins to drive `session` over `stream`. Without a stream, only inputs and time drive it.
    pub fn new(session: Box<dyn Session>, stream: Option<TcpStream>) -> Self {
        let mut conversation = Self {
            session,
            stream,
            outgoing: VecDeque::new(),
            unheard: Vec::new(),
            unread_max: MAX_UNREAD_MEASURING_BYTES,
            budget: None,
            paces: Default::default(),
            actions: VecDeque::new(),
            failure: None,
            closing: false,
            only_hears: false,
            heard_all: false,
            heard_bytes: 0,
        };
        conversation.collect();
        conversation
    }

    /// Reads from the peer no faster than the budget allows. Other conversations may share the budget.
    pub fn within(mut self, budget: Arc<Budget>) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Limits sending and receiving to these rates from now on: the conversation itself is a
    /// measurement.
    pub fn keep_to(&mut self, sent: Vec<Arc<SharedRate>>, heard: Vec<Arc<SharedRate>>) {
        self.paces = (ConversationPace::at(sent), ConversationPace::at(heard));
    }

    /// Gives the session an input. A failure shows in the next [`Conversation::next`], after what the
    /// session still wanted done.
    pub fn feed(&mut self, input: Input) {
        let outcome = self.session.handle(Instant::now(), input);
        self.note(outcome);
    }

    /// Sets whether a measurement is in progress, whose reports are long. Until this is called, one is
    /// assumed.
    pub fn set_measuring(&mut self, measuring: bool) {
        self.unread_max = if measuring { MAX_UNREAD_MEASURING_BYTES } else { MAX_UNREAD_BYTES };
    }

    /// The next action that the session has already requested.
    pub fn said(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The next action, once there is one. `Ok(None)`: the session closed in good order.
    pub async fn next(&mut self) -> Result<Option<Action>, WireError> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Ok(Some(action));
            }
            if self.failure.is_some() || self.closing {
                self.say_goodbye().await;
                return self.failure.clone().map_or(Ok(None), Err);
            }
            self.turn().await;
            // A peer that never pauses must not keep the others waiting, nor stop this end's own clock.
            tokio::task::yield_now().await;
        }
    }

    /// The session's last output while it had no connection, for a driver that can send it another way.
    pub fn take_unheard(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.unheard)
    }

    /// Sends the session's remaining output and gives the connection away; the session goes on without
    /// one. `None` if there is none, or if the peer does not accept the rest.
    pub async fn take_stream(&mut self) -> Option<TcpStream> {
        let flushed = flush(self.stream.as_ref()?, &mut self.outgoing);
        let flushed = matches!(tokio::time::timeout(GOODBYE_TIMEOUT, flushed).await, Ok(Ok(())));
        self.stream.take().filter(|_| flushed)
    }

    /// Another descriptor of the connection, to watch for signs of life; `None` if there is none.
    pub fn control(&self) -> Option<OwnedFd> {
        self.stream.as_ref()?.as_fd().try_clone_to_owned().ok()
    }

    /// Whether nothing more can be said: the session has closed, or the connection has failed.
    pub fn is_over(&self) -> bool {
        self.closing || self.failure.is_some()
    }

    /// Bytes received from the peer so far.
    pub fn heard_bytes(&self) -> u64 {
        self.heard_bytes
    }

    /// Bytes that wait to be sent: the path is slower than the session, or the peer does not read.
    pub fn unsent_bytes(&self) -> usize {
        self.outgoing.len()
    }

    /// Sends the rest, and waits for the peer to close as well: some servers serve one client at a
    /// time, and turn away clients that come before they are done.
    pub async fn hang_up(&mut self) {
        self.say_goodbye().await;
        let Some(stream) = &self.stream else { return };
        let closed = async {
            let mut buffer = [0; 1024];
            loop {
                stream.readable().await?;
                match stream.try_read(&mut buffer) {
                    Ok(0) => return std::io::Result::Ok(()),
                    Err(cause) if cause.kind() != ErrorKind::WouldBlock => return Err(cause),
                    _ => {}
                }
            }
        };
        // Best effort: don't wait for a peer that does not close.
        let _ = tokio::time::timeout(GOODBYE_TIMEOUT, closed).await;
    }

    /// Sends the rest and closes, for a driver that wants no more actions.
    pub async fn leave(mut self, why: &str) {
        self.feed(Input::Leave(why.into()));
        self.say_goodbye().await;
    }

    /// One step of I/O or of time.
    async fn turn(&mut self) {
        let deadline = self.session.next_timeout();
        let now = Instant::now();
        let budget = self.budget.as_ref().and_then(|budget| budget.full_until(now));
        let (quiet, deaf) =
            (self.paces.0.full_until(now), budget.max(self.paces.1.full_until(now)));
        let hears = !self.heard_all && deaf.is_none();
        tokio::select! {
            () = until(deaf) => {}
            () = until(quiet) => {}
            ready = readable(self.stream.as_ref().filter(|_| hears)) => match ready {
                Ok(()) => self.read_now(),
                Err(cause) => self.fail(&cause),
            },
            ready = writable(self.stream.as_ref().filter(|_| quiet.is_none()), &self.outgoing) => match ready {
                Ok(()) => self.write_now(),
                Err(cause) => self.fail(&cause),
            },
            () = until(deadline) => {
                let outcome = self.session.handle_timeout(Instant::now());
                self.note(outcome);
            }
        }
    }

    /// Reads what has arrived. The buffer lives only here: thousands of idle connections must not keep
    /// one each.
    fn read_now(&mut self) {
        let Some(stream) = &self.stream else { return };
        let mut buffer = [0; 16 * 1024];
        let input = match stream.try_read(&mut buffer) {
            Ok(0) => Input::Closed,
            Ok(n) => {
                if let Some(budget) = &self.budget {
                    budget.heard(Instant::now(), n);
                }
                self.paces.1.moved(n);
                self.heard_bytes += n as u64;
                Input::Received(buffer[..n].to_vec())
            }
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return,
            // Many peers hang up with a reset; the session knows what it means at this point.
            Err(_) => Input::Closed,
        };
        self.heard_all = matches!(input, Input::Closed);
        self.feed(input);
    }

    fn write_now(&mut self) {
        let Some(stream) = &self.stream else { return };
        match send_segment(stream, self.outgoing.as_slices().0) {
            Ok(written) => {
                self.paces.0.moved(written);
                self.outgoing.drain(..written);
            }
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
            Err(cause) => self.fail(&cause),
        }
        self.end_sending();
    }

    /// Signals the end to the peer, once everything is sent.
    fn end_sending(&mut self) {
        if let Some(stream) = self.stream.as_ref().filter(|_| self.only_hears)
            && self.outgoing.is_empty()
        {
            // Fails only if the connection is already gone; the next read reports that.
            let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
        }
    }

    fn fail(&mut self, cause: &std::io::Error) {
        self.failure.get_or_insert(WireError::Closed(cause.to_string()));
    }

    fn note(&mut self, outcome: Result<(), WireError>) {
        if let Err(failure) = outcome {
            self.failure.get_or_insert(failure);
        }
        self.collect();
    }

    /// Takes over everything that the session wants done.
    fn collect(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Send(bytes) => self.send(bytes),
                Output::Do(action) => self.actions.push_back(action),
                Output::EndSending => self.only_hears = true,
                Output::Close => self.closing = true,
            }
        }
        self.end_sending();
    }

    /// Queues bytes, unless the peer has left too many unread: a peer that does not read must not
    /// make this end buffer its answers. Without a connection nothing is sent.
    fn send(&mut self, bytes: Vec<u8>) {
        if self.stream.is_none() {
            self.unheard = bytes;
            return;
        }
        if self.outgoing.len() <= self.unread_max {
            return self.outgoing.extend(bytes);
        }
        self.outgoing = VecDeque::new();
        let why = "it does not read its messages";
        self.failure.get_or_insert(WireError::Protocol(why.into()));
    }

    async fn say_goodbye(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let flush = async {
            flush(stream, &mut self.outgoing).await?;
            stream.shutdown().await
        };
        // Best effort: the peer may be gone, and the reason is already known.
        let _ = tokio::time::timeout(GOODBYE_TIMEOUT, flush).await;
    }
}

/// Sends everything.
async fn flush(stream: &TcpStream, outgoing: &mut VecDeque<u8>) -> std::io::Result<()> {
    while !outgoing.is_empty() {
        stream.writable().await?;
        match send_segment(stream, outgoing.as_slices().0) {
            Ok(sent) => drop(outgoing.drain(..sent)),
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

/// Most bytes that TCP's options take of a segment, such as selective acknowledgements (RFC 9293, section 3.1). TCP_MAXSEG
/// does not know those of the moment.
const MAX_OPTIONS_BYTES: usize = 40;

/// Sends one segment at most, which the kernel then joins with no other one (`MSG_EOR`, send(2)). Some paths drop the
/// super-packets of segmentation offload; the conversation about this must get through.
fn send_segment(stream: &TcpStream, bytes: &[u8]) -> std::io::Result<usize> {
    let mss = SockRef::from(stream).tcp_mss().map_or(bytes.len(), |mss| mss as usize);
    // An MSS below the room for options would leave nothing to send.
    let fits = mss.saturating_sub(MAX_OPTIONS_BYTES).max(1);
    let segment = &bytes[..bytes.len().min(fits)];
    let flags = SendFlags::EOR | SendFlags::NOSIGNAL;
    stream.try_io(Interest::WRITABLE, || Ok(rustix::net::send(stream, segment, flags)?))
}

/// Waits for something to read; for ever without a connection.
async fn readable(stream: Option<&TcpStream>) -> std::io::Result<()> {
    match stream {
        Some(stream) => stream.readable().await,
        None => pending().await,
    }
}

/// Waits for room to write; for ever without a connection, and while there is nothing to write.
async fn writable(stream: Option<&TcpStream>, outgoing: &VecDeque<u8>) -> std::io::Result<()> {
    match stream.filter(|_| !outgoing.is_empty()) {
        Some(stream) => stream.writable().await,
        None => pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => pending().await,
    }
}
