//! Replaces the driver with virtual time: flows are connected after a while, payload moves on its
//! own.

use std::collections::VecDeque;
use std::time::Duration;

use goodput_model::{FarHeads, Known, PacketHead, Plan};

use super::samples::{end, sample};
use crate::session::{Action, Input, SettingRequest};

/// A client's steps, one after the other.
#[derive(Debug, Clone)]
pub enum Step {
    /// Measures a plan, or is refused.
    Measure(Plan),
    /// Asks for a setting.
    Ask(SettingRequest),
    /// Asks for the server's clock.
    CompareClocks,
    /// Proposes a plan and reports that its flows can't be opened.
    FailToOpen(Plan),
}

/// Answers a session's actions.
pub struct Script {
    name: &'static str,
    is_client: bool,
    steps: VecDeque<Step>,
    fails_to_open: bool,
    moving: bool,
    /// Whether a server captures packets of the present measurement.
    captures: bool,
    /// Whether it does not end a measurement on its own.
    pub never_finishes: bool,
    /// Whether it no longer does anything.
    pub deaf: bool,
}

/// The inputs of the session, and when they come.
type Answers = Vec<(Duration, Input)>;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

impl Script {
    /// Follows `steps`, then leaves.
    pub fn client(steps: Vec<Step>) -> Self {
        Self::new("near", true, steps.into())
    }

    /// Does everything that the session asks.
    pub fn server() -> Self {
        Self::new("far", false, VecDeque::new())
    }

    fn new(name: &'static str, is_client: bool, steps: VecDeque<Step>) -> Self {
        Self {
            name,
            is_client,
            steps,
            fails_to_open: false,
            moving: false,
            captures: false,
            never_finishes: false,
            deaf: false,
        }
    }

    /// Whether payload moves.
    pub fn is_moving(&self) -> bool {
        self.moving && !self.deaf
    }

    /// The flows end, and this end reports its observations.
    pub fn end(&mut self) -> Answers {
        self.moving = false;
        let report = Input::Report(Known::Value(Box::new(end(self.name))));
        let captured = std::mem::take(&mut self.captures).then(|| Input::Captured(captured()));
        let ended = Input::Ended(Box::new(sample(1.0, 3000)));
        [Some(ended), captured, Some(report)]
            .into_iter()
            .flatten()
            .map(|one| (ms(50), one))
            .collect()
    }

    /// The answer to an action.
    pub fn act(&mut self, action: &Action) -> Answers {
        if self.deaf {
            return Vec::new();
        }
        if matches!(action, Action::Abandon | Action::Refused(_)) {
            self.moving = false;
        }
        match action {
            Action::Begin => self.begin(),
            Action::Finish if self.moving => self.end(),
            Action::Finish => Vec::new(),
            action if self.is_client => self.act_as_client(action),
            action => self.act_as_server(action),
        }
    }

    fn begin(&mut self) -> Answers {
        self.moving = true;
        let sampled = |i: u64| {
            let sample = sample(i as f64 / 5.0, 1000 * i);
            (ms(200 * i), Input::Sampled(Box::new(sample)))
        };
        let mut answers: Answers = (1..4).map(sampled).collect();
        if self.is_client && !self.never_finishes {
            answers.push((ms(1000), Input::Finish(None)));
        }
        answers
    }

    fn act_as_client(&mut self, action: &Action) -> Answers {
        match action {
            Action::Greeted { .. } | Action::SettingAnswered(_) | Action::ClockCompared(_) => {
                self.next_step(ms(1))
            }
            Action::Refused(_) => self.next_step(ms(1)),
            Action::OpenFlows { .. } if self.fails_to_open => {
                let mut answers = vec![(ms(5), Input::FlowsFailed("no route".into()))];
                answers.extend(self.next_step(ms(6)));
                answers
            }
            Action::OpenFlows { .. } => vec![(ms(10), Input::FlowsReady)],
            Action::PeerReady => vec![(ms(10), Input::Begin)],
            // Our own report comes 50 ms after the end of the payload.
            Action::PeerReported(_) => self.next_step(ms(100)),
            _ => Vec::new(),
        }
    }

    fn next_step(&mut self, after: Duration) -> Answers {
        self.fails_to_open = matches!(self.steps.front(), Some(Step::FailToOpen(_)));
        let input = match self.steps.pop_front() {
            Some(Step::Measure(plan) | Step::FailToOpen(plan)) => Input::Propose(Box::new(plan)),
            Some(Step::Ask(request)) => Input::AskSetting(request),
            Some(Step::CompareClocks) => Input::AskClock,
            None => Input::Leave("done".into()),
        };
        vec![(after, input)]
    }

    fn act_as_server(&mut self, action: &Action) -> Answers {
        match action {
            Action::ExpectFlows { plan, .. } => {
                self.captures = plan.far_capture;
                let capture = self.captures.then(|| Input::Capture(Known::Value("eth0".into())));
                let expecting = Input::Expecting { data_port: Some(40_000) };
                let mut answers: Answers = capture.into_iter().map(|one| (ms(1), one)).collect();
                answers.extend([(ms(1), expecting), (ms(60), Input::FlowsReady)]);
                answers
            }
            Action::Setting(_) => vec![(ms(5), Input::SettingDone(Ok("4096 131072".into())))],
            _ => Vec::new(),
        }
    }
}

/// More heads than one message has.
pub fn captured() -> Box<FarHeads> {
    let mut captured = FarHeads { dropped: 3, ..FarHeads::default() };
    for at_ns in 0..10_000 {
        let head = PacketHead { at_ns, bytes: 1500, is_outgoing: false, head: &[0x45; 52] };
        captured.heads.push(&head, usize::MAX);
    }
    Box::new(captured)
}
