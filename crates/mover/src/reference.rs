//! What this machine can do at best, to compare a measurement with: how fast one CPU copies memory, and the cost of an
//! empty system call.
//!
//! Both are measured on the calling thread and take the time that they are given. They show the machine's current
//! state: other load slows both, just as it slows a measurement.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use goodput_model::{Known, Missing};

/// Calls that are timed together: reading the clock costs about as much as one call.
const CALLS_PER_BATCH: u32 = 1000;
/// Size of a buffer that no cache holds, relative to the last-level cache.
const BUFFER_PER_CACHE_RATIO: u64 = 4;
/// Bounds of this buffer, bytes: for an unknown cache, and for what a small host can spare.
const BUFFER_BYTES_RANGE: std::ops::RangeInclusive<u64> = (64 << 20)..=(512 << 20);

/// How fast one CPU copies from one buffer to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopySpeed {
    /// Length of each of the two buffers, bytes.
    pub buffer_bytes: u64,
    /// The median of all passes, bytes copied per second. Each byte is read once and written once.
    pub bytes_per_s: f64,
    /// All passes together, bytes copied per second, including the time in which the thread had no CPU.
    pub mean_bytes_per_s: f64,
    /// How often the whole buffer was copied, not counting the first time.
    pub passes: usize,
}

/// What a system call costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallCost {
    /// The median of the mean of each batch of 1000 calls, nanoseconds.
    pub nanoseconds: f64,
    /// Number of batches.
    pub batches: usize,
}

/// Copies `buffer_bytes`, at least one, repeatedly for `time`, and at least once. Memory: twice
/// the buffer.
///
/// A buffer of [`beyond_cache_bytes`] gives the speed of the memory; one of a chunk's size gives the speed of the
/// caches, which payload sees if it is sent from the same buffer repeatedly.
pub fn copy_speed(buffer_bytes: u64, time: Duration) -> CopySpeed {
    let len = buffer_bytes.max(1) as usize;
    // Neither is zero: the kernel would map all addresses to one page of zeros.
    let (source, mut target) = (vec![0x55u8; len], vec![0xaau8; len]);
    // Short buffers are copied several times in a row, because the clock costs time too.
    let repeated = ((1 << 20) / len).max(1);
    let mut pass = || {
        let began = Instant::now();
        for _ in 0..repeated {
            target.copy_from_slice(black_box(&source));
            black_box(&mut target);
        }
        (len * repeated) as f64 / began.elapsed().as_secs_f64().max(1e-9)
    };
    pass();
    let speeds = repeat_for(time, pass);
    CopySpeed {
        buffer_bytes: len as u64,
        bytes_per_s: middle(&speeds),
        // Every pass copies the same amount, so the mean is the harmonic one.
        mean_bytes_per_s: speeds.len() as f64 / speeds.iter().map(|speed| 1.0 / speed).sum::<f64>(),
        passes: speeds.len() * repeated,
    }
}

/// Calls getppid(2) repeatedly for `time`, and at least 1000 times. The kernel answers this call from memory, and no
/// library caches the answer.
pub fn call_cost(time: Duration) -> CallCost {
    let costs = repeat_for(time, || {
        let began = Instant::now();
        for _ in 0..CALLS_PER_BATCH {
            black_box(rustix::process::getppid());
        }
        began.elapsed().as_nanos() as f64 / f64::from(CALLS_PER_BATCH)
    });
    CallCost { nanoseconds: middle(&costs), batches: costs.len() }
}

/// Length of a buffer that the last-level cache does not hold, bytes.
pub fn beyond_cache_bytes() -> u64 {
    let cache = last_level_cache_bytes();
    let wanted = cache.value().map_or(0, |cache| cache.saturating_mul(BUFFER_PER_CACHE_RATIO));
    wanted.clamp(*BUFFER_BYTES_RANGE.start(), *BUFFER_BYTES_RANGE.end())
}

/// Size of the largest cache of the first CPU, bytes
/// (Documentation/ABI/testing/sysfs-devices-system-cpu, `cache/index*/size`).
pub fn last_level_cache_bytes() -> Known<u64> {
    largest_cache(Path::new("/sys/devices/system/cpu/cpu0/cache"))
        .ok_or_else(|| Missing::because("the kernel does not report the CPU's cache sizes"))
        .into()
}

fn largest_cache(folder: &Path) -> Option<u64> {
    let caches = fs::read_dir(folder).ok()?.flatten();
    caches.filter_map(|cache| kibibytes(&fs::read_to_string(cache.path().join("size")).ok()?)).max()
}

/// The kernel writes `32768K` (`size_show`, drivers/base/cacheinfo.c).
fn kibibytes(text: &str) -> Option<u64> {
    text.trim().strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
}

pub(crate) fn repeat_for(time: Duration, mut once: impl FnMut() -> f64) -> Vec<f64> {
    let began = Instant::now();
    let mut results = vec![once()];
    while began.elapsed() < time {
        results.push(once());
    }
    results
}

/// The median of at least one number.
pub(crate) fn middle(values: &[f64]) -> f64 {
    goodput_model::median(values.iter().copied()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_no_time_gives_a_figure() {
        let copied = copy_speed(5000, Duration::ZERO);
        assert_eq!(copied.buffer_bytes, 5000);
        assert!(copied.bytes_per_s > 1e6 && copied.passes > 0, "{copied:?}");
        let call = call_cost(Duration::ZERO);
        assert!(call.nanoseconds > 1.0 && call.batches == 1, "{call:?}");
    }

    #[test]
    fn the_buffer_is_larger_than_the_cache_but_has_a_bound() {
        assert!(BUFFER_BYTES_RANGE.contains(&beyond_cache_bytes()));
        assert_eq!(kibibytes("32768K\n"), Some(32 << 20));
        assert_eq!((kibibytes("32M"), kibibytes(""), kibibytes("K")), (None, None, None));
        assert_eq!(largest_cache(Path::new("/nonexistent")), None);
    }
}
