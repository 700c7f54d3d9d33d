//! Lengths of time from seconds to months.

use goodput_model::Seconds;

/// A time in the largest unit of which it has two: `72 s`, `41 min`, `5.2 h`, `12 days`.
pub fn span(seconds: f64) -> String {
    let units = [(86_400.0, "days"), (3600.0, "h"), (60.0, "min")];
    let Some((scale, unit)) = units.into_iter().find(|(scale, _)| seconds >= 2.0 * scale) else {
        return Seconds(seconds).to_string();
    };
    let number = seconds / scale;
    let places = usize::from(number < 9.95 && (number - number.round()).abs() >= 0.05);
    format!("{number:.places$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_largest_unit_of_which_there_are_two() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (72.0, "72 s"),
            (2460.0, "41 min"),
            (18_720.0, "5.2 h"),
            (21_600.0, "6 h"),
            (100_000.0, "28 h"),
            (1_036_800.0, "12 days"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }
}
