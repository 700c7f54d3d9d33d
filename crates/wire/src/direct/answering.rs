//! The answering side of protocols without a control connection.
//!
//! ```text
//! opening ───the request───▶ preparing ──expecting──▶ gathering ──all flows──▶ running
//!                               ▲                                                │ flows ended
//!                               └───── if more was ordered ────── reporting ◀────┘
//! ```

use std::collections::VecDeque;
use std::time::Instant;

use goodput_model::{Direction, Host, Known, Length, Plan, Sample, Transport};

use super::{
    ACCEPT_TIMEOUT, DRAIN_TIMEOUT, FLOWS_TIMEOUT, GREETING_TIMEOUT, LINGER_TIME, SILENCE_TIMEOUT,
};
use crate::error::WireError;
use crate::outbox::Outbox;
use crate::protocols::goodput::times::after_s;
use crate::session::{Action, Input, ServerConfig, Session};
use crate::state_machine::StateMachine;
use crate::ticket::{FlowSetup, FlowTicket};

/// One measurement that a client asks for.
pub(crate) struct Order {
    pub(crate) plan: Plan,
    pub(crate) tickets: Vec<FlowTicket>,
    pub(crate) flow_setup: FlowSetup,
}

/// The request in a client's first bytes.
pub(crate) enum ClientRequest {
    /// Too few bytes to decide.
    More,
    /// Measurements, one after the other.
    Measure {
        /// The client's program.
        program: String,
        /// What to send on the connection before it becomes a flow.
        answer: Vec<u8>,
        /// What the operator should know.
        notes: Vec<String>,
        orders: VecDeque<Order>,
    },
    /// A conversation of its own, which begins with these bytes.
    Converse(Box<dyn Session>),
}

/// Reads the first bytes of a connection, or the first datagram of an address.
pub(crate) type Read = fn(Instant, &ServerConfig, &[u8]) -> Result<ClientRequest, WireError>;

/// A conversation, seen from the answering side.
pub(crate) struct Answering {
    config: ServerConfig,
    read: Read,
    outbox: Outbox,
    state: State,
    /// When the state has lasted too long, or something is due.
    deadline: Instant,
    /// Orders that have not begun.
    orders: VecDeque<Order>,
}

enum State {
    /// The client sends its request.
    Opening(Vec<u8>),
    /// The driver prepares for the flows of a plan.
    Preparing(Plan),
    /// The flows are being connected.
    Gathering(Plan),
    /// Payload moves.
    Running(DirectTransfer),
    /// The flows have ended; the driver collects its observations.
    Reporting,
    /// Another session has taken over.
    Elsewhere(Box<dyn Session>),
}

/// A transfer while payload moves.
struct DirectTransfer {
    /// When this side ends the payload.
    finish_at: Instant,
    /// Why it ends then, if the client didn't ask for this.
    why: Option<&'static str>,
    finishing: bool,
    /// Whether this end would notice that a peer which only sends is gone.
    receives: bool,
    /// The bytes received by the last sample that had more than the sample before, and its time.
    progress: Option<(u64, Instant)>,
}

impl StateMachine for Answering {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        if let State::Elsewhere(session) = &mut self.state {
            let outcome = session.handle(now, input);
            self.outbox.carry(session.as_mut());
            return outcome;
        }
        match input {
            Input::Received(bytes) => self.receive(now, &bytes)?,
            Input::Closed => return Err(self.closed()),
            Input::Expecting { .. } => {
                if let State::Preparing(plan) = &self.state {
                    self.enter(State::Gathering(plan.clone()), now + FLOWS_TIMEOUT);
                }
            }
            Input::FlowsReady => self.begin(now),
            Input::FlowsFailed(_) if matches!(self.state, State::Opening(_)) => {}
            Input::FlowsFailed(why) => return Err(WireError::Local(why)),
            Input::Denied(why) => return Err(WireError::NotPermitted(why)),
            Input::Sampled(sample) => self.sampled(now, &sample),
            Input::Finish(why) => self.finish(now, why),
            Input::Ended(_) => {
                if matches!(self.state, State::Running(_)) {
                    self.enter(State::Reporting, now + DRAIN_TIMEOUT);
                }
            }
            Input::Report(_) => self.reported(now),
            Input::Leave(_) => {
                self.abandon();
                self.outbox.close();
            }
            Input::Propose(_)
            | Input::Begin
            | Input::FinishSoon
            | Input::AskClock
            | Input::AskSetting(_)
            | Input::LoginChecked(_)
            | Input::SettingDone(_)
            | Input::ThirdPartyOutput(_)
            | Input::ReceiveHash(_)
            | Input::ThirdPartyDone(_)
            | Input::Capture(_)
            | Input::Captured(_) => {}
        }
        Ok(())
    }

    /// The state has lasted too long, or something is due in it.
    fn expire(&mut self, now: Instant) -> Result<(), WireError> {
        let why = match &mut self.state {
            State::Elsewhere(session) => {
                let outcome = session.handle_timeout(now);
                self.outbox.carry(session.as_mut());
                return outcome;
            }
            State::Running(running) if !running.finishing => {
                let why = running.why_now(now).map(Into::into);
                self.finish(now, why);
                return Ok(());
            }
            State::Opening(first) if first.is_empty() => "it sent nothing",
            State::Opening(_) => "its request was incomplete",
            State::Preparing(_) => return Err(WireError::Local("not ready in time".into())),
            State::Gathering(_) => "not all data connections were made in time",
            State::Running(_) => "its flows did not end",
            State::Reporting => return Err(WireError::Local("no report in time".into())),
        };
        Err(WireError::TimedOut(why.into()))
    }

    fn due(&self) -> Option<Instant> {
        match &self.state {
            State::Elsewhere(session) => session.next_timeout(),
            _ => Some(self.deadline),
        }
    }

    /// These protocols can't report an error to the peer.
    fn fail(&mut self, _now: Instant, _error: &WireError) {
        if !matches!(self.state, State::Elsewhere(_)) {
            self.abandon();
        }
        self.outbox.close();
    }

    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

