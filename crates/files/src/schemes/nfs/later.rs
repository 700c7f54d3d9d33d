//! Calls that a server asks to repeat later (`NFS3ERR_JUKEBOX`, RFC 1813 section 2.6): for example if it must first
//! fetch a file from a tape.

use std::time::{Duration, Instant};

use super::rpc::Procedure;
use crate::error::FileError;

/// How long to wait before each repetition of a call; after the last, the server is given up. RFC 1813 names no time;
/// Linux waits 5 s each time (`NFS_JUKEBOX_RETRY_TIME`, fs/nfs/nfs3proc.c).
const REPEAT_PAUSES: [Duration; 8] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(5),
    Duration::from_secs(5),
    Duration::from_secs(5),
];

/// When to repeat a call that was postponed `times` times in a row, at least once.
pub fn again_at(procedure: Procedure, times: usize, now: Instant) -> Result<Instant, FileError> {
    if let Some(pause) = REPEAT_PAUSES.get(times.saturating_sub(1)) {
        return Ok(now + *pause);
    }
    let seconds = REPEAT_PAUSES.iter().sum::<Duration>().as_secs();
    let name = procedure.name;
    Err(FileError::Failed(format!(
        "{name}: the server asked {times} times over {seconds} s to come back later (JUKEBOX)"
    )))
}

#[cfg(test)]
mod tests {
    use super::super::calls::READ;
    use super::*;

    #[test]
    fn a_call_is_put_off_for_longer_each_time_but_not_for_ever() {
        let now = Instant::now();
        let pause = |times| again_at(READ, times, now).map(|at| at - now);
        assert!(pause(1).unwrap() < pause(2).unwrap() && pause(2).unwrap() < pause(3).unwrap());
        let why = pause(REPEAT_PAUSES.len() + 1).unwrap_err().to_string();
        assert!(why.contains("9 times over 23 s"), "{why}");
    }
}
