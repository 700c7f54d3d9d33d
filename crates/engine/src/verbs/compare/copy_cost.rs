//! The host's state beside a run: the cost of copying memory, which removes noise from the differences.

use std::time::Duration;

use goodput_mover::reference::copy_speed;

use crate::threads::blocking;

/// Beyond the caches of one core, so that other cores' traffic shows as well.
const BUFFER_BYTES: u64 = 4 << 20;

/// Some forty of a scheduler's slices (sched_base_slice, 1 to 3 ms), so that waiting for a CPU shows. Two copies make a
/// run of two seconds 4 % longer.
const COPY_TIME: Duration = Duration::from_millis(40);

/// Wall seconds per 10^9 bytes copied by one thread of this host. `None` if no thread can be created.
pub async fn copy_s_per_gb() -> Option<f64> {
    let speed = blocking(|| copy_speed(BUFFER_BYTES, COPY_TIME)).await.ok()?;
    Some(1e9 / speed.mean_bytes_per_s)
}

/// The mean of the values before and after a run, if both are known.
pub fn mean(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    before.zip(after).map(|(before, after)| f64::midpoint(before, after))
}
