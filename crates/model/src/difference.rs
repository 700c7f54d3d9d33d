//! A relative difference, as people read it.

use std::fmt;

/// A relative difference, percent of the baseline, as people read it: `+3.2 %`, or a factor if it is at least ten
/// times as much: `35 900 times`. The precision of a format is the number of the percentage's digits after the
/// point, 1 by default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference(pub f64);

impl Difference {
    /// Ten times as much. Such percentages are hard to read.
    const FACTOR_FROM_PERCENT: f64 = 900.0;

    /// Whether people read it as a factor.
    pub fn is_factor(self) -> bool {
        self.0 >= Self::FACTOR_FROM_PERCENT
    }

    /// What stands after the number.
    pub(crate) fn unit(is_factor: bool) -> &'static str {
        if is_factor { " times" } else { " %" }
    }

    /// The number with its unit: a factor, or a percentage with `digits` after the point.
    pub(crate) fn written(self, is_factor: bool, digits: usize) -> String {
        let unit = Self::unit(is_factor);
        if is_factor {
            return format!("{}{unit}", grouped(self.0 / 100.0 + 1.0));
        }
        let text = format!("{:+.digits$}", self.0);
        // What rounds to zero has no sign.
        let is_zero = !text.contains(|digit: char| ('1'..='9').contains(&digit));
        format!("{}{unit}", if is_zero { &text[1..] } else { &text })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(self.is_factor(), f.precision().unwrap_or(1)))
    }
}

/// Three significant digits, thousands apart: `12.3`, `35 900`.
fn grouped(number: f64) -> String {
    if !number.is_finite() {
        return "countless".into();
    }
    if number >= 1e12 {
        return format!("{number:.1e}");
    }
    if number < 100.0 {
        return format!("{number:.1}");
    }
    let step = 10_f64.powi(number.log10().floor() as i32 - 2);
    thousands_apart((number / step).round() * step)
}

/// A whole number with its thousands apart: `35 900`.
pub fn thousands_apart(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digit.is_ascii_digit() && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    // A sign stands before its first digit.
    out.replace("- ", "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_a_sign_unless_it_is_zero() {
        let shown = [3.24, -3.26, 0.04, -0.04, 0.0, -100.0].map(|it| Difference(it).to_string());
        assert_eq!(shown, ["+3.2 %", "-3.3 %", "0.0 %", "0.0 %", "0.0 %", "-100.0 %"]);
        assert_eq!(format!("{:.0}", Difference(-0.4)), "0 %");
    }

    #[test]
    fn thousands_are_apart() {
        let shown = [0.0, 999.4, 1000.0, 966_851.0, -966_851.0, -12.0].map(thousands_apart);
        assert_eq!(shown, ["0", "999", "1 000", "966 851", "-966 851", "-12"]);
    }

    #[test]
    fn ten_times_as_much_and_more_is_a_factor() {
        let shown = [899.0, 900.0, 1_234.0, 10_900.0, 3_585_015.0];
        let shown = shown.map(|percent| Difference(percent).to_string());
        assert_eq!(shown, ["+899.0 %", "10.0 times", "13.3 times", "110 times", "35 900 times"]);
    }
}
