//! The whole terminal for one view: a thread of its own draws and reads keys, because a terminal may stall and a run must
//! not. The plain output waits until the view is closed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ratatui::{DefaultTerminal, Frame};

use super::controls::{Asked, Controls};
use crate::keyboard::Keyboard;
use crate::screen;

/// Time between two pictures: ten a second.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// How long the end waits for a terminal that takes nothing.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// What is drawn.
pub trait View: Send + 'static {
    /// Catches up with what has happened. Returns whether the picture changes.
    fn look(&mut self) -> bool;

    /// Number of rows that can be selected.
    fn rows(&self) -> usize;

    /// Shows what there is now until it is called with `false`.
    fn pause(&mut self, paused: bool);

    /// Draws the whole picture.
    fn draw(&self, frame: &mut Frame, controls: Controls);
}

/// A view on the whole terminal. Dropping this closes it, and the terminal is as before.
pub struct FullScreen {
    closed: Arc<AtomicBool>,
    /// Disconnected when the drawing thread has ended.
    ended: Receiver<()>,
}

impl FullScreen {
    /// Shows `view`; `quit` is called each time when the user asks to end. `None` if nobody could see it: standard
    /// output is not a terminal, or has no control sequences.
    pub fn open(mut view: impl View, quit: impl Fn() + Send + 'static) -> Option<Self> {
        if !screen::can_redraw() {
            return None;
        }
        let closed = Arc::new(AtomicBool::new(false));
        let (end, ended) = channel::<()>();
        let until = Arc::clone(&closed);
        let draw = move || {
            let _end = end;
            if let Err(cause) = run(&mut view, &until, &quit) {
                tracing::warn!("can't draw on this terminal: {cause}");
            }
            screen::hold(false);
        };
        screen::hold(true);
        let opened = Self { closed, ended };
        // If there is no thread, dropping this releases the output.
        std::thread::Builder::new().name("dashboard".into()).spawn(draw).ok()?;
        Some(opened)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Nothing is ever sent: this waits for the end of the thread.
        let _ = self.ended.recv_timeout(GOODBYE_TIMEOUT);
        screen::hold(false);
    }
}

/// Draws until it is closed. The terminal is put back also after an error or a panic.
fn run(view: &mut impl View, closed: &AtomicBool, quit: &impl Fn()) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let drawn = draw_until_closed(view, closed, quit, &mut terminal);
    let restored = ratatui::try_restore();
    drawn.and(restored)
}

fn draw_until_closed(
    view: &mut impl View,
    closed: &AtomicBool,
    quit: &impl Fn(),
    terminal: &mut DefaultTerminal,
) -> io::Result<()> {
    let mut keyboard = Keyboard::new()?;
    let mut controls = Controls::default();
    let mut is_new = true;
    while !closed.load(Ordering::Relaxed) {
        is_new |= view.look();
        if is_new {
            terminal.draw(|frame| view.draw(frame, controls))?;
        }
        let input = keyboard.input(FRAME_INTERVAL)?;
        is_new = !input.is_empty();
        for key in input.keys {
            if controls.press(key, view.rows()) == Asked::Quit {
                quit();
            }
            view.pause(controls.paused);
        }
    }
    Ok(())
}
