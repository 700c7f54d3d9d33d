//! Journals of settings as a disk, a crash or another user may leave them, and what passes between a server and the
//! helper that changes settings for it.

/// Takes any bytes.
pub fn run(data: &[u8]) {
    goodput_settings::fuzzing::journal(data);
    goodput_settings::fuzzing::helper(data);
}
