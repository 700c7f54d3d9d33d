//! The connecting side of protocols without a control connection.
//!
//! ```text
//! idle ──propose──▶ opening ──flows ready──▶ ready ──begin──▶ running ──flows ended──▶ idle
//! ```

use std::time::{Duration, Instant};

use goodput_model::{Direction, Host, Known, Pin, Plan, Sample};

use super::{BEGIN_TIMEOUT, DRAIN_TIMEOUT, IDLE_TIMEOUT, LINGER_TIME};
use crate::check;
use crate::error::WireError;
use crate::outbox::Outbox;
use crate::protocols::goodput::times::{MAX_PLAN_S, after_s};
use crate::session::{Action, Input, SettingRefusal};
use crate::state_machine::StateMachine;
use crate::ticket::{FlowSetup, FlowTicket};

/// A protocol's configuration of its connecting side.
pub(crate) struct Dialect {
    /// A description of the program at the far end.
    pub(crate) program: &'static str,
    /// The flows of a plan that makes sense, or the parts of the plan that this protocol can't express.
    pub(crate) tickets: fn(&Plan) -> Result<Vec<FlowTicket>, String>,
    /// How long the driver may take to open the flows.
    pub(crate) opening: Duration,
    /// What the user should know once the flows have ended.
    pub(crate) doubt: fn(&Plan, &Sample) -> Option<String>,
    /// Why the far end reports nothing.
    pub(crate) unreported: &'static str,
}

/// A conversation, seen from the connecting side.
pub(crate) struct Connecting {
    dialect: &'static Dialect,
    outbox: Outbox,
    state: State,
    deadline: Instant,
}

enum State {
    /// Nothing is measured.
    Idle,
    /// The driver opens the flows.
    Opening(Box<Plan>),
    /// All flows are connected; this end observes.
    Ready(Box<Plan>),
    /// Payload moves, or the driver was asked to end it.
    Running { plan: Box<Plan>, finishing: bool },
}

impl StateMachine for Connecting {
    fn take(&mut self, now: Instant, input: Input) -> Result<(), WireError> {
        match (input, &self.state) {
            (Input::Propose(plan), State::Idle) => self.propose(now, plan),
            (Input::FlowsReady, State::Opening(plan)) => {
                let plan = plan.clone();
                self.outbox.act(Action::PeerReady);
                self.enter(State::Ready(plan), now + BEGIN_TIMEOUT);
            }
            (Input::FlowsFailed(_), _) => self.enter(State::Idle, now + IDLE_TIMEOUT),
            (Input::Begin, State::Ready(plan)) => {
                let plan = plan.clone();
                self.outbox.act(Action::Begin);
                let longest = check::duration_s(&plan).unwrap_or(MAX_PLAN_S);
                let until = after_s(now, longest) + LINGER_TIME + DRAIN_TIMEOUT;
                self.enter(State::Running { plan, finishing: false }, until);
            }
            (Input::Finish(_), State::Running { plan, finishing: false }) => {
                let plan = plan.clone();
                self.outbox.act(Action::Finish);
                self.enter(
                    State::Running { plan, finishing: true },
                    now + LINGER_TIME + DRAIN_TIMEOUT,
                );
            }
            (Input::Ended(last), State::Running { plan, .. }) => {
                let doubt = (self.dialect.doubt)(plan, &last);
                self.conclude(now, doubt);
            }
            // A driver whose flows ended announces this before it reports.
            (Input::Report(_), State::Running { .. }) => self.conclude(now, None),
            (Input::AskSetting(_), _) => {
                let why = format!("{} has no settings to ask for", self.dialect.program);
                let refusal = SettingRefusal { why, ..Default::default() };
                self.outbox.act(Action::SettingAnswered(Err(refusal)));
            }
            (Input::Leave(_), _) => self.outbox.close(),
            _ => {}
        }
        Ok(())
    }

    fn expire(&mut self, _now: Instant) -> Result<(), WireError> {
        let why = match self.state {
            State::Idle => "nothing was asked of the session for ten minutes",
            State::Opening(_) => "the flows were not opened in time",
            State::Ready(_) => "the measurement did not begin in time",
            State::Running { .. } => "the flows did not end in time",
        };
        Err(WireError::Local(why.into()))
    }

