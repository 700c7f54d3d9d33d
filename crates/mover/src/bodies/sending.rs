//! The bodies of a flow while they are written.

use goodput_model::Seconds;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;

use super::pause::FlowPause;
use super::stall_at_end;
use crate::body_source::{BodyError, BodySource, Extent};
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::socket;
use crate::stop::Phase;

/// The bodies of a flow while they are written.
pub(crate) struct Uploads<'a> {
    flow: &'a Flow,
    source: &'a BodySource,
    most_bytes: u64,
    /// The current body; `None` between two.
    body: Option<Written>,
    /// When it last moved.
    moved_ns: u64,
    /// When the flow began.
    began_ns: u64,
    /// Whether the peer has confirmed a body.
    is_heard: bool,
}

struct Written {
    /// Bytes sent of the body.
    sent: u64,
    /// Bytes of the whole body, if known.
    all: Option<u64>,
}

/// The outcome of starting a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It can be written, on the connection of the previous body.
    Here,
    /// It can be written, on another connection.
    Anew,
    /// The flow is to end.
    Stopped,
}

impl<'a> Uploads<'a> {
    /// For a flow that sends bodies.
    pub(crate) fn of(flow: &'a Flow) -> Option<Self> {
        let source = flow.config.bodies.as_deref()?;
        let most_bytes = source.inner().bodies.most_bytes().max(1);
        let began_ns = now_ns();
        Some(Self {
            flow,
            source,
            most_bytes,
            body: None,
            moved_ns: began_ns,
            began_ns,
            is_heard: false,
        })
    }

    /// Makes sure that there is a body to write; if not, begins one of `left` bytes or of the greatest length.
    pub(crate) fn go_on(&mut self, left: u64) -> Result<Begun, MoveError> {
        if self.body.is_some() {
            return Ok(Begun::Here);
        }
        self.begin(Some(left.min(self.most_bytes)))
    }

    /// Begins a body of this many bytes, if the length is known.
    pub(crate) fn begin(&mut self, all: Option<u64>) -> Result<Begun, MoveError> {
        let asked = self.source.inner().bodies.store(all, &FlowPause::of(self.flow));
        let body = match self.heard(asked)? {
            Some(body) => body,
            None => return Ok(Begun::Stopped),
        };
        let is_anew = self.flow.go_over(self.source, body.socket)?;
        if let (true, Some(rate)) = (is_anew, self.flow.config.rate) {
            let paced = socket::limit_pacing_rate(self.flow.socket.as_fd(), rate);
            paced.map_err(|cause| self.system("pace another connection", cause))?;
        }
        if !self.source.inner().take(body.extent == Extent::Decoded) {
            let why = "what this server takes is encrypted or in calls, which only the mover copy can send: leave out \
                       --mover";
            return Err(self.flow.body_failed(BodyError::Own(why.into())));
        }
        self.flow.cork(true)?;
        self.body = Some(Written { sent: 0, all });
        self.moved_ns = now_ns();
        Ok(if is_anew { Begun::Anew } else { Begun::Here })
    }

    /// How much of `want` bytes may be written.
    pub(crate) fn at_most(&self, want: usize) -> usize {
        let left = self.body.as_ref().and_then(|body| Some(body.all? - body.sent));
        left.map_or(want, |left| usize::try_from(left).unwrap_or(usize::MAX).min(want))
    }

    /// `bytes` were written; returns whether the body is complete.
    pub(crate) fn sent(&mut self, bytes: usize) -> bool {
        let Some(body) = &mut self.body else { return false };
        (body.sent, self.moved_ns) = (body.sent + bytes as u64, now_ns());
        body.all.is_some_and(|all| body.sent >= all)
    }

