//! How goodput follows the values of one setting: every run a dot, each value's median, and the curve through them.

use goodput_model::{Comparison, DoseCurve, Record};

use super::Chart;
use crate::clip::Point;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Axis, Layer, Plot, Shape};
use crate::sketch::Sketch;
use crate::words;

/// Points of the curve.
const CURVE_POINTS: u32 = 100;
/// Room beside the outermost values, in powers of ten.
const MARGIN_DECADES: f64 = 0.1;

/// The chart.
pub const CHART: Chart = Chart {
    id: "dose",
    shows: "how goodput follows the values of one setting, with the fitted curve",
    of: Of::All,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let comparison = record.comparison.as_ref();
    let fitted = comparison.and_then(|comparison| Some((comparison, comparison.curve.as_ref()?)));
    fitted.map(|(comparison, curve)| figure(comparison, curve)).into_iter().collect()
}

/// A value with the goodput of its runs, bits per second.
struct Dose<'a> {
    text: &'a str,
    number: f64,
    runs: Vec<f64>,
    median: Option<f64>,
}

/// The values that are numbers, the smallest first.
fn doses(comparison: &Comparison) -> Vec<Dose<'_>> {
    let each = comparison.arms.iter().enumerate().filter_map(|(number, arm)| {
        let text = arm.values.first()?;
        Some(Dose {
            text,
            number: arm.number()?,
            runs: comparison.counted_rates(number).map(|rate| rate.0).collect(),
            median: arm.goodput_bits_per_s.value().map(|rate| rate.0),
        })
    });
    let mut doses: Vec<_> = each.collect();
    doses.sort_by(|a, b| a.number.total_cmp(&b.number));
    doses
}

fn figure(comparison: &Comparison, curve: &DoseCurve) -> Sketch {
    let doses = doses(comparison);
    let setting = comparison.settings.first().map(ToString::to_string).unwrap_or_default();
    let mut table = Table::new(["value", "runs", "median goodput", "curve"]);
    for dose in &doses {
        let rate = |rate: Option<f64>| rate.map_or("none".into(), words::rate);
        let fitted = curve.goodput_at(dose.number);
        let runs = dose.runs.len().to_string();
        table.row([dose.text.into(), runs, rate(dose.median), rate(fitted)]);
    }
    let alt = alt(&setting, curve);
    let plot = plot(&doses, curve);
    let title = format!("Goodput for each value of {setting}");
    Sketch { id: "dose".into(), title, alt, plot: Some(plot), table }
}

fn alt(setting: &str, curve: &DoseCurve) -> String {
    let bend = match (curve.knee.get(), curve.asymptote_bits_per_s.get()) {
        (Ok(knee), Ok(rate)) => {
            format!("Goodput rises with {setting} up to {}, then stays at {rate}", prefixed(*knee))
        }
        (Err(why), Ok(rate)) => format!("Goodput stays at {rate} ({why})"),
        (_, Err(why)) => format!("Goodput for each value of {setting} has no knee: {why}"),
    };
    format!(
        "{bend}. The medians lie {} off the closest curve.",
        words::percent(curve.misfit_percent)
    )
}

fn plot(doses: &[Dose<'_>], curve: &DoseCurve) -> Plot {
    let x = |dose: &Dose<'_>| dose.number.log10();
    let dots = doses.iter().flat_map(|dose| dose.runs.iter().map(move |run| (x(dose), *run)));
    let medians = doses.iter().filter_map(|dose| Some((x(dose), dose.median?)));
    let (dots, medians): (Vec<Point>, Vec<Point>) = (dots.collect(), medians.collect());
    let (from, to) = match doses {
        [first, .., last] => (x(first), x(last)),
        _ => (0.0, 1.0),
    };
    let at = |step: u32| from + (to - from) * f64::from(step) / f64::from(CURVE_POINTS);
    let fitted = (0..=CURVE_POINTS)
        .filter_map(|step| Some((at(step), curve.goodput_at(10_f64.powf(at(step)))?)));
    let fitted: Vec<Point> = fitted.collect();
    let top = dots.iter().chain(&fitted).map(|(_, rate)| *rate).fold(0.0, f64::max);
    let layers = vec![
        Layer::named("fitted curve", palette::ORANGE, Shape::Dashed(fitted)),
        Layer::named("medians", palette::BLUE, Shape::Thin(medians)),
        Layer::named("runs", palette::GREY, Shape::Dots(dots)),
    ];
    let x = Axis {
        title: "",
        range: from - MARGIN_DECADES..to + MARGIN_DECADES,
        label: |decades| prefixed(10_f64.powf(decades)),
    };
    let y = Axis { title: "", range: 0.0..top.max(1.0) * 1.1, label: words::rate };
    Plot { height: 260, x, y, layers }
}

/// A number of any unit with a decimal prefix.
fn prefixed(value: f64) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (scale, prefix) =
        prefixes.into_iter().find(|(scale, _)| value >= *scale).unwrap_or((1.0, ""));
    format!("{}{prefix}", words::short(value / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_prefix() {
        assert_eq!([500.0, 65_536.0, 1e9].map(prefixed), ["500", "65.5k", "1G"].map(String::from));
    }
}
