//! Differentiated services code points.

use goodput_model::dscp_typed;
use goodput_model::traffic_class::MAX_DSCP;

use super::unfit;

/// A code point, as a number or by its name.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn dscp(text: &str) -> Result<u8, String> {
    dscp_typed(text).ok_or_else(|| {
        unfit(text, "a DSCP", format_args!("0 to {MAX_DSCP}, or a name like ef, af41 or cs1"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_point_is_refused_in_words() {
        assert_eq!(dscp("af41"), Ok(34));
        assert!(dscp("64").unwrap_err().contains("0 to 63, or a name like ef"));
    }
}
