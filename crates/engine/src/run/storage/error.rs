//! Why a file can't be read or written.

use std::io;

/// In words: which operation on which file, and why not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct StorageError {
    why: String,
    /// Whether a permission is what lacks.
    pub not_permitted: bool,
}

impl StorageError {
    /// The words for an error of the system.
    pub(crate) fn of(why: String, cause: &io::Error) -> Self {
        Self { why, not_permitted: cause.kind() == io::ErrorKind::PermissionDenied }
    }

    /// The same with advice after it.
    pub(super) fn and(self, advice: &str) -> Self {
        Self { why: self.why + advice, ..self }
    }
}

impl From<String> for StorageError {
    /// What no permission would change.
    fn from(why: String) -> Self {
        Self { why, not_permitted: false }
    }
}
