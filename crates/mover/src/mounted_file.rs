//! A part of a file on a mount, as the payload of a flow.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a flow reads or writes, if that is a part of a file on a mount.
#[derive(Debug, Clone)]
pub struct MountedFile {
    /// Its name in errors.
    pub name: String,
    /// Whether it was opened with `O_DIRECT` (open(2)). Otherwise the part is dropped from the page cache before each pass.
    pub direct: bool,
    /// Its part, bytes. It begins where a page does.
    pub part: Range<u64>,
    /// Passes after which the flow ends; `None`: as long as it may.
    pub passes: Option<u64>,
    /// Who keeps what becomes known of the passes.
    pub log: Arc<dyn PassLog>,
    /// What was written and is beyond this host's page cache, bytes; each flow has its own.
    pub confirmed: Arc<AtomicU64>,
}

impl MountedFile {
    /// What was written and is beyond this host's page cache, bytes.
    pub fn confirmed_bytes(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }
}

/// Keeps what becomes known of passes. Called by the flows' threads.
pub trait PassLog: Debug + Send + Sync {
    /// A pass has moved its first bytes: it began at `began`, and they took `first`.
    fn began(&self, flow: u16, began: Instant, first: Duration);

    /// A pass has come to its end; `sync` is how long fsync(2) took of it, if it wrote.
    fn ended(&self, flow: u16, began: Instant, took: Duration, sync: Option<Duration>);
}
