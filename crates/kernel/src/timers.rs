//! How late timers of this host are, when nothing else is late.

use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

/// How long each watched timer runs: about as long as a shaper of 50 to 500 Mbit/s waits for a frame's tokens.
pub const WATCHED_TIMER: Duration = Duration::from_micros(100);

/// How late each of many short timers was within `time`, on the CPUs that the calling thread is given. Blocks.
///
/// A thread wakes by the same timers as a queueing discipline (hrtimers, or jiffies without them), and then still has to
/// be scheduled: this is at least as late. The calling thread keeps a timer slack of 1 ns (prctl(2), `PR_SET_TIMERSLACK`).
///
/// # Errors
/// If the kernel refuses that slack. With the usual 50 µs, all timers are late on purpose.
pub fn timer_latenesses(time: Duration) -> std::io::Result<Vec<Duration>> {
    rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?;
    let until = Instant::now() + time;
    let mut late = Vec::new();
    // Once at least, however late this thread runs.
    loop {
        let before = Instant::now();
        thread::sleep(WATCHED_TIMER);
        late.push(before.elapsed().saturating_sub(WATCHED_TIMER));
        if Instant::now() >= until {
            return Ok(late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_timer_ends_after_its_time() {
        let begun = Instant::now();
        let late = timer_latenesses(Duration::from_millis(20)).unwrap();
        let all: Duration = late.iter().sum();
        assert!(!late.is_empty(), "{late:?}");
        assert!(all + WATCHED_TIMER * late.len() as u32 <= begun.elapsed(), "{all:?}");
    }
}
