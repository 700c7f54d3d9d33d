//! A run on the whole terminal (`--live`): graphs, who limits, flows. The plain output waits until this is closed, so
//! that the terminal then has the same lines as without it.
//!
//! A thread of its own draws and reads keys, because a terminal may stall and a run must not.

mod controls;
mod draw;
mod limits;
mod series;
mod state;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_engine::Event;
use goodput_model::{Plan, Source};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event as Input};
use rustix::process::{Signal, getpid, kill_process};

use crate::report::progress::Progress;
use crate::screen;
use controls::{Asked, Controls};
use limits::{Recent, RunLimits};
use state::State;

/// Time between two pictures: ten a second.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// How long the end waits for a terminal that takes nothing.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// The full-screen view of a run. Dropping this closes it, and the terminal is as before.
pub struct Dashboard {
    shared: Arc<Shared>,
    /// Disconnected when the drawing thread has ended.
    ended: Receiver<()>,
}

struct Shared {
    state: Mutex<State>,
    closed: AtomicBool,
}

impl Dashboard {
    /// For a run by `plan` towards `target`. `None` if nobody could see it: standard output is not a terminal, or has no
    /// control sequences.
    pub fn open(plan: &Plan, target: &str) -> Option<Self> {
        let source = plan.storage.source.as_ref();
        // Keys would be taken from the payload.
        if !screen::can_redraw() || source.is_some_and(|source| *source == Source::Input) {
            return None;
        }
        let state = Mutex::new(State::new(plan, target));
        let shared = Arc::new(Shared { state, closed: AtomicBool::new(false) });
        let (end, ended) = channel::<()>();
        let drawn = Arc::clone(&shared);
        let draw = move || {
            let _end = end;
            if let Err(cause) = run(&drawn) {
                tracing::warn!("can't draw on this terminal: {cause}");
            }
            screen::hold(false);
        };
        screen::hold(true);
        let dashboard = Self { shared, ended };
        // If there is no thread, dropping the dashboard releases the output.
        std::thread::Builder::new().name("dashboard".into()).spawn(draw).ok()?;
        Some(dashboard)
    }

    /// Also shows what runs and what is decided, of a run of several measurements.
    pub fn show_progress(&self) {
        self.shared.state().progress = Some(Progress::default());
    }

    /// Takes an event, and the line that the plain output prints of it.
    pub fn enter(&self, event: &Event, line: Option<&str>) {
        self.shared.state().enter(event, line);
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        // Nothing is ever sent: this waits for the end of the thread.
        let _ = self.ended.recv_timeout(GOODBYE_TIMEOUT);
        screen::hold(false);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in between leaves a state that can be shown.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the run, and what both ends counted lately.
    fn recent(&self) -> (u32, Recent) {
        let state = self.state();
        (state.run, state.recent.clone())
    }
}

/// Draws until the dashboard is closed. The terminal is put back also after an error or a panic.
fn run(shared: &Shared) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let drawn = draw_until_closed(shared, &mut terminal);
    let restored = ratatui::try_restore();
    drawn.and(restored)
}

fn draw_until_closed(shared: &Shared, terminal: &mut DefaultTerminal) -> io::Result<()> {
    let mut controls = Controls::default();
    let plan = shared.state().plan.clone();
    let mut limits = RunLimits::new(&plan, 0);
    let mut paused: Option<(State, RunLimits)> = None;
    while !shared.closed.load(Ordering::Relaxed) {
        let (run, recent) = shared.recent();
        limits.judge(run, &plan, &recent);
        terminal.draw(|frame| match &paused {
            Some((state, limits)) => draw::whole(frame, state, limits, controls),
            None => draw::whole(frame, &shared.state(), &limits, controls),
        })?;
        if event::poll(FRAME_INTERVAL)?
            && let Input::Key(key) = event::read()?
        {
            let flows = shared.state().flows().count();
            if controls.press(key, flows) == Asked::Quit {
                quit();
            }
            let now = || (shared.state().clone(), limits.clone());
            paused = controls.paused.then(|| paused.take().unwrap_or_else(now));
        }
    }
    Ok(())
}

/// Ends the run as Ctrl-C does: the first time with the results so far, the second time at once.
fn quit() {
    if let Err(cause) = kill_process(getpid(), Signal::INT) {
        tracing::debug!("can't send SIGINT to this process: {cause}");
    }
}
