//! Shares in percent; the sign may be left out.

use super::unfit;

/// A share from 0 to below 100 percent.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn share(text: &str) -> Result<f64, String> {
    match number(text) {
        Some(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err(unfit(text, "a share from 0 to below 100 percent", "it like 0.1% or 0")),
    }
}

/// How far a value may be from its goal, in percent: above 0 and below 100, because every value is within 100 %.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn tolerance(text: &str) -> Result<f64, String> {
    match number(text) {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(percent),
        _ => Err(unfit(text, "a tolerance above 0 and below 100 percent", "it like 2 or 0.5%")),
    }
}

/// A difference above 0 and below 1000 percent, which is ten times as much: nobody counts only what is more than that.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn difference(text: &str) -> Result<f64, String> {
    match number(text) {
        Some(percent) if percent > 0.0 && percent < 1000.0 => Ok(percent),
        _ => Err(unfit(text, "a difference above 0 and below 1000 percent", "it like 2 or 0.5%")),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().trim_end_matches('%').trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_with_and_without_its_sign() {
        assert_eq!(share("0.1%"), Ok(0.1));
        assert_eq!(share("0"), Ok(0.0));
        assert_eq!(share("5 %"), Ok(5.0));
        for nonsense in ["", "%", "-1%", "100%", "nan", "much"] {
            assert!(share(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_tolerance_lets_some_values_fail() {
        assert_eq!(tolerance("99.9%"), Ok(99.9));
        for nonsense in ["0", "100%", "200%", "nan", "inf", "-1", "much"] {
            assert!(tolerance(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_difference_may_be_large_but_not_zero() {
        assert_eq!(difference("150%"), Ok(150.0));
        for nonsense in ["0", "-1", "5000%", "inf", "much"] {
            assert!(difference(nonsense).is_err(), "{nonsense}");
        }
    }
}
