//! The steps from application to application: what went in, what came out, and where packets were lost.

use goodput_model::{DirectionResult, Known, Record, Step, StepUnit};

use super::{Chart, direction_words};
use crate::axis::Axis;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::sketch::Sketch;
use crate::words;

/// Height of a step, pixels.
const STEP_PIXELS: u32 = 34;

/// The chart.
pub const CHART: Chart = Chart {
    id: "path",
    shows: "what went in, came out and was lost at each step from application to application",
    of: Of::OneRun,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let seen = record.result.directions.iter().filter(|direction| !direction.path_steps.is_empty());
    seen.map(|direction| figure(record, direction)).collect()
}

fn figure(record: &Record, direction: &DirectionResult) -> Sketch {
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
    let alt = format!("{alt}{}", units(&direction.path_steps));
    let (id, of) = direction_words(record, direction.sender);
    let title = format!("From application to application{of}");
    let plot = Some(plot(&direction.path_steps));
    Sketch { id: format!("path{id}"), title, alt, plot, table }
}

/// Why steps beside each other count so differently.
fn units(steps: &[Step]) -> &'static str {
    let counts =
        |unit| steps.iter().any(|step| step.unit == unit && step.entered.value().is_some());
    match counts(StepUnit::Packets) && steps.iter().any(|step| step.unit == StepUnit::Segments) {
        true => {
            " A packet of a qdisc or a device may hold many segments, and be other traffic. The sending socket counts \
             segments, again each time that its own queue refuses them."
        }
        false => "",
    }
}

/// A bar for each step, from the sending application down to the receiving one: the share that came through, and the
/// share that was lost. A dot marks even the smallest loss. A step whose share nobody counted has only its words.
fn plot(steps: &[Step]) -> Plot {
    let (mut through, mut gone) = (Vec::new(), Vec::new());
    let (mut marks, mut names) = (Vec::new(), Vec::new());
    for (row, step) in steps.iter().enumerate() {
        let y = -(row as f64);
        if let Some(share) = lost_percent(step) {
            through.push([(0.0, y - 0.9), (100.0 - share, y - 0.5)]);
            gone.push([(100.0 - share, y - 0.9), (100.0, y - 0.5)]);
        }
        if lost(step).is_some() {
            marks.push((100.0, y - 0.7));
        }
        names.push(((0.5, y - 0.05), in_words(step)));
    }
    let layers = vec![
        Layer::named("came through", palette::GREEN, Shape::Boxes(through)),
        Layer::named("lost", palette::ORANGE, Shape::Boxes(gone)),
        Layer::unnamed(palette::ORANGE, Shape::Dots(marks)),
        Layer::unnamed(palette::INK, Shape::Words(names)),
    ];
    let x = Axis::new(0.0..100.0, words::percent);
    let y = Axis::bare(-(steps.len() as f64)..0.1);
    Plot { height: 90 + STEP_PIXELS * steps.len() as u32, x, y, layers }
}

/// The share of what entered a step that was lost there, percent; `None` if a counter is missing, or if the two
/// counters can't be of the same units.
fn lost_percent(step: &Step) -> Option<f64> {
    let dropped = *step.dropped.value()?;
    let left = step.left.value().and_then(|left| left.checked_add(dropped));
    let entered = step.entered.value().copied().or(left)?;
    (entered > 0 && dropped <= entered).then(|| dropped as f64 / entered as f64 * 100.0)
}

/// `path: 162.3k in, 1641 lost (1.01 %), segments`: what was counted, and that a loss was not.
fn in_words(step: &Step) -> String {
    let amount = |known: &Known<u64>| known.value().map(|_| step.unit.amount(known));
    let share = lost_percent(step).filter(|share| *share > 0.0);
    let share = share.map_or(String::new(), |share| format!(" ({})", words::percent(share)));
    let gone = amount(&step.dropped).map(|dropped| format!("{dropped} lost{share}"));
    let parts = [
        amount(&step.entered).map(|entered| format!("{entered} in")),
        amount(&step.left).map(|left| format!("{left} out")),
        Some(gone.unwrap_or_else(|| "losses not counted".into())),
        Some(step.unit.to_string()),
    ];
    format!("{}: {}", step.label(), parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn lost(step: &Step) -> Option<String> {
    let dropped = step.dropped.value().filter(|count| **count > 0)?;
    Some(format!("{} at the {}", step.unit.counted(*dropped), step.label()))
}

#[cfg(test)]
mod tests {
    use goodput_model::{Place, StepName};

    use super::*;

    fn step(entered: Option<u64>, left: Option<u64>, dropped: Option<u64>) -> Step {
        let known = |count: Option<u64>| count.map_or(Known::missing("not counted"), Known::Value);
        Step {
            place: Place::Path,
            name: StepName::Path,
            unit: StepUnit::Segments,
            entered: known(entered),
            left: known(left),
            dropped: known(dropped),
        }
    }

    #[test]
    fn a_loss_is_a_share_of_what_entered() {
        assert_eq!(lost_percent(&step(Some(400), None, Some(4))), Some(1.0));
        assert_eq!(lost_percent(&step(None, Some(396), Some(4))), Some(1.0));
        assert_eq!(
            in_words(&step(Some(400), None, Some(4))),
            "path: 400 in, 4 lost (1 %), segments"
        );
    }

    #[test]
    fn packets_beside_segments_are_explained() {
        let packets = Step { unit: StepUnit::Packets, ..step(Some(1), Some(1), None) };
        assert!(units(&[step(Some(9), None, None), packets.clone()]).contains("many segments"));
        assert_eq!(units(&[packets]), "");
    }

    #[test]
    fn what_nobody_counted_has_no_share() {
        let uncounted = [
            step(Some(400), Some(400), None),
            step(None, None, Some(4)),
            step(Some(3), None, Some(4)),
            step(Some(0), None, Some(0)),
            step(None, Some(u64::MAX), Some(4)),
        ];
        for step in &uncounted {
            assert_eq!(lost_percent(step), None, "{step:?}");
        }
        assert_eq!(in_words(&uncounted[0]), "path: 400 in, 400 out, losses not counted, segments");
    }
}
