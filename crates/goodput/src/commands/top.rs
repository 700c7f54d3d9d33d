//! `goodput top`: every TCP connection of this host, by rate, with what limits it.

use std::io;
use std::time::{Duration, Instant};

use anstream::adapter::strip_str;
use anyhow::Result;
use goodput_engine::{ConnectionWatch, EngineError, Interrupt, Summary};
use goodput_model::Connections;
use ratatui::crossterm::event::{
    self, Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use tokio::time::sleep;

use super::measured;
use crate::args::TopArgs;
use crate::exit::Exit;
use crate::report::top::{self, Shown};
use crate::screen;

/// How long a key may wait.
const KEY_INTERVAL: Duration = Duration::from_millis(50);

/// The last row of the screen.
const KEYS: &str = "q quit  space pause  o order  i idle ones  s summary of the last minute";

/// Shows connections until the user ends it, or once.
pub fn run(args: &TopArgs) -> Result<Exit> {
    let full_screen = screen::can_redraw() && !args.once && !args.json;
    let work = async |interrupt: Interrupt| match full_screen {
        true => on_screen(args, &interrupt).await,
        false => in_lines(args, &interrupt).await,
    };
    measured::block_on(work)?;
    Ok(Exit::Fine)
}

/// What is shown, and how.
struct View {
    watch: ConnectionWatch,
    summary: Summary,
    seen: Option<Connections>,
    shown: Shown,
    summed_up: bool,
    paused: bool,
    /// What is shown now: making it takes long if there are many connections.
    text: String,
}

impl View {
    fn new(args: &TopArgs) -> Self {
        Self {
            watch: ConnectionWatch::new(args.wanted()),
            summary: Summary::default(),
            seen: None,
            shown: Shown { order: args.sort, idle: args.idle, rows: usize::MAX },
            summed_up: args.summary,
            paused: false,
            text: String::new(),
        }
    }

    fn look(&mut self) -> Result<(), EngineError> {
        if let Some(seen) = self.watch.look(&measured::now())? {
            self.summary.enter(&seen);
            self.seen = Some(seen);
        }
        Ok(())
    }

    /// Makes the text anew, for a screen with this many rows.
    fn remake(&mut self, rows: u16) {
        self.shown.rows = rows.into();
        // The tables are coloured for plain output.
        self.text = strip_str(&self.text()).to_string();
    }

    fn print(&self, json: bool) -> io::Result<()> {
        match &self.seen {
            Some(seen) if json => screen::line(serde_json::to_string(seen)?),
            _ => screen::line(self.text().trim_end()),
        }
    }

    /// Takes a key. Returns whether it ends the view.
    fn press(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            // In raw mode the terminal makes no signal of it.
            KeyCode::Char('c') if control => return true,
            KeyCode::Char('q') => return true,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('o') => self.shown.order = self.shown.order.next(),
            KeyCode::Char('i') => self.shown.idle = !self.shown.idle,
            KeyCode::Char('s') => self.summed_up = !self.summed_up,
            _ => {}
        }
        false
    }

    fn text(&self) -> String {
        match &self.seen {
            None => "looking at the connections twice".into(),
            Some(seen) if self.summed_up => {
                format!("{}\n\n{}", top::heading(seen), top::summary(&self.summary))
            }
            Some(seen) => {
                format!("{}\n\n{}", top::heading(seen), top::connections(seen, self.shown))
            }
        }
    }
}

/// Prints each comparison.
async fn in_lines(args: &TopArgs, interrupt: &Interrupt) -> Result<(), EngineError> {
    let mut view = View::new(args);
    view.look()?;
    loop {
        tokio::select! {
            () = interrupt.raised() => return Ok(()),
            () = sleep(Duration::from_secs_f64(args.every)) => view.look()?,
        }
        view.print(args.json).map_err(failed("print"))?;
        if args.once {
            return Ok(());
        }
        if !args.json {
            screen::line("").map_err(failed("print"))?;
        }
    }
}

/// Fills the terminal, and takes keys.
async fn on_screen(args: &TopArgs, interrupt: &Interrupt) -> Result<(), EngineError> {
    let mut terminal = ratatui::try_init().map_err(failed("draw on the terminal"))?;
    let ended = until_quit(args, interrupt, &mut terminal).await;
    let restored = ratatui::try_restore().map_err(failed("put the terminal back"));
    ended.and(restored)
}

async fn until_quit(
    args: &TopArgs,
    interrupt: &Interrupt,
    terminal: &mut DefaultTerminal,
) -> Result<(), EngineError> {
    let mut view = View::new(args);
    let mut next = Instant::now();
    let mut drawn_on = None;
    loop {
        let size = terminal.size().map_err(failed("ask for the terminal's size"))?;
        let mut is_new = drawn_on != Some(size);
        if !view.paused && Instant::now() >= next {
            view.look()?;
            next = Instant::now() + Duration::from_secs_f64(args.every);
            is_new = true;
        }
        let keys = keys().map_err(failed("read keys"))?;
        is_new |= !keys.is_empty();
        if keys.into_iter().any(|key| view.press(key)) {
            return Ok(());
        }
        if is_new {
            view.remake(size.height);
            drawn_on = Some(size);
            terminal.draw(|frame| draw(frame, &view)).map_err(failed("draw on the terminal"))?;
        }
        tokio::select! {
            () = interrupt.raised() => return Ok(()),
            () = sleep(KEY_INTERVAL) => {}
        }
    }
}

/// The keys that were pressed since the last time.
fn keys() -> io::Result<Vec<KeyEvent>> {
    let mut keys = Vec::new();
    while event::poll(Duration::ZERO)? {
        match event::read()? {
            Input::Key(key) if key.kind != KeyEventKind::Release => keys.push(key),
            _ => {}
        }
    }
    Ok(keys)
}

fn draw(frame: &mut Frame, view: &View) {
    let [body, foot] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(Paragraph::new(view.text.as_str()), body);
    let paused = if view.paused { "  paused" } else { "" };
    frame.render_widget(Line::from(format!("{KEYS}{paused}")).dim(), foot);
}

fn failed(operation: &str) -> impl FnOnce(io::Error) -> EngineError {
    move |cause| EngineError::Io { operation: operation.into(), cause }
}
