//! How goodput follows the values of one setting: every run a dot, each value's median, and the curve through them.

use goodput_model::{BitRate, Bytes, Comparison, DoseCurve, Record};

use super::Chart;
use crate::axis::{Axis, Ticks};
use crate::clip::Point;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
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
    /// Number of its arm.
    arm: usize,
    /// As the user wrote it.
    text: &'a str,
    number: f64,
    runs: Vec<f64>,
    median: Option<f64>,
}

/// The values that are numbers, the smallest first.
fn doses(comparison: &Comparison) -> Vec<Dose<'_>> {
    let each = comparison.arms.iter().enumerate().filter_map(|(number, arm)| {
        Some(Dose {
            arm: number,
            text: arm.values.first()?,
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
    let unit = Unit::of(&doses);
    let alt = alt(&setting, curve, unit);
    let plot = plot(&setting, &doses, curve, unit);
    let title = format!("Goodput for each value of {setting}");
    Sketch { id: "dose".into(), title, alt, plot: Some(plot), table }
}

/// What the values of a setting are, as far as the way in which they are written says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    Rate,
    /// Bare numbers.
    Unknown,
}

impl Unit {
    /// The same reading as that of the curve ([`DoseCurve::number`]).
    fn of(doses: &[Dose<'_>]) -> Self {
        let named = doses.iter().map(|dose| dose.text).filter(|text| text.parse::<f64>().is_err());
        named
            .map(Self::of_text)
            .reduce(|one, other| if one == other { one } else { Self::Unknown })
            .unwrap_or(Self::Unknown)
    }

    fn of_text(text: &str) -> Self {
        match (text.parse::<Bytes>(), text.parse::<BitRate>()) {
            (Ok(_), _) => Self::Bytes,
            (_, Ok(_)) => Self::Rate,
            _ => Self::Unknown,
        }
    }

    /// A value with its unit.
    fn written(self, value: f64) -> String {
        match self {
            Self::Bytes => words::bytes(value),
            Self::Rate => words::rate(value),
            Self::Unknown => prefixed(value),
        }
    }

    /// The title of the axis of a setting.
    fn title(self, setting: &str) -> String {
        match self {
            Self::Bytes => format!("{setting}, bytes"),
            Self::Rate => format!("{setting}, bit/s"),
            Self::Unknown => setting.into(),
        }
    }
}

fn alt(setting: &str, curve: &DoseCurve, unit: Unit) -> String {
    let bend = match (curve.knee.get(), curve.asymptote_bits_per_s.get()) {
        (Ok(knee), Ok(rate)) => {
            format!(
                "Goodput rises with {setting} up to {}, then stays at {rate}",
                unit.written(*knee)
            )
        }
        (Err(why), Ok(rate)) => format!("Goodput stays at {rate} ({why})"),
        (_, Err(why)) => format!("Goodput for each value of {setting} has no knee: {why}"),
    };
    format!(
        "{bend}. The medians lie {} off the closest curve. A dot is a run.",
        words::percent(curve.misfit_percent)
    )
}

fn plot(setting: &str, doses: &[Dose<'_>], curve: &DoseCurve, unit: Unit) -> Plot {
    let x = |dose: &Dose<'_>| dose.number.log10();
    let dots =
        |dose: &Dose<'_>| dose.runs.iter().map(|run| (x(dose), *run)).collect::<Vec<Point>>();
    let medians = doses.iter().filter_map(|dose| Some((x(dose), dose.median?)));
    let medians: Vec<Point> = medians.collect();
    let (from, to) = match doses {
        [first, .., last] => (x(first), x(last)),
        _ => (0.0, 1.0),
    };
    let at = |step: u32| from + (to - from) * f64::from(step) / f64::from(CURVE_POINTS);
    let fitted = (0..=CURVE_POINTS)
        .filter_map(|step| Some((at(step), curve.goodput_at(10_f64.powf(at(step)))?)));
    let fitted: Vec<Point> = fitted.collect();
    let runs = doses.iter().flat_map(|dose| &dose.runs);
    let top = runs.chain(fitted.iter().map(|(_, rate)| rate)).copied().fold(0.0, f64::max);
    let mut layers = vec![
        Layer::named("fitted curve", palette::ORANGE, Shape::Dashed(fitted)),
        Layer::named("medians", palette::BLUE, Shape::Thin(medians)),
    ];
    // Each value is an arm, and has its colour.
    let runs = |dose: &Dose<'_>| Layer::unnamed(palette::of_arm(dose.arm), Shape::Dots(dots(dose)));
    layers.extend(doses.iter().map(runs));
    let ticks = doses.iter().map(|dose| (x(dose), dose.text.to_owned())).collect();
    let across = from - MARGIN_DECADES..to + MARGIN_DECADES;
    let x = Axis::new(across, |decades| prefixed(10_f64.powf(decades)));
    let x = x.titled(unit.title(setting)).with_ticks(Ticks::At(ticks));
    let y = Axis::new(0.0..top.max(1.0) * 1.1, words::rate);
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
    use goodput_model::Known;

    use super::*;

    fn dose(arm: usize, text: &str) -> Dose<'_> {
        let number = DoseCurve::number(text).expect("it is one");
        Dose { arm, text, number, runs: vec![1e6], median: Some(1e6) }
    }

    #[test]
    fn the_axis_has_the_values_as_they_were_written_and_their_unit() {
        let written = |texts: [&'static str; 3]| {
            let doses: Vec<_> =
                texts.into_iter().enumerate().map(|(n, text)| dose(n, text)).collect();
            let unit = Unit::of(&doses);
            let curve = DoseCurve {
                knee: Known::Value(65_536.0),
                knee_between: None,
                asymptote_bits_per_s: Known::Value(BitRate(1e6)),
                misfit_percent: 1.0,
                rises: Known::Value(true),
            };
            let plot = plot("chunk", &doses, &curve, unit);
            let labels = plot.x.labelled(7, 80).into_iter().map(|(_, label)| label);
            assert_eq!(labels.collect::<Vec<_>>(), texts);
            assert!(
                plot.layers[2].colour == palette::of_arm(0)
                    && plot.layers[3].colour == palette::of_arm(1)
            );
            (plot.x.title, alt("chunk", &curve, unit))
        };
        let (title, alt) = written(["4K", "64K", "1M"]);
        assert_eq!(title, "chunk, bytes");
        assert!(alt.starts_with("Goodput rises with chunk up to 65.5 kB, then"), "{alt}");
        assert_eq!(written(["10mbit", "100mbit", "1gbit"]).0, "chunk, bit/s");
        assert_eq!(written(["1", "16", "256"]).0, "chunk");
    }

    #[test]
    fn numbers_have_a_prefix() {
        assert_eq!([500.0, 65_536.0, 1e9].map(prefixed), ["500", "65.5k", "1G"].map(String::from));
    }
}
