//! The room on the disk that deleted records leave.

/// How much of it to give back to the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveBack {
    /// All, also if all others have to wait for some seconds: someone has asked for it.
    All,
    /// A part, if it is a tenth of the file: the next records need what the oldest ones leave.
    Some,
}

/// What was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// Bytes by which the file is smaller.
    pub freed_bytes: u64,
    /// Bytes of the file that are free for the records to come.
    pub free_bytes: u64,
}
