//! How a number of things is written.

use std::fmt::Display;

/// A whole number with what it counts: `1 flow`, `2 flows`. `noun` is that of one; more of them end in `s`.
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let s = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_one() {
        assert_eq!([0_u64, 1, 2].map(|n| counted(n, "flow")), ["0 flows", "1 flow", "2 flows"]);
    }
}
