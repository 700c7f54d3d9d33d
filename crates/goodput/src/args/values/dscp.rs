//! Differentiated services code points.

use goodput_model::dscp_named;

use super::unfit;

/// Highest code point (RFC 2474, section 3).
const MAX: u8 = 63;

/// A code point, as a number or by its name.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn dscp(text: &str) -> Result<u8, String> {
    let numbered = || text.parse().ok().filter(|point| *point <= MAX);
    dscp_named(text).or_else(numbered).ok_or_else(|| {
        unfit(text, "a DSCP", format_args!("0 to {MAX}, or a name like ef, af41 or cs1"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_point_is_a_number_or_a_name() {
        assert_eq!(["46", "EF", "be", "63"].map(|text| dscp(text).unwrap()), [46, 46, 0, 63]);
        for nonsense in ["64", "-1", "af44", "", "0x2e", "4.6"] {
            assert!(dscp(nonsense).unwrap_err().contains("0 to 63"), "{nonsense}");
        }
    }
}