impl Answering {
    pub(crate) fn new(now: Instant, config: ServerConfig, read: Read) -> Self {
        Self {
            config,
            read,
            outbox: Outbox::default(),
            state: State::Opening(Vec::new()),
            deadline: now + GREETING_TIMEOUT,
            orders: VecDeque::new(),
        }
    }

    fn enter(&mut self, state: State, deadline: Instant) {
        self.state = state;
        self.deadline = deadline;
    }

    /// Takes bytes until the request is complete. Bytes after the request are payload, which a
    /// driver leaves in the socket.
    fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        let State::Opening(first) = &mut self.state else { return Ok(()) };
        first.extend_from_slice(bytes);
        match (self.read)(now, &self.config, first)? {
            ClientRequest::More => Ok(()),
            ClientRequest::Measure { program, answer, notes, orders } => {
                let peer = Host::foreign(program);
                self.outbox.act(Action::Greeted { peer, secured: false, clock: None });
                for note in notes {
                    self.outbox.act(Action::Note(note));
                }
                self.outbox.send(answer);
                self.orders = orders;
                self.next_order(now);
                Ok(())
            }
            ClientRequest::Converse(mut session) => {
                let outcome = session.handle(now, Input::Received(std::mem::take(first)));
                self.outbox.carry(session.as_mut());
                self.state = State::Elsewhere(session);
                outcome
            }
        }
    }

    /// Asks for the flows of the next measurement, or ends the session after the last one.
    fn next_order(&mut self, now: Instant) {
        let Some(Order { plan, tickets, flow_setup }) = self.orders.pop_front() else {
            return self.outbox.close();
        };
        let expected = Box::new(plan.clone());
        self.outbox.act(Action::ExpectFlows { plan: expected, tickets, flow_setup });
        self.enter(State::Preparing(plan), now + ACCEPT_TIMEOUT);
    }

    /// All flows are connected: payload moves at once, because no other party must agree.
    fn begin(&mut self, now: Instant) {
        let (State::Preparing(plan) | State::Gathering(plan)) = &self.state else { return };
        let running = DirectTransfer::new(now, plan, self.config.limits.duration_s);
        self.outbox.act(Action::Begin);
        let due = running.next_timeout(now);
        self.enter(State::Running(running), due);
    }

    fn sampled(&mut self, now: Instant, sample: &Sample) {
        let State::Running(running) = &mut self.state else { return };
        if running.progress.is_none_or(|(bytes, _)| sample.received_bytes > bytes) {
            running.progress = Some((sample.received_bytes, now));
        }
        if !running.finishing {
            self.deadline = running.next_timeout(now);
        }
    }

    fn finish(&mut self, now: Instant, why: Option<String>) {
        let State::Running(running) = &mut self.state else { return };
        if running.finishing {
            return;
        }
        running.finishing = true;
        if let Some(why) = why {
            self.outbox.act(Action::Note(why));
        }
        self.outbox.act(Action::Finish);
        self.deadline = now + DRAIN_TIMEOUT;
    }

    fn reported(&mut self, now: Instant) {
        if matches!(self.state, State::Running(_) | State::Reporting) {
            let unreported = Known::missing("this protocol has no report from the client");
            self.outbox.act(Action::PeerReported(unreported));
            self.next_order(now);
        }
    }

    fn closed(&self) -> WireError {
        WireError::Closed(match &self.state {
            State::Opening(_) => "before its request".into(),
            _ => "in the middle of a measurement".into(),
        })
    }

    /// Asks the host to forget the running measurement, if there is one.
    fn abandon(&mut self) {
        if !matches!(self.state, State::Opening(_)) {
            self.outbox.act(Action::Abandon);
        }
    }
}

impl DirectTransfer {
    /// Payload of `plan`, which moves for at most `limit_s` seconds.
    fn new(now: Instant, plan: &Plan, limit_s: f64) -> Self {
        let sends = plan.direction != Direction::Send;
        let limit = after_s(now, limit_s) + LINGER_TIME;
        let (finish_at, why) = match plan.length {
            Length::Seconds(seconds) if sends => (after_s(now, seconds), None),
            Length::Seconds(s) if s < limit_s => (
                after_s(now, s) + LINGER_TIME,
                Some("the client did not end in the time it announced"),
            ),
            Length::Auto { .. } | Length::Bytes(_) | Length::Source | Length::Seconds(_) => {
                (limit, Some("the server's time limit for payload is over"))
            }
        };
        let receives = !sends && plan.transport == Transport::Tcp;
        Self { finish_at, why, finishing: false, receives, progress: None }
    }

    /// When to give up a sender that sends nothing more. Unknown before the first sample.
    fn silent_at(&self) -> Option<Instant> {
        self.progress.filter(|_| self.receives).map(|(_, at)| at + SILENCE_TIMEOUT)
    }

    fn next_timeout(&self, now: Instant) -> Instant {
        self.silent_at().map_or(self.finish_at, |at| at.min(self.finish_at)).max(now)
    }

    fn why_now(&self, now: Instant) -> Option<&'static str> {
        match self.silent_at() {
            Some(at) if now >= at && now < self.finish_at => Some("nothing more came from it"),
            _ => self.why,
        }
    }
}
