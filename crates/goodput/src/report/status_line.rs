//! The line at the bottom of the terminal that shows [`Progress`], and the lines above it.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use goodput_engine::Event;
use indicatif::style::ProgressTracker;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use super::progress::{Progress, time};
use crate::screen;

const TEMPLATE: &str = "{spinner} {time}  {wide_msg}";
const TEMPLATE_WITH_BAR: &str = "{spinner} {time}  {bar:6} {wide_msg}";

/// A line that is drawn again below each other line. Gone when this is dropped.
pub struct StatusLine {
    progress: Progress,
    bar: ProgressBar,
    began: Instant,
    at_most: Option<Duration>,
}

impl StatusLine {
    /// For something that ends after `at_most`, if that is known. `None` if nobody could see a line that is drawn
    /// again: standard output is no terminal, or one without control sequences.
    pub fn new(at_most: Option<Duration>) -> Option<Self> {
        if !screen::can_redraw() {
            return None;
        }
        let target = ProgressDrawTarget::term_like(Box::new(Screen));
        let bar = ProgressBar::with_draw_target(None, target);
        let line = Self { progress: Progress::default(), bar, began: Instant::now(), at_most };
        line.set_template(TEMPLATE);
        Some(line)
    }

    /// Prints a line above.
    pub fn print(&self, line: &str) {
        self.bar.println(line);
    }

    /// Shows what has changed with an event, if anything.
    pub fn note(&mut self, event: &Event) {
        if !self.progress.note(event) {
            return;
        }
        // What is left is of the moment in which the block began.
        let left_s = matches!(event, Event::BlockBegan(_)).then(|| self.progress.at_most_s());
        if let Some(left_s) = left_s.flatten() {
            self.at_most = Some(self.began.elapsed() + Duration::from_secs_f64(left_s));
        }
        let parts = self.progress.parts();
        self.set_template(if parts.is_some() { TEMPLATE_WITH_BAR } else { TEMPLATE });
        if let Some((done, all)) = parts {
            self.bar.set_length(all);
            self.bar.set_position(done);
        }
        self.bar.set_message(self.progress.text());
        self.bar.enable_steady_tick(Duration::from_secs(1));
    }

    fn set_template(&self, template: &str) {
        // Those of this file are well-formed.
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.with_key("time", Clock { at_most: self.at_most }));
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// `0:23 of max 2:00`.
#[derive(Clone)]
struct Clock {
    at_most: Option<Duration>,
}

impl ProgressTracker for Clock {
    fn clone_box(&self) -> Box<dyn ProgressTracker> {
        Box::new(self.clone())
    }

    fn tick(&mut self, _: &ProgressState, _: Instant) {}

    fn reset(&mut self, _: &ProgressState, _: Instant) {}

    fn write(&self, state: &ProgressState, out: &mut dyn fmt::Write) {
        let passed = time(state.elapsed().as_secs_f64());
        // The line is drawn all the same.
        let _ = match self.at_most {
            Some(at_most) => write!(out, "{passed} of max {}", time(at_most.as_secs_f64())),
            None => write!(out, "{passed}"),
        };
    }
}

/// The terminal behind the queue of what is printed, so that one that stalls holds nothing up. Control sequences: ECMA-48, 8.3.
#[derive(Debug)]
struct Screen;

impl Screen {
    fn control(count: usize, function: char) -> io::Result<()> {
        if count > 0 {
            screen::later(&format!("\x1b[{count}{function}"));
        }
        Ok(())
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        screen::width_columns()
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        Self::control(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        Self::control(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        Self::control(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        Self::control(n, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        screen::later(&format!("{text}\n"));
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        screen::later(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        screen::later("\r\x1b[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
