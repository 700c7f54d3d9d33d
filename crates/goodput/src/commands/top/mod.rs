//! `goodput top`: every TCP connection of this host, by rate, with what limits it.

mod look;

use std::io;
use std::time::{Duration, Instant};

use anstream::adapter::strip_str;
use anyhow::Result;
use goodput_engine::{ConnectionWatch, EngineError, Interrupt, Summary};
use goodput_model::{Connections, Seconds, counted};
use ratatui::layout::{Constraint, Layout, Size};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use tokio::time::sleep;

use self::look::{Asked, KEYS, Look};
use super::measured;
use crate::args::TopArgs;
use crate::exit::Exit;
use crate::fit::fit;
use crate::json_text;
use crate::keyboard::Keyboard;
use crate::report::top;
use crate::screen;

/// How long a key may wait.
const KEY_INTERVAL: Duration = Duration::from_millis(50);

/// Rows of the screen around the connections besides the heading: an empty one, the table's heading, and the foot.
const ROWS_AROUND: usize = 3;

/// Shows connections until the user ends it, or once.
pub fn run(args: &TopArgs) -> Result<Exit> {
    let full_screen = screen::can_redraw() && !args.once && !args.json;
    let work = async |interrupt: Interrupt| match full_screen {
        true => on_screen(args, &interrupt).await.map(Ok),
        false => in_lines(args, &interrupt).await,
    };
    let (printed, _) = measured::block_on(work)?;
    printed?;
    Ok(Exit::Fine)
}

/// What is shown, and how.
struct View {
    watch: ConnectionWatch,
    summary: Summary,
    seen: Option<Connections>,
    look: Look,
    /// How many connections the screen shows.
    page: usize,
    /// What is shown now: making it takes long if there are many connections.
    text: String,
}

