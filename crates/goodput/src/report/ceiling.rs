//! The report of `goodput ceiling`: the lowest bound, all bounds as bars, and the arithmetic line by line.

use std::fmt::Write;

use goodput_ceiling::{number, time};
use goodput_model::{
    BitRate, CeilingBound, CeilingFit, CeilingLine, CeilingReport, Difference, Known,
};

use super::labelled::{line, lines};
use super::style;

/// Columns of a terminal; a line with a bar fits into them.
const TERMINAL_COLUMNS: usize = 80;
/// Shortest length of the longest bar, cells.
const MIN_BAR_CELLS: usize = 10;
/// If the ratio between the highest and the lowest is at least this, bars are logarithmic.
const MIN_LOGARITHMIC_RATIO: f64 = 20.0;
/// Width of names before bars, and of labels in the arithmetic.
const NAME_COLUMNS: usize = 12;
/// Width of rates before bars, if none is longer.
const RATE_COLUMNS: usize = 13;

/// The whole report.
pub fn text(report: &CeilingReport) -> String {
    let mut out = String::new();
    lowest(&mut out, report);
    lines(&mut out, "read", report.read.iter().cloned());
    let unread = report.unread.iter().map(|one| format!("{}: {}", one.what, one.because));
    lines(&mut out, "unknown", unread);
    lines(&mut out, "doubt", report.doubts.iter().map(style::bad));
    bars(&mut out, report);
    report.bounds.iter().for_each(|bound| arithmetic(&mut out, bound));
    out
}

fn lowest(out: &mut String, report: &CeilingReport) {
    let Known::Value(rate) = report.ceiling_bits_per_s else {
        let why = report.ceiling_bits_per_s.get().err().map(|why| why.to_string());
        return line(out, "ceiling", &format!("unknown: {}", why.unwrap_or_default()));
    };
    let limit = report.limit.value();
    let bound = report.bounds.iter().find(|bound| Some(&bound.id) == limit);
    let title = bound.map(|bound| format!("{} ({})", bound.title, bound.id)).unwrap_or_default();
    line(out, "ceiling", &format!("{}   {title}", style::strong(rate)));
    if let (Some(bytes), Some(seconds)) = (report.inputs.transfer_bytes, report.transfer_s) {
        let bytes = goodput_model::Bytes(bytes);
        line(out, "transfer", &format!("{bytes} in {}", time(seconds)));
    }
}

/// One bar: its name, its rate, whether it counts.
struct Bar<'a> {
    name: &'a str,
    rate: f64,
    sign: char,
}

fn bars(out: &mut String, report: &CeilingReport) {
    let known = report.bounds.iter().filter_map(|bound| {
        let sign = if bound.beside.is_some() { '░' } else { '█' };
        Some(Bar { name: &bound.id, rate: bound.bits_per_s.value()?.0, sign })
    });
    let measured =
        report.measured_bits_per_s.map(|BitRate(rate)| Bar { name: "measured", rate, sign: '▒' });
    let mut bars: Vec<_> = known.chain(measured).collect();
    bars.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let (Some(first), Some(last)) = (bars.first(), bars.last()) else { return };
    let scale = Scale::of(first.rate, last.rate);
    let ratio = scale.ratio();
    // Writing to a String can't fail, here and below.
    let _ = writeln!(out);
    for bar in &bars {
        let rate = BitRate(bar.rate).to_string();
        let cells = String::from(bar.sign).repeat(scale.cells(bar.rate));
        let _ = writeln!(
            out,
            "{:NAME_COLUMNS$}{rate:>width$}  {cells}",
            bar.name,
            width = scale.rate_width
        );
    }
    legend(out, &bars, ratio);
}

