//! A server on the whole terminal (`goodput serve --live`): clients now and lately, what each measures, who was refused and
//! why, rates and CPU. Where nobody could see it, a line is printed for each thing that happens.

mod draw;
mod state;

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use goodput_engine::serve::Watcher;
use ratatui::Frame;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

use super::controls::Controls;
use super::full_screen::{FullScreen, View};
use crate::screen;
use state::ServerState;

/// Shortest time between two points of a graph, and between two pictures if no key is pressed, seconds.
const TICK_S: f64 = 1.0;

/// What clients do, for one who watches.
#[derive(Clone)]
pub struct ServerView {
    began: Instant,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<ServerState>,
    /// There is no view, so each thing that happens is a line.
    in_lines: AtomicBool,
    /// The user has asked to end the server.
    quit: Notify,
}

impl ServerView {
    /// Nothing has happened yet, and nothing is shown.
    pub fn new() -> Self {
        Self { began: Instant::now(), shared: Arc::default() }
    }

    /// Takes what clients do.
    pub fn watcher(&self) -> Watcher {
        let shared = Arc::clone(&self.shared);
        Watcher::new(move |served| {
            let line = shared.state().enter(&served);
            if let Some(line) = line.filter(|_| shared.in_lines.load(Ordering::Relaxed)) {
                // A stalled or closed reader must not stop the server.
                screen::later(&(line + "\n"));
            }
        })
    }

    /// Takes the whole terminal until the result is dropped. `None`: nobody could see it, and lines are printed instead.
    pub fn open(&self, listening: &[String]) -> Option<FullScreen> {
        self.shared.state().listening = listening.to_vec();
        let quit = {
            let shared = Arc::clone(&self.shared);
            move || shared.quit.notify_one()
        };
        // Without its own privileges the server can't open the terminal, so keys have to come from standard input.
        let has_keys = io::stdin().is_terminal();
        let view = Drawn { view: self.clone(), paused: None };
        let opened = has_keys.then(|| FullScreen::open(view, quit)).flatten();
        self.shared.in_lines.store(opened.is_none(), Ordering::Relaxed);
        opened
    }

    /// Waits until the user asks to end the server.
    pub async fn quit(&self) {
        self.shared.quit.notified().await;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, ServerState> {
        // A panic in between leaves a state that can be shown.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the drawing thread has.
struct Drawn {
    view: ServerView,
    paused: Option<ServerState>,
}

impl View for Drawn {
    fn look(&mut self) -> bool {
        let at_s = self.view.began.elapsed().as_secs_f64();
        let mut state = self.view.shared.state();
        let is_due = at_s >= state.at_s + TICK_S;
        if is_due {
            state.tick(at_s, Some(cpu_us()));
        }
        is_due
    }

    fn rows(&self) -> usize {
        self.view.shared.state().running.len()
    }

    fn pause(&mut self, paused: bool) {
        let now = || self.view.shared.state().clone();
        self.paused = paused.then(|| self.paused.take().unwrap_or_else(now));
    }

    fn draw(&self, frame: &mut Frame, controls: Controls) {
        match &self.paused {
            Some(state) => draw::whole(frame, state, controls),
            None => draw::whole(frame, &self.view.shared.state(), controls),
        }
    }
}

/// CPU time of all threads of this process, µs (clock_gettime(2)).
fn cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1000
}
