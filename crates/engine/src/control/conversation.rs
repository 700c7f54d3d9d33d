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
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::control::budget::{Budget, Pace};

/// How long a closing connection may take to send what is left.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes that a peer may leave unread, unless it is measured with: a few answers.
const MAX_UNREAD_BYTES: usize = 1 << 20;

/// Bytes that a peer may leave unread from a measurement on: a report, and the samples of a while.
const MAX_UNREAD_MEASURING_BYTES: usize = 16 << 20;

/// A session and the connection it talks over, unless it has none: some protocols have only flows,
/// others turn the connection into a flow. Every method may be cancelled between two awaits without
/// losing bytes or actions.
pub struct Conversation {
    session: Box<dyn Session>,
    stream: Option<TcpStream>,
    outgoing: VecDeque<u8>,
    /// What the session said last while it had no connection.
    unheard: Vec<u8>,
    unread_max: usize,
    /// What the peer may still say; without one, as much as it likes.
    budget: Option<Arc<Budget>>,
    /// How fast it is sent to, and heard.
    paces: (Pace, Pace),
    actions: VecDeque<Action>,
    failure: Option<WireError>,
    closing: bool,
    /// Whether the session says nothing more, but goes on to hear.
    only_hears: bool,
    /// Whether the peer says nothing more.
    heard_all: bool,
    heard_bytes: u64,
}

impl Conversation {
    /// Begins to drive `session` over `stream`; without one it lives only by its inputs and by time.
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

    /// Hears the peer no faster than the budget allows, which other conversations may share.
    pub fn within(mut self, budget: Arc<Budget>) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Keeps to these rates from now on, of what is sent and of what is heard: the conversation is a
    /// measurement in itself.
    pub fn keep_to(&mut self, sent: Vec<Arc<SharedRate>>, heard: Vec<Arc<SharedRate>>) {
        self.paces = (Pace::at(sent), Pace::at(heard));
    }

    /// Tells the session something. A failure shows in the next [`Conversation::next`], after what
    /// the session still wanted done.
    pub fn tell(&mut self, input: Input) {
        let outcome = self.session.handle(Instant::now(), input);
        self.note(outcome);
    }

    /// Whether a measurement is in progress, whose reports are long; it is taken for one until told
    /// otherwise.
    pub fn set_measuring(&mut self, measuring: bool) {
        self.unread_max = if measuring { MAX_UNREAD_MEASURING_BYTES } else { MAX_UNREAD_BYTES };
    }

    /// The next action that the session has said already.
    pub fn said(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The next action, when there is one. `Ok(None)`: the session has closed in good order.
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
            // A peer that never pauses must not keep the others waiting, nor this end's own clock.
            tokio::task::yield_now().await;
        }
    }

    /// What the session said last while it had no connection, for a driver that has another way.
    pub fn take_unheard(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.unheard)
    }

    /// Sends what the session still has to say and gives the connection away; the session goes on
    /// without. `None` if it has none, or if the peer does not take what is left.
    pub async fn take_stream(&mut self) -> Option<TcpStream> {
        let stream = self.stream.as_mut()?;
        let flushed = stream.write_all_buf(&mut self.outgoing);
        let flushed = matches!(tokio::time::timeout(GOODBYE_TIMEOUT, flushed).await, Ok(Ok(())));
        self.stream.take().filter(|_| flushed)
    }

    /// Another descriptor of its connection, to see signs of life on; `None` if it has none.
    pub fn control(&self) -> Option<OwnedFd> {
        self.stream.as_ref()?.as_fd().try_clone_to_owned().ok()
    }

    /// Whether nothing more can be said: the session has closed, or the connection has failed.
    pub fn is_over(&self) -> bool {
        self.closing || self.failure.is_some()
    }

    /// Bytes that came from the peer so far.
    pub fn heard_bytes(&self) -> u64 {
        self.heard_bytes
    }

    /// Bytes that wait to be sent: the way is slower than what is said, or the peer does not listen.
    pub fn unsent_bytes(&self) -> usize {
        self.outgoing.len()
    }

    /// Sends what is left, and waits for the peer to close as well: some serve one client after the
    /// other, and turn away clients that come before they are done.
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
        // Best effort: who does not close is not waited for.
        let _ = tokio::time::timeout(GOODBYE_TIMEOUT, closed).await;
    }

    /// Sends what is left and closes, for a driver that wants no more actions.
    pub async fn leave(mut self, why: &str) {
        self.tell(Input::Leave(why.into()));
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

    /// Takes what has arrived. The buffer lives only here: thousands of idle connections must not
    /// keep one each.
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
            // A reset is how many peers hang up; the session knows what it means at this point.
            Err(_) => Input::Closed,
        };
        self.heard_all = matches!(input, Input::Closed);
        self.tell(input);
    }

    fn write_now(&mut self) {
        let Some(stream) = &self.stream else { return };
        match stream.try_write(self.outgoing.as_slices().0) {
            Ok(written) => {
                self.paces.0.moved(written);
                self.outgoing.drain(..written);
            }
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
            Err(cause) => self.fail(&cause),
        }
        self.end_sending();
    }

    /// Tells the peer that nothing more comes, once everything is sent.
    fn end_sending(&mut self) {
        if let Some(stream) = self.stream.as_ref().filter(|_| self.only_hears)
            && self.outgoing.is_empty()
        {
            // Fails only if the connection is gone already; the next read reports that.
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

    /// Takes over everything the session wants done.
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

    /// Queues bytes, unless the peer has left too many unread already: a stranger that does not
    /// listen must not make this end remember what it said. Without a connection nobody is told.
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
            stream.write_all_buf(&mut self.outgoing).await?;
            stream.shutdown().await
        };
        // Best effort: the peer may be gone, and the reason is already known.
        let _ = tokio::time::timeout(GOODBYE_TIMEOUT, flush).await;
    }
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
