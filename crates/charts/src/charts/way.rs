//! The way from application to application: what went in, what came out, what was lost where.

use goodput_model::{DirectionResult, Known, Record, Step, StepName, StepUnit};

use super::{Chart, direction};
use crate::figure::{Figure, Table};
use crate::plot::PlotError;

/// The chart. A table says it better than a picture.
pub const CHART: Chart = Chart {
    id: "way",
    shows: "what went in, came out and was lost at each step from application to application",
    draw,
};

fn draw(record: &Record) -> Result<Vec<Figure>, PlotError> {
    let seen = record.result.directions.iter().filter(|way| !way.way.is_empty());
    Ok(seen.map(|way| figure(record, way)).collect())
}

fn figure(record: &Record, way: &DirectionResult) -> Figure {
    let mut table = Table::new(["step", "in", "out", "lost", "of"]);
    for step in &way.way {
        let name = place(step);
        let of = unit(step.unit).into();
        table.row([name, count(&step.entered), count(&step.left), count(&step.dropped), of]);
    }
    let lost: Vec<_> = way.way.iter().filter_map(lost).collect();
    let counted = way.way.iter().any(|step| step.dropped.value().is_some());
    let alt = match &lost[..] {
        _ if !counted => "No counter on the way could be read.".into(),
        [] => "No counter on the way counted a loss.".into(),
        some => format!("Lost: {}.", some.join(", ")),
    };
    let (id, of) = direction(record, way.sender);
    let title = format!("From application to application{of}");
    Figure { id: format!("way{id}"), title, alt, svg: None, table }
}

fn lost(step: &Step) -> Option<String> {
    let dropped = step.dropped.value().filter(|count| **count > 0)?;
    Some(format!("{dropped} {} at the {}", unit(step.unit), place(step)))
}

fn place(step: &Step) -> String {
    match step.name {
        StepName::Path => "path".into(),
        name => format!("{} {}", step.place, in_words(name)),
    }
}

fn count(count: &Known<u64>) -> String {
    match count.get() {
        Ok(count) => count.to_string(),
        Err(_) => "not counted".into(),
    }
}

fn in_words(name: StepName) -> &'static str {
    match name {
        StepName::Application => "application",
        StepName::Socket => "socket",
        StepName::Qdisc => "qdisc",
        StepName::Device => "device",
        StepName::Path => "path",
        StepName::Backlog => "backlog",
    }
}

fn unit(unit: StepUnit) -> &'static str {
    match unit {
        StepUnit::Bytes => "bytes",
        StepUnit::Segments => "segments",
        StepUnit::Datagrams => "datagrams",
        StepUnit::Packets => "packets",
    }
}
