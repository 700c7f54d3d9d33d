//! Snapshots of this host around a measurement.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::LazyLock;
use std::time::Duration;

use goodput_kernel::Context;
use goodput_model::Snapshot;
use tokio::time::timeout;

use crate::error::EngineError;
use crate::threads::blocking;

/// The present facts of this host; if the plan does not observe, an empty snapshot that says why.
pub async fn observe(wanted: bool, context: Context) -> Result<Snapshot, EngineError> {
    if wanted {
        return blocking(move || goodput_kernel::snapshot(&context)).await;
    }
    Ok(without("observing was switched off"))
}

/// How long the other end waits for a look at this host, which comes before the payload. It is within the time that a client
/// gives all data connections (`FLOWS_TIMEOUT`).
const PATIENCE: Duration = Duration::from_secs(8);

/// A look that the other end waits for. If it takes too long, all of it is missing: other programs may hold the kernel's lock
/// over network configuration (`rtnl_lock`, net/core/rtnetlink.c), as while many network namespaces go away.
pub async fn in_time(
    look: impl Future<Output = Result<Snapshot, EngineError>>,
) -> Result<Snapshot, EngineError> {
    timeout(PATIENCE, look).await.unwrap_or_else(|_| {
        let s = PATIENCE.as_secs();
        Ok(without(&format!("the kernel had not told all of it after {s} s, before the payload")))
    })
}

/// No facts, and why there are none.
fn without(why: &str) -> Snapshot {
    let mut empty = Snapshot::default();
    for source in goodput_kernel::sources::ALL {
        empty.lacks(source.id(), why);
    }
    empty
}

/// File that resets the peak of resident memory (proc_pid_clear_refs(5), Linux 4.0). A process that has changed its
/// user may still write it, but can no longer open it.
static PEAK_MEMORY: LazyLock<Option<File>> =
    LazyLock::new(|| OpenOptions::new().write(true).open("/proc/self/clear_refs").ok());

/// Opens now the file that [`forget_peak_memory`] writes later.
pub fn keep_peak_memory() {
    LazyLock::force(&PEAK_MEMORY);
}

/// Makes the peak of resident memory count from now on. If that is refused, it stays the peak of the process's whole
/// life.
pub fn forget_peak_memory() {
    if let Some(mut file) = PEAK_MEMORY.as_ref() {
        let _ = file.write_all(b"5");
    }
}

/// Notes in `before` the CPU time used up to now, and makes the kernel forget the process's peak memory: both then show
/// the flows, not what was read beside them. Call this last before the flows begin.
pub fn usage_before(wanted: bool, context: &Context, before: &mut Snapshot) {
    if wanted {
        forget_peak_memory();
        goodput_kernel::usage(context, before);
    }
}

/// The same at the moment when the flows have ended; empty if the plan does not observe.
pub fn usage_after(wanted: bool, context: &Context) -> Snapshot {
    let mut after = Snapshot::default();
    if wanted {
        goodput_kernel::usage(context, &mut after);
    }
    after
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_look_that_the_kernel_holds_up_lacks_all_and_says_why() {
        let late = in_time(pending()).await.unwrap();
        assert!(late.facts.is_empty());
        let why = late.get("link.mtu").unwrap_err().to_string();
        assert!(why.contains("had not told all of it after 8 s"), "{why}");
        let mut seen = Snapshot::default();
        seen.put("link.mtu", 1500u64);
        assert_eq!(in_time(ready(Ok(seen.clone()))).await.unwrap().facts, seen.facts);
    }
}
