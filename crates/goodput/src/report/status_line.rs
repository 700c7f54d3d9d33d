//! The line at the bottom of the terminal that shows [`Progress`], and the lines above it.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use goodput_engine::Event;
use goodput_model::Plan;
use indicatif::style::ProgressTracker;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use super::progress::{Parts, Progress, in_line, time};
use super::whole_time::{self, WholeTime};
use crate::fit::width;
use crate::screen;

/// The spinner shows that the program runs; the rest is [`Line`].
const TEMPLATE: &str = "{spinner} {line}";

/// Columns of the template before the line.
const SPINNER_COLUMNS: usize = 2;

/// Cells of the bar.
const BAR_CHARS: u64 = 6;

/// A line that is redrawn below every other line. Dropping this removes it.
pub struct StatusLine {
    progress: Progress,
    bar: ProgressBar,
    whole: WholeTime,
}

impl StatusLine {
    /// For a task that ends after `at_most`, if known, and that measures by `plan`. `None` if nobody could see a redrawn
    /// line: standard output is not a terminal, or has no control sequences.
    pub fn new(plan: &Plan, at_most: Option<Duration>) -> Option<Self> {
        if !screen::can_redraw() {
            return None;
        }
        let target = ProgressDrawTarget::term_like(Box::new(Screen));
        let bar = ProgressBar::with_draw_target(None, target);
        let line = Self { progress: Progress::of(plan), bar, whole: WholeTime::begin(at_most) };
        line.show();
        line.bar.enable_steady_tick(Duration::from_secs(1));
        Some(line)
    }

    /// Prints a line above.
    pub fn print(&self, line: &str) {
        self.bar.println(line);
    }

    /// Shows the changes of an event, if any.
    pub fn note(&mut self, event: &Event) {
        if !self.progress.note(event) {
            return;
        }
        self.whole.note(event, &self.progress);
        self.show();
    }

    fn show(&self) {
        let line = Line {
            texts: self.progress.texts(),
            parts: self.progress.parts(),
            at_most: self.whole.at_most,
        };
        // The template of this file is well-formed.
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            self.bar.set_style(style.with_key("line", line));
            self.bar.force_draw();
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// `0:23 of max 2:00  ██░░░░ block 2 of 6 · …`, drawn for the terminal's present width.
#[derive(Clone)]
struct Line {
    texts: Vec<String>,
    parts: Option<Parts>,
    at_most: Option<Duration>,
}

impl Line {
    /// The line, of at most `columns`. The first text takes precedence over the bar and the longest time.
    fn within(&self, columns: usize, passed: Duration) -> String {
        let first = self.texts.first().map_or(0, |text| width(text));
        let heads = self.heads(passed);
        let has_room = |head: &&String| width(head) + first <= columns;
        let head = heads.iter().find(has_room).map_or("", String::as_str);
        let text = in_line(&self.texts, columns.saturating_sub(width(head)));
        format!("{head}{text}").trim_end().into()
    }

    /// Candidates for the part before the texts, the longest first.
    fn heads(&self, passed: Duration) -> Vec<String> {
        let clock = time(passed.as_secs_f64());
        let full = format!("{}  ", whole_time::words(passed, self.at_most));
        let with_bar = self.parts.map(|parts| format!("{full}{} ", bar(parts)));
        with_bar.into_iter().chain([full, format!("{clock}  ")]).collect()
    }
}

/// `██░░░░`.
fn bar((done, all): Parts) -> String {
    let full = (done * BAR_CHARS / all.max(1)).min(BAR_CHARS);
    let cell = |at| if at < full { '█' } else { '░' };
    (0..BAR_CHARS).map(cell).collect()
}

impl ProgressTracker for Line {
    fn clone_box(&self) -> Box<dyn ProgressTracker> {
        Box::new(self.clone())
    }

    fn tick(&mut self, _: &ProgressState, _: Instant) {}

    fn reset(&mut self, _: &ProgressState, _: Instant) {}

    fn write(&self, state: &ProgressState, out: &mut dyn fmt::Write) {
        let columns = usize::from(screen::columns()).saturating_sub(SPINNER_COLUMNS);
        // If it can't be drawn now, the next tick draws it.
        let _ = out.write_str(&self.within(columns, state.elapsed()));
    }
}

/// The terminal behind the output queue, so that a stalled terminal holds nothing up. Control sequences: ECMA-48, 8.3.
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
        screen::columns()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_any_terminal_and_what_runs_comes_first() {
        let line = Line {
            texts: ["tries chunk=1M", "block 2 of 6", "3 to try"].map(String::from).to_vec(),
            parts: Some((2, 6)),
            at_most: Some(Duration::from_secs(120)),
        };
        let at = |columns| line.within(columns, Duration::from_secs(23));
        assert_eq!(at(80), "0:23 of max 2:00  ██░░░░ tries chunk=1M · block 2 of 6 · 3 to try");
        assert_eq!(at(38), "0:23 of max 2:00  tries chunk=1M");
        assert_eq!(at(20), "0:23  tries chunk=1M");
        assert_eq!(at(14), "tries chunk=1M");
        for columns in 0..100 {
            assert!(width(&at(columns)) <= columns, "{columns}: {}", at(columns));
        }
    }
}
