//! Clocks, as typed: `8MHz`, `33.3 MHz`, `1000`. A number alone is in Hz.

use super::unfit;

/// Hz above zero.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn hertz(text: &str) -> Result<f64, String> {
    match prefixed(text, &["hz"]) {
        Some(hz) if hz.is_finite() && hz > 0.0 => Ok(hz),
        _ => Err(unfit(text, "a frequency above 0", "it in Hz, like 8MHz or 1000")),
    }
}

/// A number with a decimal prefix (k, M or G, in either case), and one of `units` behind it or none.
pub(super) fn prefixed(text: &str, units: &[&str]) -> Option<f64> {
    let lower = text.trim().to_ascii_lowercase();
    let bare = units.iter().find_map(|unit| lower.strip_suffix(unit)).unwrap_or(&lower).trim_end();
    let prefixes = [("k", 1e3), ("m", 1e6), ("g", 1e9)];
    let scaled = prefixes.iter().find_map(|(p, scale)| Some((bare.strip_suffix(p)?, *scale)));
    let (number, scale) = scaled.unwrap_or((bare, 1.0));
    Some(number.trim_end().parse::<f64>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_have_a_unit() {
        for (text, hz) in [("8MHz", 8e6), ("33.5 mhz", 33.5e6), ("1000", 1e3), ("2k", 2e3)] {
            assert_eq!(hertz(text), Ok(hz), "{text}");
        }
        for nonsense in ["", "0", "-1MHz", "MHz", "inf", "NaN", "fast", "1 parsec"] {
            assert!(hertz(nonsense).unwrap_err().contains("8MHz"), "{nonsense}");
        }
    }
}