    fn due(&self) -> Option<Instant> {
        Some(self.deadline)
    }

    /// There is no control connection on which to send an error.
    fn fail(&mut self, _now: Instant, _error: &WireError) {
        self.outbox.close();
    }

    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

impl Connecting {
    pub(crate) fn new(now: Instant, dialect: &'static Dialect) -> Self {
        let mut outbox = Outbox::default();
        let peer = Host::foreign(dialect.program);
        outbox.act(Action::Greeted { peer, secured: false, clock: None });
        Self { dialect, outbox, state: State::Idle, deadline: now + IDLE_TIMEOUT }
    }

    fn enter(&mut self, state: State, deadline: Instant) {
        self.state = state;
        self.deadline = deadline;
    }

    fn propose(&mut self, now: Instant, plan: Box<Plan>) {
        match check::sense(&plan).and_then(|()| (self.dialect.tickets)(&plan)) {
            Err(why) => self.outbox.act(Action::Refused(why)),
            Ok(tickets) => {
                let lost = check::not_carried(&plan, &[]);
                if plan.direction == Direction::Both && !lost.is_empty() {
                    let options = lost.join(", ");
                    let far = self.dialect.program;
                    self.outbox.act(Action::Note(format!(
                        "{far} can't be given {options}: it sends without"
                    )));
                }
                let flow_setup = FlowSetup::Connect { port: None, apart: 0 };
                self.outbox.act(Action::OpenFlows { tickets, flow_setup });
                self.enter(State::Opening(plan), now + self.dialect.opening);
            }
        }
    }

    fn conclude(&mut self, now: Instant, doubt: Option<String>) {
        if let Some(doubt) = doubt {
            self.outbox.act(Action::Note(doubt));
        }
        self.outbox.act(Action::PeerReported(Known::missing(self.dialect.unreported)));
        self.enter(State::Idle, now + IDLE_TIMEOUT);
    }
}

/// Whether a plan names a way to receive that only the far end could take.
pub(crate) fn names_far_receiver(plan: &Plan) -> bool {
    let named = plan.receive_mover.as_ref().is_some_and(|mover| mover != check::PLAIN_MOVER);
    named && plan.direction == Direction::Send
}

fn named(options: &[(bool, &'static str)]) -> Vec<&'static str> {
    options.iter().filter(|(given, _)| *given).map(|(_, name)| *name).collect()
}

/// The options of a plan that matter only at the far end, and that this protocol can't carry.
pub(crate) fn out_of_reach(plan: &Plan) -> Vec<&'static str> {
    // What no far end without a control conversation can do, in either direction.
    let never = named(&[
        (plan.omit_s > 0.0, "--omit"),
        (plan.peer_output, "--peer-output"),
        (plan.data_port.is_some(), "--data-port"),
        (plan.pin.far != Pin::None, "--pin far:"),
        (names_far_receiver(plan), "--receive-mover"),
    ]);
    let one_way = match plan.direction {
        Direction::Send => {
            let buffer = named(&[(plan.socket.rcvbuf_bytes.is_some(), "--rcvbuf")]);
            [buffer, check::not_carried(plan, &[])].concat()
        }
        Direction::Reverse => check::not_carried(plan, &[]),
        Direction::Both => Vec::new(),
    };
    [never, one_way].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_far_end_could_do_is_named() {
        let plan = |direction, change: fn(&mut Plan)| {
            let mut plan = Plan { direction, ..Plan::standard() };
            change(&mut plan);
            out_of_reach(&plan)
        };
        for direction in [Direction::Send, Direction::Reverse] {
            assert_eq!(plan(direction, |_| {}), [""; 0]);
        }
        assert_eq!(plan(Direction::Reverse, |plan| plan.socket.cork = true), ["--cork"]);
        assert_eq!(plan(Direction::Reverse, |plan| plan.mover = "sendfile".into()), ["--mover"]);
        let discards = |plan: &mut Plan| plan.receive_mover = Some("discard".into());
        assert_eq!(plan(Direction::Send, discards), ["--receive-mover"]);
        assert_eq!(plan(Direction::Reverse, discards), [""; 0], "it is this end's");
    }
}
