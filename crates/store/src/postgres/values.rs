//! Values as PostgreSQL takes them. Texts in columns with an index are limited; the record's JSON has them whole.

use tokio_postgres::types::{ToSql, Type};

/// The values of a statement's parameters.
pub(super) type Values<'a, const N: usize> = [(&'a (dyn ToSql + Sync), Type); N];

/// Longest text in a column. An entry of an index has at most 2704 bytes (PostgreSQL's documentation, "B-Tree Indexes").
const MAX_BYTES: usize = 1000;

/// Stands for a NUL, which PostgreSQL can't hold.
const NO_NUL: &str = "\u{FFFD}";

/// The text without a NUL, and cut if it is long. What is looked for is changed in the same way.
pub(super) fn indexed(text: &str) -> String {
    let mut text = plain(text);
    text.truncate(text.floor_char_boundary(MAX_BYTES));
    text
}

/// The text without a NUL.
pub(super) fn plain(text: &str) -> String {
    text.replace('\0', NO_NUL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_fits() {
        assert_eq!(indexed("nas"), "nas");
        assert_eq!(indexed("n\0s"), "n\u{FFFD}s");
        assert_eq!(indexed(&"\0".repeat(1000)).len(), 999);
        assert_eq!(indexed(&"ü".repeat(600)).chars().count(), 500);
        assert_eq!(indexed(&format!("a{}", "ü".repeat(600))).len(), 999);
    }
}
