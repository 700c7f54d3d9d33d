//! Takes packets from a ring until it is to stop.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::block::{Frame, frames};
use crate::packet::Packet;
use crate::ring::{HANDED_OVER_MS, Ring};

/// How long the thread waits for packets before it looks whether it is to stop, milliseconds.
const LOOKS_EVERY_MS: u32 = 2 * HANDED_OVER_MS;

/// What the kernel counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Packets that passed the filter.
    pub(crate) received: u64,
    /// Those of them that found the ring full.
    pub(crate) dropped: u64,
}

/// Gives `each` packet without its payload, until `stops` says so, and then those that passed before. Adds to `counts`
/// what the kernel counted.
pub(crate) fn take_all(
    ring: &mut Ring,
    stops: &AtomicBool,
    counts: &mut Counts,
    mut each: impl FnMut(&Frame<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut stopped_ns = None;
    loop {
        if stopped_ns.is_none() && stops.load(Ordering::Relaxed) {
            stopped_ns = Some(now_ns());
        }
        let is_there = ring.wait(LOOKS_EVERY_MS)?;
        let latest_ns = take(ring, &mut each)?;
        let (received, dropped) = ring.statistics()?;
        counts.received += received;
        counts.dropped += dropped;
        // A block with packets is handed over within half of that wait: nothing is left in the ring.
        let is_over = |stop| !is_there || latest_ns.is_some_and(|latest| latest > stop);
        if stopped_ns.is_some_and(is_over) {
            return Ok(());
        }
    }
}

/// Takes what the kernel has handed over. Returns the time of the last packet.
fn take(
    ring: &mut Ring,
    each: &mut impl FnMut(&Frame<'_>) -> io::Result<()>,
) -> io::Result<Option<u64>> {
    let mut latest = None;
    loop {
        let taken = ring.next(|block| -> io::Result<()> {
            // The loopback has each packet twice.
            let once = |frame: &Frame<'_>| !(frame.is_loopback && frame.is_outgoing);
            for frame in frames(block).filter(once) {
                latest = Some(frame.at_ns);
                let head = &frame.head[..Packet::header_bytes(frame.head)];
                each(&Frame { head, ..frame })?;
            }
            Ok(())
        });
        match taken {
            Some(result) => result?,
            None => return Ok(latest),
        }
    }
}

/// The time of day, nanoseconds since 1970.
pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
