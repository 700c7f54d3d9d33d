//! The picture of a server, from its state alone.

use std::net::IpAddr;

use goodput_model::counted;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Row, Table, TableState};

use super::super::controls::{Controls, SERVER_KEYS};
use super::super::parts::{foot, graph, help, percent, spoken};
use super::super::series::SHOWN_S;
use super::state::{Counted, Past, Remark, Running, ServerState};
use crate::fit::fit;

/// Columns of a time, with its unit.
const TIME_COLUMNS: u16 = 8;

/// Columns of a number of times.
const TIMES_COLUMNS: u16 = 5;

/// Columns of a rate, with its unit.
const RATE_COLUMNS: u16 = 11;

/// Fewest rows of a table, with its title and headings.
const TABLE_ROWS: u16 = 4;

/// The keys, in fewer words where there is less room.
const KEYS: [&str; 3] = [
    "q end  space pause  u units  ↓↑ client  h help",
    "q end  space pause  h help",
    "q end  h help",
];

/// The whole picture.
pub fn whole(frame: &mut Frame, state: &ServerState, controls: Controls) {
    let [head, graphs, now, past, remarks, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Min(TABLE_ROWS),
        Constraint::Min(TABLE_ROWS),
        Constraint::Min(TABLE_ROWS),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let selected = controls.selected.and_then(|at| state.running.values().nth(at));
    frame.render_widget(title(state, controls), head);
    self::graphs(frame, graphs, state, selected, controls);
    running(frame, now, state, controls);
    let of_client = |from| selected.is_none_or(|running| running.peer.ip() == from);
    let ended = state.past.iter().filter(|past| of_client(past.peer.ip()));
    self::past(frame, past, ended, state.at_s);
    let said = state.remarks.iter().filter(|remark| of_client(remark.from));
    self::remarks(frame, remarks, said, state.at_s);
    self::foot(frame, foot, &KEYS);
    if controls.help {
        help(frame, &SERVER_KEYS);
    }
}

fn title(state: &ServerState, controls: Controls) -> Line<'static> {
    let (clients, tests) = (state.connected, state.running.len());
    let counts = format!("{} connected, {tests} measuring ", counted(clients, "client"));
    // What changes comes first: the end of a long line is not seen.
    let mut spans = vec![Span::from(counts).bold()];
    if controls.paused {
        spans.push(Span::from(" paused ").reversed());
    }
    spans.push(Span::from(format!("  {}", state.listening.join(", "))));
    Line::from(spans)
}

/// What moves in and out, and what it costs: of the selected client, or in all.
fn graphs(
    frame: &mut Frame,
    area: Rect,
    state: &ServerState,
    selected: Option<&Running>,
    controls: Controls,
) {
    let Counted { received, sent, cpu, .. } =
        selected.map_or(&state.all, |running| &running.counted);
    let whose = selected.map_or(String::new(), |running| format!(" {}", running.peer.ip()));
    let [left, middle, right] = Layout::horizontal([Constraint::Fill(1); 3]).areas(area);
    let rate = |value| spoken(value, controls);
    graph(frame, left, &format!("in{whose}"), SHOWN_S, &[(received, Color::Cyan)], rate);
    graph(frame, middle, &format!("out{whose}"), SHOWN_S, &[(sent, Color::Yellow)], rate);
    graph(frame, right, &format!("CPU{whose}"), SHOWN_S, &[(cpu, Color::Magenta)], percent);
}

fn running(frame: &mut Frame, area: Rect, state: &ServerState, controls: Controls) {
    let widths = [
        Constraint::Length(columns(state.running.values().map(|running| running.peer.ip()))),
        Constraint::Fill(1),
        Constraint::Length(TIME_COLUMNS),
        Constraint::Length(RATE_COLUMNS),
        Constraint::Length(RATE_COLUMNS),
        Constraint::Length(5),
    ];
    let rows = state.running.values().map(|Running { peer, what, began_s, counted, .. }| {
        let unknown = || String::from("unknown");
        let rate = |value: Option<f64>| value.map_or_else(unknown, |rate| spoken(rate, controls));
        Row::new([
            peer.ip().to_string(),
            what.clone(),
            time(state.at_s - began_s),
            rate(counted.received.last()),
            rate(counted.sent.last()),
            counted.cpu.last().map_or_else(unknown, percent),
        ])
    });
    let head = ["client", "test", "for", "in", "out", "CPU"];
    let table = table(rows, widths, head, "clients now");
    let mut at = TableState::new().with_selected(controls.selected);
    frame.render_stateful_widget(table, area, &mut at);
}

