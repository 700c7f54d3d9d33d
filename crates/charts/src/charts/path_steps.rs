//! The steps from application to application: what went in, what came out, and where packets were lost.

use goodput_model::{DirectionResult, Record, Step};

use super::{Chart, direction_words};
use crate::figure::{Figure, Table};
use crate::plot::PlotError;

/// The chart. A table shows it better than a picture.
pub const CHART: Chart = Chart {
    id: "path",
    shows: "what went in, came out and was lost at each step from application to application",
    draw,
};

fn draw(record: &Record) -> Result<Vec<Figure>, PlotError> {
    let seen = record.result.directions.iter().filter(|direction| !direction.path_steps.is_empty());
    Ok(seen.map(|direction| figure(record, direction)).collect())
}

fn figure(record: &Record, direction: &DirectionResult) -> Figure {
    let mut table = Table::new(["step", "in", "out", "lost", "unit"]);
    for step in &direction.path_steps {
        let [entered, left, dropped] =
            [&step.entered, &step.left, &step.dropped].map(|known| step.unit.amount(known));
        table.row([step.label(), entered, left, dropped, step.unit.to_string()]);
    }
    let lost: Vec<_> = direction.path_steps.iter().filter_map(lost).collect();
    let counted = direction.path_steps.iter().any(|step| step.dropped.value().is_some());
    let alt = match &lost[..] {
        _ if !counted => "No counter on the path could be read.".into(),
        [] => "No counter on the path counted a loss.".into(),
        some => format!("Lost: {}.", some.join(", ")),
    };
    let (id, of) = direction_words(record, direction.sender);
    let title = format!("From application to application{of}");
    Figure { id: format!("path{id}"), title, alt, svg: None, table }
}

fn lost(step: &Step) -> Option<String> {
    step.dropped.value().filter(|count| **count > 0)?;
    let dropped = step.unit.amount(&step.dropped);
    Some(format!("{dropped} {} at the {}", step.unit, step.label()))
}