fn legend(out: &mut String, bars: &[Bar], ratio: f64) {
    let has = |sign| bars.iter().any(|bar| bar.sign == sign);
    let mut words = Vec::new();
    if ratio > MIN_LOGARITHMIC_RATIO {
        words.push("the bars are logarithmic");
    }
    if has('░') {
        words.push("░ does not count");
    }
    if has('▒') {
        words.push("▒ measured");
    }
    if !words.is_empty() {
        let _ = writeln!(out, "{}", style::faint(words.join("; ")));
    }
}

/// Converts a rate to the length of its bar.
struct Scale {
    low: f64,
    high: f64,
    rate_width: usize,
}

impl Scale {
    fn of(low: f64, high: f64) -> Self {
        let longest = BitRate(high).to_string().chars().count() + 1;
        Self { low, high, rate_width: longest.max(RATE_COLUMNS) }
    }

    fn ratio(&self) -> f64 {
        self.high / self.low
    }

    /// Cells of the bar of a rate between the lowest and the highest.
    fn cells(&self, rate: f64) -> usize {
        let share = match self.ratio() {
            ratio if ratio > MIN_LOGARITHMIC_RATIO => {
                ((rate / self.low).ln() / ratio.ln()) * (1.0 - 1.0 / MIN_LOGARITHMIC_RATIO)
                    + 1.0 / MIN_LOGARITHMIC_RATIO
            }
            _ => rate / self.high,
        };
        let most = TERMINAL_COLUMNS
            .saturating_sub(NAME_COLUMNS + self.rate_width + 2)
            .max(MIN_BAR_CELLS) as f64;
        (share * most).round().clamp(1.0, most) as usize
    }
}

fn arithmetic(out: &mut String, bound: &CeilingBound) {
    let head = match &bound.bits_per_s {
        Known::Value(rate) => format!("{rate}   {}", bound.title),
        Known::Missing(why) => format!("{} unknown: {why}", bound.title),
    };
    let _ = writeln!(out);
    line(out, &bound.id, &head);
    bound.lines.iter().for_each(|step| {
        let CeilingLine { label, formula, .. } = step;
        let label = style::faint(format!("  {label:NAME_COLUMNS$} "));
        let _ = writeln!(out, "{label}{formula} = {}", style::strong(value(step)));
    });
    if let Some(why) = &bound.beside {
        let _ = writeln!(out, "  {:NAME_COLUMNS$} {why}", "beside");
    }
}

fn value(step: &CeilingLine) -> String {
    match step.unit.as_str() {
        "bit/s" => BitRate(step.value).to_string(),
        "s" => time(step.value),
        "" => number(step.value),
        unit => format!("{} {unit}", number(step.value)),
    }
}

/// The report of a fit.
pub fn fit(fitted: &CeilingFit) -> String {
    let mut out = String::new();
    let asymptote = match &fitted.asymptote_bits_per_s {
        Known::Value(rate) => {
            format!("{} ({})   no clock gives more", style::strong(rate), bytes(*rate))
        }
        Known::Missing(why) => format!("none: {why}"),
    };
    line(&mut out, "asymptote", &asymptote);
    let per_byte = time(fitted.fixed_s_per_byte);
    line(&mut out, "fixed", &format!("{per_byte} per byte, whatever the clock"));
    line(&mut out, "clocked", &format!("{} clocks per byte", number(fitted.clocks_per_byte)));
    if fitted.clocks_per_byte <= 0.0 {
        line(&mut out, "doubt", &style::bad("a faster clock does not help by this series"));
    }
    let _ = writeln!(out, "\n{:>14}{:>16}{:>16}{:>9}", "clock", "measured", "fitted", "off");
    for point in &fitted.points {
        let fitted = point.fitted_bits_per_s.value().map_or("-".into(), ToString::to_string);
        let off = point.off_percent.value().map_or("-".into(), |off| Difference(*off).to_string());
        let clock = format!("{} MHz", number(point.clock_hz / 1e6));
        let measured = point.measured_bits_per_s.to_string();
        let _ = writeln!(out, "{clock:>14}{measured:>16}{fitted:>16}{off:>9}");
    }
    out
}

