//! The picture, from the state alone.

use goodput_model::{Count, EndName, Limiter, Place, Seconds, Transport};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Row, Table, TableState, Wrap};

use super::controls::{Controls, RUN_KEYS};
use super::limits::{Limits, RunLimits};
use super::parts::{Times, foot, graph, help, percent, spoken};
use super::series::{Lines, SHOWN_S, Series};
use super::state::{DirectionState, Phase, State};
use crate::report::whole_time;

/// Rows of the band that shows who limited when, with its legend.
const BAND_ROWS: u16 = 2;

/// Fewest rows of the graph of the rate.
const RATE_ROWS: u16 = 4;

/// Rows of each smaller graph.
const GRAPH_ROWS: u16 = 6;

/// Columns of the table of flows.
const FLOW_COLUMNS: [u16; 5] = [4, 12, 10, 9, 11];

/// Columns of the table as a whole, with the spaces between and after them.
const TABLE_COLUMNS: u16 = 52;

/// Fewest rows of the table: its title, its headings and two flows.
const TABLE_ROWS: u16 = 4;

/// The keys, in fewer words where there is less room.
const KEYS: [&str; 3] =
    ["q end  space pause  u units  ↓↑ flow  h help", "q end  space pause  h help", "q end  h help"];

/// Limiters in the legend: more don't fit 80 columns.
const MAX_SHOWN_SHARES: usize = 3;

/// The whole picture.
pub fn whole(frame: &mut Frame, state: &State, limits: &RunLimits, controls: Controls) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(title(state, controls), head);
    // On a small terminal, the rate and who limits it come first.
    let least = (RATE_ROWS + BAND_ROWS) * state.directions.len() as u16;
    let has_room = body.height >= least + TABLE_ROWS;
    let rest = if has_room { Constraint::Fill(1) } else { Constraint::Length(0) };
    let areas =
        Layout::vertical(state.directions.iter().map(|_| Constraint::Fill(2)).chain([rest]))
            .split(body);
    for ((direction, limits), area) in
        state.directions.iter().zip(&limits.directions).zip(areas.iter())
    {
        self::direction(frame, *area, (direction, limits), state, controls);
    }
    if let Some(rest) = areas.last().filter(|_| has_room) {
        below(frame, *rest, state, controls);
    }
    self::foot(frame, foot, &KEYS);
    if controls.help {
        help(frame, &RUN_KEYS);
    }
}

fn title(state: &State, controls: Controls) -> Line<'static> {
    let phase = match state.phase {
        Phase::Connecting => "connecting".into(),
        Phase::Running => match state.length_s() {
            Some(length_s) => format!("{:.0} s of max {length_s:.0} s", state.at_s),
            None => format!("{:.0} s", state.at_s),
        },
        Phase::Gathering => "gathering results".into(),
    };
    let mut spans = vec![Span::from(format!("goodput  {}", state.target)).bold()];
    spans.push(Span::from(format!("  {phase}")));
    if let Some((progress, whole)) = &state.progress {
        let all = whole_time::words(whole.passed(), whole.at_most) + " in all";
        let texts = std::iter::once(all).chain(progress.texts());
        spans.extend(texts.map(|text| Span::from(format!(" · {text}"))));
    }
    if controls.paused {
        spans.push(Span::from("  paused").reversed());
    }
    Line::from(spans)
}

/// One direction: its rate, who limits, and three smaller graphs if there is room.
fn direction(
    frame: &mut Frame,
    area: Rect,
    (direction, limits): (&DirectionState, &Limits),
    state: &State,
    controls: Controls,
) {
    let (lines, of) = shown(direction, state, controls);
    let has_room = area.height >= RATE_ROWS + BAND_ROWS + GRAPH_ROWS;
    let [rate, band, graphs] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(BAND_ROWS.min(area.height / 2)),
        Constraint::Length(if has_room { GRAPH_ROWS } else { 0 }),
    ])
    .areas(area);
    let (series, which) = lines.rate();
    let arrow = if direction.sender == EndName::Near { "near → far" } else { "far → near" };
    let title = format!("{which} {arrow}{of}");
    let span_s = span_s(state);
    let line = [(series, Color::Cyan)];
    let times = graph(frame, rate, &title, span_s, &line, |value| spoken(value, controls));
    limited(frame, band, limits, times);
    if has_room {
        details(frame, graphs, state, lines);
    }
}

