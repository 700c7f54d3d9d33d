//! What has happened so far, by the events of a run.

use std::collections::VecDeque;
use std::sync::Arc;

use goodput_engine::Event;
use goodput_model::{EndName, Plan, Role, Sample};

use super::limits::Recent;
use super::series::DirectionSeries;
use crate::report::progress::Progress;
use crate::report::whole_time::WholeTime;

/// Lines that are kept to be shown.
const KEPT_LINES: usize = 100;

/// The run so far.
#[derive(Debug, Clone)]
pub struct State {
    /// What is measured.
    pub target: String,
    /// What was agreed.
    pub plan: Arc<Plan>,
    /// Where the run is.
    pub phase: Phase,
    /// Time since payload began to move, seconds, by the near end's clock.
    pub at_s: f64,
    /// Number of runs that have begun.
    pub run: u32,
    /// Each direction with the end that sends in it.
    pub directions: Vec<DirectionState>,
    /// What both ends counted lately.
    pub recent: Recent,
    /// The newest lines of the plain output.
    pub lines: VecDeque<String>,
    /// What runs and what is decided, and the time of all, of a run of several measurements.
    pub progress: Option<(Progress, WholeTime)>,
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The peer has not answered yet, or the flows are being opened.
    Connecting,
    /// Payload moves.
    Running,
    /// The payload has stopped, and both ends gather what they saw.
    Gathering,
}

/// One direction.
#[derive(Debug, Clone)]
pub struct DirectionState {
    /// The end that sends.
    pub sender: EndName,
    /// What it did.
    pub moved: DirectionSeries,
}

impl State {
    /// Before the first event.
    pub fn new(plan: &Plan, target: &str) -> Self {
        Self {
            target: target.into(),
            plan: Arc::new(plan.clone()),
            phase: Phase::Connecting,
            at_s: 0.0,
            run: 0,
            directions: directions(plan),
            recent: Recent::default(),
            lines: VecDeque::new(),
            progress: None,
        }
    }

    /// Takes an event, and the line that the plain output prints of it.
    pub fn enter(&mut self, event: &Event, line: Option<&str>) {
        if let Some(line) = line {
            self.lines.truncate(KEPT_LINES - 1);
            self.lines.push_front(anstream::adapter::strip_str(line).to_string());
        }
        if let Some((progress, whole)) = &mut self.progress
            && progress.note(event)
        {
            whole.note(event, progress);
        }
        match event {
            Event::Found { target, plan } => {
                self.target.clone_from(target);
                self.plan = Arc::new(Plan::clone(plan));
                self.directions = directions(plan);
            }
            // Each run of a comparison counts from its own start.
            Event::Began | Event::TrialBegan { .. } => {
                self.phase = Phase::Running;
                self.run += 1;
                self.directions = directions(&self.plan);
                self.recent = Recent::default();
            }
            // Queues empty, and nothing more is sent: that is no rate of the test.
            Event::Sampled { sample, .. }
                if self.phase == Phase::Gathering && sample.at_s > self.at_s => {}
            Event::Sampled { end, sample } => self.sampled(*end, sample),
            Event::Ended => self.phase = Phase::Gathering,
            _ => {}
        }
    }

    /// The longest that payload may move, seconds, if time ends it.
    pub fn length_s(&self) -> Option<f64> {
        self.plan.length.longest_s()
    }

    /// The flows that have moved something, each with the end that sends on it.
    pub fn flows(&self) -> impl Iterator<Item = (EndName, u16)> {
        self.directions.iter().flat_map(|direction| {
            direction.moved.flows.keys().map(|flow| (direction.sender, *flow))
        })
    }

    fn sampled(&mut self, end: EndName, sample: &Sample) {
        if end == EndName::Near {
            self.at_s = sample.at_s;
        }
        for direction in &mut self.directions {
            let role = if end == direction.sender { Role::Sender } else { Role::Receiver };
            direction.moved.enter(end, role, sample);
        }
        self.recent.enter(end, sample);
    }
}

fn directions(plan: &Plan) -> Vec<DirectionState> {
    let direction =
        |sender: &EndName| DirectionState { sender: *sender, moved: DirectionSeries::default() };
    plan.direction.senders().iter().map(direction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_end_is_no_rate() {
        let mut state = State::new(&Plan::standard(), "host");
        let sampled = |at_s, sent_bytes| {
            let sample = Sample { at_s, sent_bytes, received_bytes: 0, flows: Vec::new() };
            Event::Sampled { end: EndName::Near, sample: Box::new(sample) }
        };
        let events =
            [Event::Began, sampled(0.0, 0), sampled(1.0, 1000), Event::Ended, sampled(2.0, 1000)];
        events.iter().for_each(|event| state.enter(event, None));
        let (rate, _) = state.directions[0].moved.all.rate();
        assert_eq!(rate.points(), [(1.0, 8000.0)]);
        assert_eq!((state.at_s, state.phase), (1.0, Phase::Gathering));
    }
}
