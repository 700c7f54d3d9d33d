//! For the fuzz target: feeds arbitrary bytes to the parsers of this crate's files and of its messages from another
//! process.

use crate::helper;
use crate::journal::Text;

/// A journal: parsing it always gives the same result.
pub fn journal(bytes: &[u8]) {
    let text = Text::read(bytes);
    assert_eq!(text, Text::read(bytes));
    // An empty journal lacks its first line.
    assert!(text.unreadable.len() <= bytes.len().max(1));
}

/// A request to the helper that changes settings, and its answer.
pub fn helper(bytes: &[u8]) {
    helper::any_packet(bytes);
}