fn details(frame: &mut Frame, area: Rect, state: &State, lines: &Lines) {
    let span_s = span_s(state);
    let [round_trip, lost, cpu] = Layout::horizontal([Constraint::Fill(1); 3]).areas(area);
    let line = [(&lines.round_trip_ms, Color::Yellow)];
    graph(frame, round_trip, "round trip", span_s, &line, milliseconds);
    let (title, losses) = losses(state, lines);
    graph(frame, lost, title, span_s, &[(losses, Color::Red)], |rate| per_second(rate, state));
    // The sender's, then the receiver's, as the payload moves.
    let both = [(&lines.sender_cpu, Color::Magenta), (&lines.receiver_cpu, Color::Blue)];
    graph(frame, cpu, "CPU", span_s, &both, percent);
}

/// Losses, and what they are called: TCP's sender counts what it sent again, a receiver of datagrams what never came.
fn losses<'a>(state: &State, lines: &'a Lines) -> (&'static str, &'a Series) {
    match state.plan.transport {
        Transport::Tcp => ("sent again", &lines.retransmitted),
        Transport::Udp => ("lost", &lines.lost),
    }
}

/// Seconds that a graph shows: a short run as a whole, of a longer one the last minute.
fn span_s(state: &State) -> f64 {
    state.length_s().map_or(SHOWN_S, |length_s| length_s.clamp(1.0, SHOWN_S))
}

/// The selected flow if it is of this direction, otherwise all flows.
fn shown<'a>(
    direction: &'a DirectionState,
    state: &State,
    controls: Controls,
) -> (&'a Lines, String) {
    let selected = controls.selected.and_then(|at| state.flows().nth(at));
    let flow = selected.filter(|(sender, _)| *sender == direction.sender).map(|(_, flow)| flow);
    match flow.and_then(|flow| Some((flow, direction.moved.flows.get(&flow)?))) {
        Some((flow, lines)) => (lines, format!(", flow {flow}")),
        None => (&direction.moved.all, String::new()),
    }
}

/// What limited at each time of the graph above, and the shares of the whole time so far.
fn limited(frame: &mut Frame, area: Rect, limits: &Limits, times: Times) {
    let cells = times.each_s().map(|at_s| match limits.at(at_s).map(|step| step.held_by) {
        Some(Some((limiter, _))) => Span::styled("█", colour(limiter)),
        Some(None) => Span::from("·").dim(),
        None => Span::from(" "),
    });
    let left = Span::from(" ".repeat(times.left.into()));
    let band: Line = std::iter::once(left).chain(cells).collect();
    let shares = limits.shares();
    let legend: Line = match (&shares[..], &limits.unknown) {
        ([], Some(why)) => Line::from(format!("limited by: unknown, {why}")).dim(),
        ([], None) => Line::from("limited by: after the first second").dim(),
        (shares, _) => legend(shares, area.width),
    };
    frame.render_widget(Paragraph::new(vec![legend, band]), area);
}

/// The largest shares, as many as have room; one at least.
fn legend(shares: &[(Limiter, Place, f64)], width: u16) -> Line<'static> {
    let mut legend = Line::from("limited so far by ");
    for (number, one) in shares.iter().take(MAX_SHOWN_SHARES).map(share).enumerate() {
        if number > 0 && legend.width() + Span::raw(one.content.trim_end()).width() > width.into() {
            break;
        }
        legend.push_span(one);
    }
    legend
}

fn share((limiter, place, share): &(Limiter, Place, f64)) -> Span<'static> {
    Span::styled(format!("{} {:.0} %  ", limiter.at(*place), share * 100.0), colour(*limiter))
}

