//! Snapshots of this host around a measurement.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::LazyLock;

use goodput_kernel::Context;
use goodput_model::Snapshot;

use crate::error::EngineError;
use crate::threads::blocking;

/// What this host knows now, or an empty snapshot that says why if the plan does not observe.
pub async fn observe(wanted: bool, context: Context) -> Result<Snapshot, EngineError> {
    if wanted {
        return blocking(move || goodput_kernel::snapshot(&context)).await;
    }
    let mut empty = Snapshot::default();
    for source in goodput_kernel::sources::ALL {
        empty.lacks(source.id(), "observing was switched off");
    }
    Ok(empty)
}

/// What resets the peak of resident memory (proc_pid_clear_refs(5), Linux 4.0). A process that has changed
/// its user may still write it, but no longer open it.
static PEAK_MEMORY: LazyLock<Option<File>> =
    LazyLock::new(|| OpenOptions::new().write(true).open("/proc/self/clear_refs").ok());

/// Opens now what [`forget_peak_memory`] writes later.
pub fn keep_peak_memory() {
    LazyLock::force(&PEAK_MEMORY);
}

/// Has the peak of resident memory count from here on. If that is refused, it stays that of the whole
/// life of the process.
pub fn forget_peak_memory() {
    if let Some(mut file) = PEAK_MEMORY.as_ref() {
        let _ = file.write_all(b"5");
    }
}

/// Notes in `before` what CPU time was used up to now, and has the kernel forget how much memory this
/// process once had: both are then those of the flows, not of what was read beside them. To be called
/// last before they begin.
pub fn usage_before(wanted: bool, context: &Context, before: &mut Snapshot) {
    if wanted {
        forget_peak_memory();
        goodput_kernel::usage(context, before);
    }
}

/// The same for the moment in which the flows have ended; nothing if the plan does not observe.
pub fn usage_after(wanted: bool, context: &Context) -> Snapshot {
    let mut after = Snapshot::default();
    if wanted {
        goodput_kernel::usage(context, &mut after);
    }
    after
}