fn past<'a>(
    frame: &mut Frame,
    area: Rect,
    past: impl Iterator<Item = &'a Past> + Clone,
    at_s: f64,
) {
    let client = columns(past.clone().map(|past| past.peer.ip()));
    let rows = past.map(|Past { peer, what, ended_s, outcome }| {
        Row::new([time(at_s - ended_s), peer.ip().to_string(), what.clone(), outcome.clone()])
    });
    let widths = [
        Constraint::Length(TIME_COLUMNS),
        Constraint::Length(client),
        Constraint::Fill(1),
        Constraint::Fill(1),
    ];
    let head = ["ago", "client", "test", "result"];
    frame.render_widget(table(rows, widths, head, "clients lately"), area);
}

fn remarks<'a>(
    frame: &mut Frame,
    area: Rect,
    said: impl Iterator<Item = &'a Remark> + Clone,
    at_s: f64,
) {
    let client = columns(said.clone().map(|remark| remark.from));
    let before = TIME_COLUMNS + TIMES_COLUMNS + client + 3;
    let room = usize::from(area.width.saturating_sub(before)).max(1);
    let rows = said.map(|Remark { from, text, at_s: then_s, times }| {
        let text = fit(text, Some(room));
        let lines = text.lines().count() as u16;
        Row::new([time(at_s - then_s), times.to_string(), from.to_string(), text]).height(lines)
    });
    let widths = [
        Constraint::Length(TIME_COLUMNS),
        Constraint::Length(TIMES_COLUMNS),
        Constraint::Length(client),
        Constraint::Fill(1),
    ];
    let head = ["ago", "times", "client", "why"];
    frame.render_widget(table(rows, widths, head, "refused, and other remarks"), area);
}

/// Columns of the longest of these addresses, or of their heading.
fn columns(addresses: impl Iterator<Item = IpAddr>) -> u16 {
    let longest = addresses.map(|address| address.to_string().len()).max().unwrap_or(0);
    longest.max("client".len()) as u16
}

fn table<'a, const N: usize>(
    rows: impl Iterator<Item = Row<'a>>,
    widths: [Constraint; N],
    head: [&'a str; N],
    title: &'a str,
) -> Table<'a> {
    Table::new(rows, widths)
        .header(Row::new(head).dim())
        .block(Block::new().borders(Borders::TOP).title(title))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

/// Whole seconds, minutes or hours: the view counts once a second, and older times need less.
fn time(seconds: f64) -> String {
    match seconds.max(0.0) as u64 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::state::tests::state;
    use super::*;

    fn drawn(state: &ServerState, controls: Controls, (columns, rows): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| whole(frame, state, controls)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn clients_tests_rates_and_refusals_are_shown() {
        let shown = drawn(&state(), Controls::default(), (80, 30));
        for words in [
            "1 client connected, 1 measuring",
            "in 8 Mbit/s",
            "CPU 30 %",
            "192.0.2.1",
            "to here, TCP, 4 flows",
            "no payload was counted, broken",
            "goodput: refused:  [2Jtoo long",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }

    #[test]
    fn a_selected_client_has_the_graphs_and_the_lists() {
        let controls = Controls { selected: Some(0), bytes: true, ..Controls::default() };
        let shown = drawn(&state(), controls, (100, 30));
        assert!(shown.contains("in 192.0.2.1 1 MB/s") && shown.contains("20 %"), "{shown}");
        assert!(!shown.contains("192.0.2.2") && !shown.contains("192.0.2.3"), "{shown}");
    }

    #[test]
    fn times_get_coarser_with_age() {
        assert_eq!([-1.0, 119.9, 120.0, 7200.0].map(time), ["0 s", "119 s", "2 min", "2 h"]);
    }

    #[test]
    fn any_size_of_terminal_can_be_drawn_on() {
        let help = Controls { help: true, paused: true, ..Controls::default() };
        for size in [(1, 1), (3, 50), (200, 2), (20, 10), (80, 24), (300, 100)] {
            drawn(&state(), help, size);
            drawn(&ServerState::default(), help, size);
        }
    }
}