/// The flows, beside the newest lines of the plain output.
fn below(frame: &mut Frame, area: Rect, state: &State, controls: Controls) {
    let block = |title| Block::new().borders(Borders::TOP).title(title);
    let lines: Vec<Line> = state.lines.iter().map(|line| Line::from(line.as_str())).collect();
    let newest_first = Paragraph::new(lines).wrap(Wrap { trim: false });
    let newest_first = newest_first.block(block("newest lines first"));
    if state.flows().next().is_none() {
        return frame.render_widget(newest_first, area);
    }
    let [left, right] =
        Layout::horizontal([Constraint::Length(TABLE_COLUMNS), Constraint::Min(0)]).areas(area);
    let rows = state.directions.iter().flat_map(|direction| flow_rows(direction, state, controls));
    let widths =
        FLOW_COLUMNS[..whole_columns(left.width)].iter().map(|one| Constraint::Length(*one));
    let (lost, _) = losses(state, &Lines::default());
    let head = Row::new(["flow", "rate", "round trip", "window", lost]).dim();
    let table = Table::new(rows, widths)
        .header(head)
        .block(block("flows"))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut at = TableState::new().with_selected(controls.selected);
    frame.render_stateful_widget(table, left, &mut at);
    frame.render_widget(newest_first, right);
}

/// How many columns of the table are not cut off in an area of this width; one at least.
fn whole_columns(width: u16) -> usize {
    let mut room = width + 1;
    let fits = |columns: &&u16| {
        let left = room.checked_sub(**columns + 1);
        room = left.unwrap_or(0);
        left.is_some()
    };
    FLOW_COLUMNS.iter().take_while(fits).count().max(1)
}

fn flow_rows(
    direction: &DirectionState,
    state: &State,
    controls: Controls,
) -> impl Iterator<Item = Row<'static>> {
    direction.moved.flows.iter().map(move |(flow, lines)| {
        let unknown = || String::from("unknown");
        Row::new([
            flow.to_string(),
            lines.rate().0.last().map_or_else(unknown, |rate| spoken(rate, controls)),
            lines.round_trip_ms.last().map_or_else(unknown, milliseconds),
            lines.window_segments.map_or_else(unknown, |segments| format!("{segments} seg")),
            losses(state, lines).1.last().map_or_else(unknown, |rate| per_second(rate, state)),
        ])
    })
}

fn milliseconds(ms: f64) -> String {
    Seconds(ms / 1e3).to_string()
}

fn per_second(rate: f64, state: &State) -> String {
    let unit = match state.plan.transport {
        Transport::Tcp => "seg/s",
        Transport::Udp => "/s",
    };
    format!("{} {unit}", Count(rate.round() as u64))
}

/// Colours of the terminal's own palette, so that they suit its background.
fn colour(limiter: Limiter) -> Color {
    match limiter {
        Limiter::Application => Color::LightMagenta,
        Limiter::SendBuffer => Color::LightYellow,
        Limiter::ReceiveWindow => Color::Yellow,
        Limiter::CongestionWindow => Color::Blue,
        Limiter::Recovery => Color::Red,
        Limiter::PathRate => Color::Green,
        Limiter::Startup => Color::Cyan,
        Limiter::Host => Color::Magenta,
    }
}

#[cfg(test)]
mod tests {
    use goodput_engine::Event;
    use goodput_model::{FlowSample, Known, Plan, Role, Sample};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Duration;

    use super::super::limits::LimitedStep;
    use super::*;
    use crate::report::progress::Progress;
    use crate::report::whole_time::WholeTime;

    /// Ten samples a second for three seconds: two flows of 1 MB each between two samples.
    fn state() -> State {
        let plan = Plan { flows: 2, ..Plan::standard() };
        let mut state = State::new(&plan, "nas.example");
        state.enter(&Event::Began, None);
        for tenth in 0_u32..30 {
            let (at_s, bytes) = (f64::from(tenth) / 10.0, u64::from(tenth) * 1_000_000);
            for (end, role) in [(EndName::Near, Role::Sender), (EndName::Far, Role::Receiver)] {
                let flow = |flow| FlowSample {
                    cpu_us: Known::Value(u64::from(tenth) * 25_000),
                    ..FlowSample::unreported(flow, role, bytes, "of a test")
                };
                let (sent, received) =
                    if role == Role::Sender { (2 * bytes, 0) } else { (0, 2 * bytes) };
                let (flows, sent_bytes, received_bytes) = (vec![flow(0), flow(1)], sent, received);
                let sample = Box::new(Sample { at_s, sent_bytes, received_bytes, flows });
                state.enter(&Event::Sampled { end, sample }, None);
            }
        }
        state.enter(&Event::Note { text: String::new() }, Some("note        \x1b[2mhello\x1b[0m"));
        state
    }

