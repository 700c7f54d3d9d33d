//! What is old, and deleted.

/// What is deleted from the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Old {
    /// What began before this time, RFC 3339, UTC.
    Before(String),
    /// The tests of watches with the numbers up to this one, with their records.
    Watched(i64),
}

impl Old {
    /// Of what began before a time, everything up to what began at an earlier one, and all of that.
    pub(crate) fn up_to(earlier: String, before: &str) -> Self {
        /// What follows a text in the order of bytes, before all texts that begin with it and are longer.
        const AFTER: &str = "\u{1}";
        Self::Before((earlier + AFTER).min(before.to_owned()))
    }
}
