//! Who held the flows' time, as bars.

use goodput_model::{Account, AccountPart, Record, percent_range};

use super::band::account;
use super::{Chart, direction_words};
use crate::axis::Axis;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::sketch::Sketch;
use crate::words;

/// Height of a bar, pixels.
const BAR_PIXELS: u32 = 34;

/// The chart.
pub const CHART: Chart = Chart {
    id: "account",
    shows: "which limiter held how much of the flows' time",
    of: Of::OneRun,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let mut figures = Vec::new();
    for direction in &record.result.directions {
        let Some(account) = account(record, direction.sender) else { continue };
        let (id, of) = direction_words(record, direction.sender);
        let table = table(account);
        let parts = table.rows.iter().map(|row| in_words(row)).collect::<Vec<_>>().join("; ");
        let alt = format!("{parts}.{}", whole(account));
        figures.push(Sketch {
            id: format!("account{id}"),
            title: format!("Where the flows' time went{of}"),
            plot: Some(plot(account)),
            alt,
            table,
        });
    }
    figures
}

/// What the shares are of, if there are several flows: their times together are longer than the run.
fn whole(account: &Account) -> String {
    let Account { flows, flow_seconds, .. } = account;
    let each = words::seconds(flow_seconds / (*flows).max(1) as f64);
    match flows {
        0 | 1 => String::new(),
        _ => format!(" Of {} in all: {flows} flows, {each} each.", words::seconds(*flow_seconds)),
    }
}

/// A row of the table, such as `receive window (far) 62 %, 1.20 s`.
fn in_words(row: &[String]) -> String {
    match row {
        [limiter, place, share, time] if place.is_empty() => format!("{limiter} {share}, {time}"),
        [limiter, place, share, time] => format!("{limiter} ({place}) {share}, {time}"),
        other => other.join(" "),
    }
}

fn table(account: &Account) -> Table {
    let mut table = Table::new(["limiter", "where", "share", "time of all flows"]);
    let share = |seconds: f64| words::percent(seconds / account.flow_seconds * 100.0);
    for part in &account.parts {
        let cells = [
            part.limiter.to_string(),
            part.end.to_string(),
            share_words(account, part),
            words::seconds(part.seconds),
        ];
        table.row(cells);
    }
    if is_seen(account) {
        let seconds = account.unknown_s;
        table.row(["unknown".into(), String::new(), share(seconds), words::seconds(seconds)]);
    }
    table
}

/// A part's share with the range in which it lies.
fn share_words(account: &Account, part: &AccountPart) -> String {
    let percent = |seconds: f64| seconds / account.flow_seconds * 100.0;
    let share = percent(part.seconds);
    let range = percent_range(share, part.between_s.map(|ends| ends.map(percent)));
    format!("{}{range}", words::percent(share))
}

/// Whether so much is unknown that a share of it can be read.
fn is_seen(account: &Account) -> bool {
    account.unknown_s >= account.flow_seconds * 1e-4
}

fn plot(account: &Account) -> Plot {
    let percent = |seconds: f64| seconds / account.flow_seconds * 100.0;
    let unknown = percent(account.unknown_s);
    let unknown = is_seen(account)
        .then(|| (format!("unknown: {}", words::percent(unknown)), palette::GREY, unknown));
    let parts = account.parts.iter().map(|part| {
        let name = format!("{} ({}): {}", part.limiter, part.end, share_words(account, part));
        (name, palette::limiter(part.limiter), percent(part.seconds))
    });
    let rows: Vec<_> = parts.chain(unknown).collect();
    let count = rows.len() as u32;
    let mut layers = Vec::new();
    let mut names = Vec::new();
    for (row, (name, colour, share)) in rows.into_iter().enumerate() {
        let y = -(row as f64);
        layers.push(Layer::unnamed(colour, Shape::Boxes(vec![[(0.0, y - 0.9), (share, y - 0.5)]])));
        names.push(((0.5, y - 0.05), name));
    }
    layers.push(Layer::unnamed(palette::INK, Shape::Words(names)));
    let x = Axis::new(0.0..100.0, words::percent);
    let y = Axis::bare(-f64::from(count)..0.1);
    Plot { height: 60 + BAR_PIXELS * count, x, y, layers }
}
