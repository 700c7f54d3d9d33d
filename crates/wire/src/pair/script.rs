//! Replaces the driver with virtual time: flows are connected after a while, payload moves on its
//! own.

use std::collections::VecDeque;
use std::time::Duration;

use goodput_model::{Known, Plan};

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
        vec![(ms(50), Input::Ended(Box::new(sample(1.0, 3000)))), (ms(50), report)]
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
            action => Self::act_as_server(action),
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

    fn act_as_server(action: &Action) -> Answers {
        match action {
            Action::ExpectFlows { .. } => vec![
                (ms(1), Input::Expecting { data_port: Some(40_000) }),
                (ms(60), Input::FlowsReady),
            ],
            Action::Setting(_) => vec![(ms(5), Input::SettingDone(Ok("4096 131072".into())))],
            _ => Vec::new(),
        }
    }
}