    fn drawn(state: &State, controls: Controls, (columns, rows): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        let mut limits = RunLimits::new(&state.plan, 0);
        limits.judge(state.run, &state.plan, &state.recent);
        terminal.draw(|frame| whole(frame, state, &limits, controls)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn rates_limits_flows_and_lines_are_shown() {
        let shown = drawn(&state(), Controls::default(), (100, 40));
        for words in [
            "goodput  nas.example  3 s of max 10 s  ",
            "received near → far 160 Mbit/s",
            "limited by: unknown, of a test",
            "CPU 50 % → 50 %",
            "round trip unknown",
            "80 Mbit/s",
            "note        hello",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }

    #[test]
    fn a_run_of_several_measurements_shows_how_long_it_may_take() {
        let mut state = state();
        let at_most = Some(Duration::from_secs(180));
        state.progress = Some((Progress::default(), WholeTime::begin(at_most)));
        let shown = drawn(&state, Controls::default(), (100, 40));
        assert!(shown.contains(" of max 3:00 in all"), "{shown}");
    }

    #[test]
    fn the_legend_has_whole_shares() {
        let shares = [(Limiter::Host, Place::Far, 0.6), (Limiter::Host, Place::Near, 0.25)];
        let shown = |width| legend(&shares, width).to_string().trim_end().to_owned();
        let both = "limited so far by host (far) 60 %  host (near) 25 %";
        assert_eq!([shown(80), shown(51)], [both, both]);
        assert_eq!([shown(50), shown(9)], ["limited so far by host (far) 60 %"; 2]);
    }

    #[test]
    fn the_band_has_the_times_of_the_graph_above_it() {
        let mut terminal = Terminal::new(TestBackend::new(60, 12)).unwrap();
        let mut limits = Limits::new(Plan::standard(), EndName::Near);
        let held_by = Some((Limiter::PathRate, goodput_model::Place::Path));
        limits.steps.push_back(LimitedStep { from_s: 2.0, to_s: 4.0, held_by });
        let times = Times { left: 10, columns: 50, from_s: 0.0, to_s: 10.0 };
        terminal.draw(|frame| limited(frame, frame.area(), &limits, times)).unwrap();
        let buffer = terminal.backend().buffer();
        let filled: Vec<u16> = (0..60).filter(|x| buffer[(*x, 1)].symbol() == "█").collect();
        assert_eq!(filled, (20..30).collect::<Vec<_>>());
    }

    #[test]
    fn a_selected_flow_has_the_graphs_and_bytes_are_bytes() {
        let controls = Controls { selected: Some(1), bytes: true, ..Controls::default() };
        let shown = drawn(&state(), controls, (100, 40));
        assert!(shown.contains("received near → far, flow 1 10 MB/s"), "{shown}");
    }

    /// Both directions have their rate, their limits and their band, whatever has no room is left out.
    #[test]
    fn a_small_terminal_has_what_matters_and_cuts_no_word() {
        let mut both = state();
        let plan = Plan { direction: goodput_model::Direction::Both, ..Plan::clone(&both.plan) };
        both.plan = std::sync::Arc::new(plan);
        both.directions.push(super::super::state::DirectionState {
            sender: EndName::Far,
            moved: both.directions[0].moved.clone(),
        });
        let shown = drawn(&both, Controls::default(), (40, 12));
        assert_eq!(shown.matches("received ").count(), 2, "{shown}");
        assert_eq!(shown.matches("limited by: ").count(), 2, "{shown}");
        assert!(
            shown.contains("q end  space pause  h help ") && !shown.contains("flows─"),
            "{shown}"
        );
        let shown = drawn(&state(), Controls::default(), (40, 24));
        let head = shown.lines().find(|line| line.contains("flow rate")).expect("it has room");
        assert!(head.contains("round trip window") && !head.contains("sent"), "{shown}");
        assert_eq!([52, 51, 40, 17, 3].map(whole_columns), [5, 5, 4, 2, 1]);
    }

    #[test]
    fn any_size_of_terminal_can_be_drawn_on() {
        let (state, help) = (state(), Controls { help: true, ..Controls::default() });
        for size in [(1, 1), (3, 50), (200, 2), (20, 10), (80, 24), (300, 100)] {
            drawn(&state, help, size);
            drawn(&State::new(&Plan::standard(), "x"), help, size);
        }
    }
}
