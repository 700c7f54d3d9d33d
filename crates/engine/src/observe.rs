//! Snapshots of this host around a measurement.

use goodput_kernel::Context;
use goodput_model::Snapshot;

use crate::client::blocking;
use crate::error::EngineError;

/// What this host knows now, or an empty snapshot that says why where the plan does not observe.
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

/// Notes in `before` what CPU time was used up to now, and has the kernel forget how much memory this
/// process once had: both are then those of the flows, not of what was read beside them. To be called
/// last before they begin.
pub fn usage_before(wanted: bool, context: &Context, before: &mut Snapshot) {
    if wanted {
        // "5" resets the peak of resident memory (proc_pid_clear_refs(5), Linux 4.0). A kernel without it
        // goes on to tell that of the whole life of the process.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        goodput_kernel::usage(context, before);
    }
}

/// The same for the moment in which the flows have ended; nothing where the plan does not observe.
pub fn usage_after(wanted: bool, context: &Context) -> Snapshot {
    let mut after = Snapshot::default();
    if wanted {
        goodput_kernel::usage(context, &mut after);
    }
    after
}
