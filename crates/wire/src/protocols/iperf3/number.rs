//! Numbers as iperf3's versions write them into JSON: integers, floats, exponents, and -1 as 2^64-1.

use serde_json::Value;

/// A whole number of at least 0; fractions are cut off, as in iperf3 (`cJSON`'s `valueint`).
pub fn whole(value: &Value) -> Option<u64> {
    match (value.as_u64(), value.as_f64()) {
        (Some(number), _) => Some(number),
        // No count reaches 2^64.
        (None, Some(number)) if (0.0..18_446_744_073_709_551_616.0).contains(&number) => {
            Some(number as u64)
        }
        _ => None,
    }
}

/// Whether a value is a number but not a valid amount: negative, or above all counts.
pub fn is_absurd(value: &Value) -> bool {
    value.is_number() && whole(value).is_none()
}

/// A count, if it was made. iperf3 writes -1 for a count that was not made, and 3.12 and 3.13 write
/// -1 as 2^64-1; no real count exceeds 2^63.
pub fn counted(value: &Value) -> Option<u64> {
    whole(value).filter(|count| i64::try_from(*count).is_ok())
}

/// A finite number.
pub fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// Whether a flag is set: `true` since 3.18, a number other than 0 in older versions.
pub fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_f64().is_some_and(|number| number != 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_way_to_write_a_number_is_read() {
        assert_eq!(whole(&read("4096")), Some(4096));
        assert_eq!(whole(&read("4096.9")), Some(4096));
        assert_eq!(counted(&read("1.5e+15")), Some(1_500_000_000_000_000));
        assert_eq!(finite(&read("4e-05")), Some(0.00004));
        for none in ["-1", "18446744073709551615", "1.8446744073709552e19", "\"4\"", "null", "1e99"]
        {
            assert_eq!(counted(&read(none)), None, "{none}");
        }
        assert_eq!(whole(&read("18446744073709551615")), Some(u64::MAX));
    }

    #[test]
    fn what_is_no_amount_is_absurd_and_what_is_no_number_is_not() {
        for absurd in ["-1", "-0.5", "1e300"] {
            assert!(is_absurd(&read(absurd)), "{absurd}");
        }
        assert!(!is_absurd(&read("0")) && !is_absurd(&read("\"-1\"")));
    }

    #[test]
    fn flags_are_booleans_or_numbers() {
        assert!(flag(&read("true")) && flag(&read("1")));
        assert!(!flag(&read("false")) && !flag(&read("0")) && !flag(&read("\"yes\"")));
    }
}
