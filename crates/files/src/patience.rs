//! How long a server may take to confirm that it has a file.

use std::time::Duration;

use crate::error::FileError;

/// How long an answer may take if no work remains.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Slowest rate of a link or disk, bytes per second: the kernel may still have to send part of the file, and the
/// server may have to write it.
const LEAST_BYTES_PER_S: u64 = 1_000_000;
/// The longest wait.
const MAX_TIME: Duration = Duration::from_secs(120);

/// How long the confirmation of a file may take after all of it was written to the socket.
pub(crate) fn to_confirm(bytes: Option<u64>) -> Duration {
    let bytes = bytes.unwrap_or(u64::MAX);
    (ANSWER_TIME + Duration::from_secs(bytes / LEAST_BYTES_PER_S)).min(MAX_TIME)
}

/// Makes a timed-out wait for a confirmation report what it waited for.
pub(crate) fn unconfirmed(why: FileError, waited: Duration) -> FileError {
    match why {
        FileError::TimedOut(_) => FileError::TimedOut(format!(
            "the server took the file, and did not confirm it within {} s",
            waited.as_secs()
        )),
        why => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_file_is_waited_for_as_an_answer_and_a_long_one_within_bounds() {
        assert_eq!(to_confirm(Some(1)), ANSWER_TIME);
        assert_eq!(to_confirm(Some(10_000_000)), Duration::from_secs(40));
        assert_eq!(to_confirm(None), MAX_TIME);
    }
}
