//! Names of differentiated services code points (RFC 2474, 2597, 3246, 8622).

use crate::traffic_class::MAX_DSCP;

/// A code point, by its number (0 to 63) or its name.
pub fn dscp_typed(text: &str) -> Option<u8> {
    let numbered = || text.parse().ok().filter(|point| *point <= MAX_DSCP);
    dscp_named(text).or_else(numbered)
}

/// The code point with this name, like `ef`, `af41` or `cs1`, in any case.
pub fn dscp_named(name: &str) -> Option<u8> {
    names().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, point)| point)
}

fn names() -> impl Iterator<Item = (String, u8)> {
    let assured = (1..=4).flat_map(|class| {
        (1..=3).map(move |drop| (format!("af{class}{drop}"), 8 * class + 2 * drop))
    });
    let selectors = (0..=7).map(|class| (format!("cs{class}"), 8 * class));
    // `be` is the default forwarding of RFC 2474, section 4.1.
    let others = [("be", 0), ("ef", 46), ("le", 1)].map(|(name, point)| (name.to_owned(), point));
    assured.chain(selectors).chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_standards() {
        let points =
            ["ef", "AF41", "af13", "cs1", "cs7", "le", "be", "af44", "46", ""].map(dscp_named);
        let expected = [Some(46), Some(34), Some(14), Some(8), Some(56), Some(1), Some(0)];
        assert_eq!(points[..7], expected);
        assert!(points[7..].iter().all(Option::is_none));
    }

    #[test]
    fn a_code_point_is_a_number_or_a_name() {
        let points = ["46", "EF", "be", "63"].map(dscp_typed);
        assert_eq!(points, [Some(46), Some(46), Some(0), Some(63)]);
        assert!(
            ["64", "-1", "af44", "", "0x2e", "4.6"].iter().all(|text| dscp_typed(text).is_none())
        );
    }
}
