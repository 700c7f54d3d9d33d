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
