//! A run on the whole terminal (`--live`): graphs, who limits, flows. After it, the terminal has the same lines as without
//! it. A server has a view of its own.

mod controls;
mod draw;
mod full_screen;
mod limits;
mod parts;
mod series;
mod server;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_engine::Event;
use goodput_model::{Plan, Source};
use ratatui::Frame;
use rustix::process::{Signal, getpid, kill_process};

use crate::report::progress::Progress;
use crate::report::whole_time::WholeTime;
use controls::Controls;
use full_screen::{FullScreen, View};
use limits::RunLimits;
pub use server::ServerView;
use state::State;

/// The full-screen view of a run. Dropping this closes it, and the terminal is as before.
pub struct Dashboard {
    shared: Shared,
    _screen: FullScreen,
}

impl Dashboard {
    /// For a run by `plan` towards `target`. `None` if nobody could see it: standard output is not a terminal, or has no
    /// control sequences.
    pub fn open(plan: &Plan, target: &str) -> Option<Self> {
        let source = plan.storage.source.as_ref();
        // Keys would be taken from the payload.
        if source.is_some_and(|source| *source == Source::Input) {
            return None;
        }
        let shared = Shared(Arc::new(Mutex::new(State::new(plan, target))));
        let limits = RunLimits::new(plan, 0);
        let view = RunView { shared: shared.clone(), limits, paused: None };
        Some(Self { shared, _screen: FullScreen::open(view, quit)? })
    }

    /// Also shows what runs, what is decided and how long it takes, of a run of several measurements that ends after
    /// `at_most`, if that is known.
    pub fn show_progress(&self, at_most: Option<Duration>) {
        self.shared.state().progress = Some((Progress::default(), WholeTime::begin(at_most)));
    }

    /// Takes an event, and the line that the plain output prints of it.
    pub fn enter(&self, event: &Event, line: Option<&str>) {
        self.shared.state().enter(event, line);
    }
}

#[derive(Clone)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in between leaves a state that can be shown.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the drawing thread has.
struct RunView {
    shared: Shared,
    limits: RunLimits,
    paused: Option<(State, RunLimits)>,
}

impl View for RunView {
    fn look(&mut self) -> bool {
        let (run, plan, recent) = {
            let state = self.shared.state();
            (state.run, Arc::clone(&state.plan), state.recent.clone())
        };
        self.limits.judge(run, &plan, &recent);
        true
    }

    fn rows(&self) -> usize {
        self.shared.state().flows().count()
    }

    fn pause(&mut self, paused: bool) {
        let now = || (self.shared.state().clone(), self.limits.clone());
        self.paused = paused.then(|| self.paused.take().unwrap_or_else(now));
    }

    fn draw(&self, frame: &mut Frame, controls: Controls) {
        match &self.paused {
            Some((state, limits)) => draw::whole(frame, state, limits, controls),
            None => draw::whole(frame, &self.shared.state(), &self.limits, controls),
        }
    }
}

/// Ends the run as Ctrl-C does: the first time with the results so far, the second time at once.
fn quit() {
    if let Err(cause) = kill_process(getpid(), Signal::INT) {
        tracing::debug!("can't send SIGINT to this process: {cause}");
    }
}
