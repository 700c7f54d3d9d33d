//! The arithmetic as it is shown, step by step.

use goodput_model::{BitRate, CeilingLine, Seconds};

/// The steps so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lines(Vec<CeilingLine>);

impl Lines {
    /// Notes one step, and hands its value on.
    pub fn add(&mut self, label: &str, formula: impl Into<String>, value: f64, unit: &str) -> f64 {
        let (label, formula, unit) = (label.into(), formula.into(), unit.into());
        self.0.push(CeilingLine { label, formula, value, unit });
        value
    }

    /// All of them. A value that is no number can't be shown, and its bound says why it is missing.
    pub fn into_vec(self) -> Vec<CeilingLine> {
        self.0.into_iter().filter(|line| line.value.is_finite()).collect()
    }
}

/// A number as it stands in a formula: whole numbers bare, others with up to four digits.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v.fract() == 0.0 && v < 1e15 => return format!("{value:.0}"),
        v if v >= 1000.0 => 1,
        v if v >= 1.0 => 3,
        v if v >= 1e-3 => 5,
        _ => return format!("{value:.3e}"),
    };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A rate as it stands in a formula: exact, so that the formula can be checked by hand.
pub fn rate(bits_per_s: f64) -> String {
    let (scale, unit) = BitRate(bits_per_s).unit();
    format!("{} {unit}", number(bits_per_s / scale))
}

/// A time as it stands in a formula: exact as well.
pub fn time(seconds: f64) -> String {
    let (scale, unit) = Seconds(seconds).unit();
    format!("{} {unit}", number(seconds / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_need_to_be() {
        let shown = [1448.0, 0.1, 1e-6, 25.5, 3.0e-4, 81_274.382].map(number);
        assert_eq!(shown, ["1448", "0.1", "1.000e-6", "25.5", "3.000e-4", "81274.4"]);
        assert_eq!([44.21e6, 1e9, 5.0].map(rate), ["44.21 Mbit/s", "1 Gbit/s", "5 bit/s"]);
        assert_eq!([2.0, 0.025, 5e-5].map(time), ["2 s", "25 ms", "50 µs"]);
    }

    #[test]
    fn what_is_no_number_is_not_shown() {
        let mut lines = Lines::default();
        lines.add("one", "1 / 0", f64::INFINITY, "bit/s");
        assert_eq!(lines.into_vec(), []);
    }
}