impl View {
    fn new(args: &TopArgs) -> Self {
        let (order, idle, summed_up) = (args.sort, args.idle, args.summary);
        Self {
            watch: ConnectionWatch::new(args.wanted()),
            summary: Summary::over(args.over),
            seen: None,
            look: Look { order, idle, summed_up, filter: args.filter.clone(), ..Look::default() },
            page: 0,
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

    /// Makes the text anew, for a screen of this size.
    fn remake(&mut self, size: Size) {
        let text = screen::in_columns(size.width, || self.made(size));
        // The tables are coloured for plain output.
        self.text = strip_str(&text).to_string();
    }

    fn made(&mut self, Size { width, height }: Size) -> String {
        let fitted = |text: &str| fit(text, Some(width.into()));
        match &self.seen {
            _ if self.look.help => self.scrolled(&fitted(&help()), height),
            Some(seen) if !self.look.summed_up => {
                let chosen = top::chosen(seen, self.look.order, self.look.idle, &self.look.filter);
                let filter = self.look.filtered();
                let heading =
                    |place: &str| fitted(&format!("{}{filter}{place}", top::heading(seen)));
                let all = chosen.len();
                let longest = heading(&format!(" · {all} to {all} of {all}"));
                let around = ROWS_AROUND + longest.lines().count();
                let room = usize::from(height).saturating_sub(around);
                let part = top::part(&chosen, seen.seconds, self.look.above, room);
                let none = top::none_of(seen, &chosen, self.look.idle, &self.look.filter);
                let heading = heading(&part.place());
                (self.look.above, self.page) = (part.above, part.shown);
                format!("{heading}\n\n{}", none.map_or(part.text, fitted))
            }
            _ => self.scrolled(&self.text(), height),
        }
    }

    /// The part of a text that has room above the foot. If there is more below, the last line says so.
    fn scrolled(&mut self, text: &str, height: u16) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let room = usize::from(height).saturating_sub(1).max(2);
        self.page = room - 1;
        self.look.lines_above = self.look.lines_above.min(lines.len().saturating_sub(room));
        let rest = &lines[self.look.lines_above..];
        if rest.len() <= room {
            return rest.join("\n");
        }
        let (shown, below) = rest.split_at(room - 1);
        format!("{}\n↓ {}", shown.join("\n"), counted(below.len(), "more line"))
    }

    fn print(&self, json: bool) -> io::Result<()> {
        match &self.seen {
            Some(_) if json && self.look.summed_up => {
                screen::line(json_text::one_line(&self.summary.now())?)
            }
            Some(seen) if json => {
                let chosen = top::chosen(seen, self.look.order, true, &self.look.filter);
                let connections = chosen.into_iter().cloned().collect();
                let shown = Connections { at: seen.at.clone(), seconds: seen.seconds, connections };
                screen::line(json_text::one_line(&shown)?)
            }
            _ => screen::line(self.text().trim_end()),
        }
    }

    /// All that there is, from the top.
    fn text(&self) -> String {
        let Some(seen) = &self.seen else { return "looking at the connections twice".into() };
        let heading = top::heading(seen);
        if self.look.summed_up {
            let summary = self.summary.now();
            let over = Seconds(summary.seconds);
            return format!("{heading}; summed up over {over}\n\n{}", top::summary(&summary));
        }
        let chosen = top::chosen(seen, self.look.order, self.look.idle, &self.look.filter);
        let table = top::table(&chosen, seen.seconds);
        let table = top::none_of(seen, &chosen, self.look.idle, &self.look.filter)
            .map_or(table, String::from);
        format!("{heading}{}\n\n{table}", self.look.filtered())
    }
}

/// The keys, one in a row.
fn help() -> String {
    let line = |(keys, what): (&str, &str)| format!("{keys:<15}{what}\n");
    KEYS.into_iter().map(line).collect()
}

/// Prints each look, or the summary of all of them. Ends also if it can't print, as when its reader has seen enough.
async fn in_lines(args: &TopArgs, interrupt: &Interrupt) -> Result<io::Result<()>, EngineError> {
    let mut view = View::new(args);
    view.look()?;
    let is_one_summary = args.once && args.summary;
    loop {
        tokio::select! {
            // A summary that is cut short has what was seen until then.
            () = interrupt.raised() => match is_one_summary {
                true => view.look()?,
                false => return Ok(Ok(())),
            },
            () = sleep(Duration::from_secs_f64(args.every)) => view.look()?,
        }
        if is_one_summary && view.summary.seconds() < args.over && !interrupt.is_raised() {
            continue;
        }
        let gap = || if args.once || args.json { Ok(()) } else { screen::line("") };
        let printed = view.print(args.json).and_then(|()| gap());
        if args.once || printed.is_err() {
            return Ok(printed);
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
    let mut keyboard = Keyboard::new().map_err(failed("find the terminal's keys"))?;
    let mut next = Instant::now();
    let mut drawn_on = None;
    loop {
        let size = terminal.size().map_err(failed("ask for the terminal's size"))?;
        let mut is_new = drawn_on != Some(size);
        if !view.look.paused && Instant::now() >= next {
            view.look()?;
            next = Instant::now() + Duration::from_secs_f64(args.every);
            is_new = true;
        }
        let keys = keyboard.input(Duration::ZERO).map_err(failed("read keys"))?.keys;
        is_new |= !keys.is_empty();
        let page = view.page;
        if keys.into_iter().any(|key| view.look.press(key, page) == Asked::Quit) {
            return Ok(());
        }
        if is_new {
            view.remake(size);
            drawn_on = Some(size);
            terminal.draw(|frame| draw(frame, &view)).map_err(failed("draw on the terminal"))?;
        }
        tokio::select! {
            () = interrupt.raised() => return Ok(()),
            () = sleep(KEY_INTERVAL) => {}
        }
    }
}

fn draw(frame: &mut Frame, view: &View) {
    let [body, foot] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(Paragraph::new(view.text.as_str()), body);
    frame.render_widget(Line::from(view.look.foot()).dim(), foot);
}

fn failed(operation: &str) -> impl FnOnce(io::Error) -> EngineError {
    move |cause| EngineError::Io { operation: operation.into(), cause }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use goodput_model::{BitRate, ConnectionActivity, Known, Role};
    use ratatui::crossterm::event::KeyCode;

    use super::*;
    use crate::args::{Cli, Command};

    fn view(connections: u16) -> View {
        let connection = |number: u16| ConnectionActivity {
            local: ([127, 0, 0, 1], 1000 + number).into(),
            peer: ([192, 0, 2, 7], 443).into(),
            program: Known::missing("not ours"),
            idle: false,
            sent_bits_per_s: BitRate(f64::from(number) * 1e6),
            received_bits_per_s: BitRate(0.0),
            role: Role::Sender,
            rtt_us: Known::Value(1000),
            retransmitted_percent: Known::missing("nothing was sent"),
            congestion: Known::missing("not asked"),
            limits: Known::missing("too short"),
        };
        let cli = Cli::try_parse_from(["goodput", "top"]).expect("it is a command");
        let Command::Top(args) = cli.command else { panic!("it is this one") };
        let connections = (0..connections).map(connection).collect();
        let at = "2026-01-01T00:00:00Z".into();
        View { seen: Some(Connections { at, seconds: 1.0, connections }), ..View::new(&args) }
    }

    #[test]
    fn a_narrow_screen_cuts_neither_a_heading_nor_a_row_nor_a_word_of_help() {
        let mut view = view(50);
        view.look.filter = "192.0.2.7".into();
        view.remake(Size::new(40, 24));
        let lines: Vec<&str> = view.text.lines().collect();
        assert!(lines.len() < 24, "the last row has the keys: {lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{lines:?}");
        assert!(view.text.contains("limit known") && view.text.contains(" of 50"), "{lines:?}");
        assert_eq!(view.text.matches("192.0.2.7:443").count(), view.page);
        view.look.help = true;
        view.remake(Size::new(40, 24));
        assert!(view.text.contains("an address, a port"), "{}", view.text);
        assert!(view.text.lines().all(|line| line.chars().count() <= 40), "{}", view.text);
    }

    #[test]
    fn help_and_summary_on_a_small_screen_say_that_there_is_more_and_scroll() {
        let mut view = view(1);
        view.look.help = true;
        let keys = help();
        let mut seen = String::new();
        for _ in 0..KEYS.len() {
            view.remake(Size::new(80, 6));
            assert!(view.text.lines().count() <= 5, "the last row has the keys: {}", view.text);
            seen += &view.text;
            view.look.press(KeyCode::Char('j').into(), view.page);
        }
        assert!(keys.lines().all(|line| seen.contains(line)), "{seen}");
        assert!(
            seen.starts_with("q, Ctrl-C")
                && seen.contains(&format!("↓ {} more lines", KEYS.len() - 4)),
            "{seen}"
        );
        assert!(!view.text.contains("more line"), "it is at the end: {}", view.text);
        view.remake(Size::new(80, 24));
        assert_eq!(view.text.lines().count(), KEYS.len());
    }

    #[test]
    fn an_empty_list_says_why() {
        let mut view = view(0);
        assert!(view.text().contains("no TCP connection"), "{}", view.text());
        let seen = view.seen.as_mut().unwrap();
        seen.connections.extend(self::view(1).seen.unwrap().connections);
        assert!(!view.text().contains("no "), "{}", view.text());
        view.look.filter = "elsewhere".into();
        view.remake(Size::new(40, 24));
        assert!(view.text.contains("no active connection has these words"), "{}", view.text);
        view.look.filter.clear();
        view.seen.as_mut().unwrap().connections[0].idle = true;
        assert!(view.text().contains("all are idle"), "{}", view.text());
    }
}
