//! Why a relay could not be set up.

use std::io;

/// A system call for a relay failed.
#[derive(Debug, thiserror::Error)]
#[error("can't {what} {object}: {source}")]
pub struct RelayError {
    /// The operation, a verb.
    pub what: &'static str,
    /// Its object.
    pub object: &'static str,
    /// The cause.
    pub source: io::Error,
}
