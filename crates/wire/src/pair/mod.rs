//! Client and server of a protocol joined by a virtual clock: for tests and for fuzzing.
//!
//! A [`Pair`] carries bytes between two sessions, late and in pieces, and cuts or spoils them on
//! demand. A [`Script`] replaces the driver and its sockets with virtual time.

#[cfg(test)]
mod alone;
mod link;
mod login;
mod samples;
mod script;

use std::time::{Duration, Instant};

#[cfg(test)]
pub(crate) use self::alone::Alone;
pub use self::link::{Cut, Link};
pub use self::login::{login, users};
pub use self::samples::{
    BOOTED_NS, FAR_AHEAD_US, client_config, client_key, end, host, key, knows, limits, origin,
    sample, server_config, token,
};
pub use self::script::{Script, Step, captured};
use crate::error::WireError;
use crate::session::{Action, ClientConfig, Input, Output, Protocol, ServerConfig, Session};

/// More virtual time than any test conversation takes; a longer run is a hang.
const HANG_TIMEOUT: Duration = Duration::from_secs(3600);

/// The beginning of payload, as ttcp fills it (`pattern()` of ttcp.c).
const PAYLOAD: &[u8] = b" !\"#$%&'()*+,-./0123456789:;<=>?";

/// One end of a pair.
pub struct Peer {
    session: Box<dyn Session>,
    /// What its host does.
    pub script: Script,
    planned: Vec<(Instant, Input)>,
    /// Everything the session asked its host to do, in order.
    pub actions: Vec<Action>,
    /// Whether the session has a connection of its own. Without a control connection the connection
    /// is a flow: the client sends the proof on it, and it ends with the flows.
    has_control: bool,
    /// How the session ended, once it has.
    pub ended: Option<Result<(), WireError>>,
    /// When it ended.
    pub ended_at: Option<Instant>,
}

/// Two sessions and the links between them.
pub struct Pair {
    now: Instant,
    /// The connecting side.
    pub client: Peer,
    /// The answering side.
    pub server: Peer,
    /// Bytes on their way to the server.
    pub to_server: Link,
    /// Bytes on their way to the client.
    pub to_client: Link,
}

/// What happens next, and where.
#[derive(Clone, Copy)]
enum Event {
    ServerReceives,
    ClientReceives,
    ClientActs,
    ServerActs,
}

impl Pair {
    /// Joins a client and a server of `protocol`. The client follows `steps` and then leaves.
    pub fn new(
        protocol: &Protocol,
        client: ClientConfig,
        server: ServerConfig,
        steps: Vec<Step>,
    ) -> Self {
        let now = origin();
        Self {
            now,
            client: Peer::new(protocol, (protocol.client)(now, client), Script::client(steps)),
            server: Peer::new(protocol, (protocol.server)(now, server), Script::server()),
            to_server: Link::default(),
            to_client: Link::default(),
        }
    }

    /// Runs until both sessions have ended. Panics if they never do.
    pub fn run(&mut self) {
        let hang = self.now + HANG_TIMEOUT;
        self.client.collect(self.now, &mut self.to_server);
        while self.client.ended.is_none() || self.server.ended.is_none() {
            let Some((at, event)) = self.next_event() else {
                panic!("nothing is going to happen, and a session has not ended");
            };
            assert!(at < hang, "a session did not end by its deadlines");
            self.now = self.now.max(at);
            self.step(event);
        }
    }

    /// Virtual time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.now - origin()
    }

    fn next_event(&self) -> Option<(Instant, Event)> {
        let receives = |peer: &Peer, link: &Link| match peer.ended {
            None => link.next_arrival(),
            Some(_) => None,
        };
        let to_client = receives(&self.client, &self.to_client);
        [
            (receives(&self.server, &self.to_server), Event::ServerReceives),
            (to_client.filter(|_| self.client.has_control), Event::ClientReceives),
            (self.client.next_act(), Event::ClientActs),
            (self.server.next_act(), Event::ServerActs),
        ]
        .into_iter()
        .filter_map(|(at, event)| at.map(|at| (at, event)))
        .min_by_key(|(at, _)| *at)
    }

    fn step(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::ServerReceives => {
                let input = self.to_server.arrive();
                self.server.arrive(now, input, &mut self.to_client);
            }
            Event::ClientReceives => {
                let input = self.to_client.arrive();
                self.client.arrive(now, input, &mut self.to_server);
            }
            Event::ClientActs => self.client.act(now, &mut self.to_server),
            Event::ServerActs => self.server.act(now, &mut self.to_client),
        }
    }
}

impl Peer {
    fn new(protocol: &Protocol, session: Box<dyn Session>, script: Script) -> Self {
        let (planned, actions) = (Vec::new(), Vec::new());
        let has_control = protocol.has_control;
        Self { session, script, planned, actions, has_control, ended: None, ended_at: None }
    }

    /// The error that ended the session.
    pub fn error(&self) -> Option<&WireError> {
        self.ended.as_ref().and_then(|ended| ended.as_ref().err())
    }

    /// The number of actions for which `is` is true.
    pub fn count(&self, is: impl Fn(&Action) -> bool) -> usize {
        self.actions.iter().filter(|action| is(action)).count()
    }

    fn next_act(&self) -> Option<Instant> {
        if self.ended.is_some() {
            return None;
        }
        let planned = self.planned.iter().map(|(at, _)| *at).min();
        [planned, self.session.next_timeout()].into_iter().flatten().min()
    }

    /// Handles the next event: a planned input, or else the session's timeout.
    fn act(&mut self, now: Instant, out: &mut Link) {
        match self.planned.iter().position(|(at, _)| *at <= now) {
            Some(due) => {
                let (_, input) = self.planned.remove(due);
                self.take(now, input, out);
            }
            None => {
                let outcome = self.session.handle_timeout(now);
                self.note(now, outcome, out);
            }
        }
    }

    /// Takes an input from the connection.
    fn arrive(&mut self, now: Instant, input: Input, out: &mut Link) {
        match input {
            Input::Closed if !self.has_control && self.script.is_moving() => {
                let ended = self.script.end();
                self.planned.extend(ended.into_iter().map(|(after, i)| (now + after, i)));
            }
            input => self.take(now, input, out),
        }
    }

    fn take(&mut self, now: Instant, input: Input, out: &mut Link) {
        let outcome = self.session.handle(now, input);
        self.note(now, outcome, out);
    }

    fn note(&mut self, now: Instant, outcome: Result<(), WireError>, out: &mut Link) {
        let failed = outcome.is_err();
        if failed {
            self.ended = Some(outcome);
        }
        self.collect(now, out);
        if failed {
            self.ended_at = Some(now);
            out.close(now);
        }
    }

    fn collect(&mut self, now: Instant, out: &mut Link) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Send(bytes) => out.send(now, bytes),
                Output::EndSending => out.close(now),
                Output::Close => {
                    self.ended.get_or_insert(Ok(()));
                    self.ended_at = Some(now);
                    out.close(now);
                }
                Output::Do(action) => {
                    let answers = self.script.act(&action);
                    self.planned.extend(answers.into_iter().map(|(after, i)| (now + after, i)));
                    if !self.has_control {
                        self.connect(now, &action, out);
                    }
                    self.actions.push(action);
                }
            }
        }
    }

    /// Connects the first flow, which is the only connection if there is no control connection.
    fn connect(&self, now: Instant, action: &Action, out: &mut Link) {
        if let Action::OpenFlows { tickets, .. } = action
            && let Some(ticket) = tickets.first()
        {
            out.send(now, ticket.proof.0.clone());
            out.send(now, PAYLOAD.to_vec());
        }
    }
}