fn bytes(rate: BitRate) -> String {
    format!("{}/s", goodput_model::Bytes((rate.0 / 8.0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{CeilingInputs, Family, Transport};

    fn report(inputs: CeilingInputs, measured: Option<BitRate>) -> CeilingReport {
        let ceiling = goodput_ceiling::ceiling(&inputs);
        CeilingReport {
            format: 1,
            limit: ceiling.lowest().map(|(bound, _)| bound.id.clone()).into(),
            ceiling_bits_per_s: ceiling.rate(),
            transfer_s: inputs.transfer_bytes.and_then(|bytes| ceiling.transfer_s(bytes)),
            measured_bits_per_s: measured,
            doubts: measured.map(|measured| ceiling.doubts(measured)).unwrap_or_default(),
            bounds: ceiling.bounds,
            read: Vec::new(),
            unread: Vec::new(),
            inputs,
        }
    }

    fn inputs() -> CeilingInputs {
        CeilingInputs {
            transport: Some(Transport::Tcp),
            family: Some(Family::V4),
            mtu_bytes: Some(1500),
            tcp_option_bytes: Some(12),
            link_bits_per_s: Some(BitRate(1e9)),
            rtt_us: Some(20_000.0),
            window_bytes: Some(65_536),
            loss_percent: Some(0.1),
            bus: Some("pcie3x8".into()),
            transfer_bytes: Some(64_000_000),
            ..CeilingInputs::default()
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn the_lowest_is_named_first_and_the_measured_value_stands_among_the_bars() {
        let text = plain(&text(&report(inputs(), Some(BitRate(25e6)))));
        assert!(
            text.starts_with("ceiling     22.4 Mbit/s   CUBIC at this loss (cubic)\n"),
            "{text}"
        );
        assert!(text.contains("transfer    64 MB in 22.8"), "{text}");
        let names: Vec<_> = text.lines().filter(|line| line.contains(['█', '░', '▒'])).collect();
        assert!(
            names.iter().any(|line| line.starts_with("measured") && line.contains('▒')),
            "{text}"
        );
        assert!(text.contains("1 Gbit/s × 1448 / 1538 = 941.5 Mbit/s"), "{text}");
        assert!(text.contains("doubt       25 Mbit/s was measured"), "{text}");
    }

    #[test]
    fn every_line_with_a_bar_fits_80_columns() {
        let wide = CeilingInputs { packets_per_s: Some(1.0), ..inputs() };
        for inputs in [inputs(), wide] {
            let text = plain(&text(&report(inputs, Some(BitRate(123.4e6)))));
            for line in text.lines().filter(|line| line.contains(['█', '░', '▒'])) {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }

    #[test]
    fn bars_keep_their_order_on_both_scales() {
        let linear = Scale::of(1.0, 10.0);
        assert_eq!([1.0, 10.0].map(|rate| linear.cells(rate)), [5, 53]);
        let wide = Scale::of(1.0, 1e6);
        let wide = [1.0, 1e3, 1e6].map(|rate| wide.cells(rate));
        assert!(wide.is_sorted() && wide[0] >= 1 && wide[2] == 53, "{wide:?}");
    }

    #[test]
    fn a_fit_prints_its_asymptote_and_how_far_it_is_off() {
        let points = [(6.7e6, 740.0), (13.4e6, 970.0), (20e6, 1030.0), (26.7e6, 1075.0)]
            .map(|(c, k)| (c, BitRate(k * 8e3)));
        let text = plain(&fit(&goodput_ceiling::fit(&points).unwrap()));
        assert!(
            text.starts_with("asymptote   10.3 Mbit/s (1.29 MB/s)   no clock gives more\n"),
            "{text}"
        );
        assert!(text.contains("3.808 clocks per byte"), "{text}");
        assert!(text.contains("+1.4 %"), "{text}");
    }
}
