//! Packets per second, as typed: `150000`, `150k`, `1.5Mpps`.

use super::frequency::prefixed;
use super::unfit;

/// Packets per second above zero.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn packets(text: &str) -> Result<f64, String> {
    match prefixed(text, &["pps", "/s"]) {
        Some(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err(unfit(text, "a packet rate above 0", "it like 150k or 1.5Mpps")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_rate_may_have_a_unit() {
        for (text, rate) in [("150000", 150e3), ("150k", 150e3), ("1.5Mpps", 1.5e6), ("9/s", 9.0)] {
            assert_eq!(packets(text), Ok(rate), "{text}");
        }
        for nonsense in ["", "0", "-1", "pps", "inf", "many", "1e999"] {
            assert!(packets(nonsense).unwrap_err().contains("150k"), "{nonsense}");
        }
    }
}
