//! A part of a file on a mount, as the payload of a flow.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a flow reads or writes, if it is a part of a file on a mount.
#[derive(Debug, Clone)]
pub struct MountedFile {
    /// Its name in errors.
    pub name: String,
    /// Whether it was opened with `O_DIRECT` (open(2)). If not, each pass first drops the part from the page cache.
    pub direct: bool,
    /// Its part, bytes. The part begins at a page boundary.
    pub part: Range<u64>,
    /// Passes after which the flow ends; `None`: no limit.
    pub passes: Option<u64>,
    /// Who records the passes.
    pub log: Arc<dyn PassLog>,
    /// Bytes written and beyond this host's page cache; each flow has its own.
    pub confirmed: Arc<AtomicU64>,
}

impl MountedFile {
    /// Bytes written and beyond this host's page cache.
    pub fn confirmed_bytes(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }
}

/// Records passes. Called by the flows' threads.
pub trait PassLog: Debug + Send + Sync {
    /// A pass has moved its first bytes: it began at `began`, and they took `first`.
    fn began(&self, flow: u16, began: Instant, first: Duration);

    /// A pass has ended; `sync` is the part of its time that fsync(2) took, if it wrote.
    fn ended(&self, flow: u16, began: Instant, took: Duration, sync: Option<Duration>);
}
