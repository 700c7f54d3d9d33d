//! How late timers of this host are, when nothing else is late.

use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

/// How late each of many timers was that ran for `timer`, one after the other, on the CPUs that the calling thread is given.
/// Blocks for `time`, or as long as one takes.
///
/// A thread wakes by the same timers as a queueing discipline (hrtimers, or jiffies without them), and then still has to
/// be scheduled: this is at least as late. The calling thread keeps a timer slack of 1 ns (prctl(2), `PR_SET_TIMERSLACK`).
///
/// # Errors
/// If the kernel refuses that slack. With the usual 50 µs, all timers are late on purpose.
pub fn timer_latenesses(timer: Duration, time: Duration) -> std::io::Result<Vec<Duration>> {
    rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?;
    let until = Instant::now() + time;
    let mut late = Vec::new();
    // Once at least, however late this thread runs.
    loop {
        let before = Instant::now();
        thread::sleep(timer);
        late.push(before.elapsed().saturating_sub(timer));
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
        let timer = Duration::from_micros(50);
        let late = timer_latenesses(timer, Duration::from_millis(20)).unwrap();
        let all: Duration = late.iter().sum();
        assert!(!late.is_empty(), "{late:?}");
        assert!(all + timer * late.len() as u32 <= begun.elapsed(), "{all:?}");
    }
}
