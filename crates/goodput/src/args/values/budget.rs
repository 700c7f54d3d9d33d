//! What tests may cost a line: `2GB/day`.

use goodput_model::Bytes;

use super::{size, unfit};

/// Bytes in any 24 hours.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn budget(text: &str) -> Result<Bytes, String> {
    let noun = "a number of bytes per day";
    let number = text.strip_suffix("/day").or_else(|| text.strip_suffix("/d"));
    number
        .and_then(|number| size::positive(number.trim()).ok())
        .ok_or_else(|| unfit(text, noun, "it like 2GB/day"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_for_a_day() {
        assert_eq!(budget("2GB/day"), Ok(Bytes(2_000_000_000)));
        assert_eq!(budget("500MB/d"), Ok(Bytes(500_000_000)));
        for wrong in ["2GB", "2GB/month", "0/day", "/day", "much", ""] {
            assert!(budget(wrong).unwrap_err().contains("2GB/day"), "{wrong}");
        }
    }
}