    /// Ends the body, and waits until the peer has it. This time is no stall once the peer has confirmed it.
    pub(crate) fn complete(&mut self) -> Result<(), MoveError> {
        if let Some(body) = &mut self.body {
            body.all = Some(body.sent);
        }
        self.flow.cork(false)?;
        let stored = self.source.inner().bodies.stored(&FlowPause::to_deadline(self.flow));
        if self.heard(stored)?.is_some() {
            (self.body, self.is_heard) = (None, true);
            self.moved_ns = now_ns();
        }
        Ok(())
    }

    /// Stops sending. If a body is cut off, its connection is reset, so that nothing of it remains in flight. Fails if
    /// nothing had moved for most of the flow's time, up to its end, or if the peer took a whole body but never
    /// confirmed any: what was sent is then no rate.
    pub(crate) fn end(self) -> Result<(), MoveError> {
        if self.body.is_some() {
            // Fails only if the peer has reset the connection already.
            let _ = set_socket_linger(&self.flow.socket, Some(Duration::ZERO));
        }
        if self.flow.stop.phase() == Phase::Abort {
            return Err(self.flow.aborted());
        }
        // Before the server's first word, even after a short silence it may not have received anything at all.
        let unheard = self.is_sent() && !self.is_heard;
        let since_ns = if unheard { self.moved_ns } else { self.began_ns };
        let Some(still_ns) = stall_at_end(since_ns, self.moved_ns) else { return Ok(()) };
        let why = if self.is_sent() { self.unconfirmed(still_ns) } else { self.stalled(still_ns) };
        Err(self.flow.body_failed(BodyError::Peer(why)))
    }

    /// Fails if the body has stalled for too long.
    pub(crate) fn check_progress(&self) -> Result<(), MoveError> {
        let is_in_time = now_ns() < self.moved_ns.saturating_add(self.source.patience_ns);
        if is_in_time || self.source.resumes_at().is_some() {
            return Ok(());
        }
        Err(self.in_peers_words(BodyError::Peer(self.stalled(self.source.patience_ns))))
    }

    /// Whether the whole body was sent, so that the flow only waits for the peer's confirmation.
    fn is_sent(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.all == Some(body.sent))
    }

    fn stalled(&self, still_ns: u64) -> String {
        let time = Seconds(still_ns as f64 / 1e9);
        format!("the server stalled: {} it took no more for {time}", self.so_far())
    }

    /// A write failed.
    pub(crate) fn broke(&self, cause: Errno) -> MoveError {
        let failure = self.source.inner().failure.take();
        match (failure, cause) {
            (Some(why), _) => self.in_peers_words(why),
            (None, Errno::CONNRESET | Errno::PIPE) => {
                let why = format!("the server broke the connection off {}", self.so_far());
                self.in_peers_words(BodyError::Peer(why))
            }
            (None, cause) => self.flow.failed("send", cause),
        }
    }

    fn unconfirmed(&self, still_ns: u64) -> String {
        let sent = self.body.as_ref().map_or(0, |body| body.sent);
        let time = Seconds(still_ns as f64 / 1e9);
        format!("the server took all {sent} bytes of a body, and did not confirm them for {time}")
    }

    fn so_far(&self) -> String {
        let sent = self.body.as_ref().map_or(0, |body| body.sent);
        format!("after {sent} bytes of a body")
    }

    /// An error in the peer's words if there are any, otherwise in these.
    fn in_peers_words(&self, why: BodyError) -> MoveError {
        let words = self.source.inner().bodies.refusal(&FlowPause::to_deadline(self.flow));
        self.flow.body_failed(words.unwrap_or(why))
    }

    /// The answer to a question; `None` if the stop ended it.
    fn heard<T>(&self, answer: Result<T, BodyError>) -> Result<Option<T>, MoveError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(BodyError::Stopped) => Ok(None),
            Err(why) => Err(self.flow.body_failed(why)),
        }
    }

    fn system(&self, operation: &'static str, cause: std::io::Error) -> MoveError {
        MoveError::from_system(self.flow.config.id, operation, cause)
    }
}
