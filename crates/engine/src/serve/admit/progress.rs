//! Whether a measurement's payload moves: one that hardly moves occupies its place for nothing.

use std::time::Duration;

use goodput_model::{BitRate, Plan};
use tokio::time::Instant;

/// Time over which progress counts: longer than any outage that a connection survives silently, such as a route change
/// (three retransmissions with back-off from one second take 15 s, RFC 6298).
const PROGRESS_WINDOW: Duration = Duration::from_secs(30);

/// What has moved, and since when.
#[derive(Debug)]
pub struct MinProgress {
    /// Bytes that must move within the window.
    least_bytes: u64,
    moved: u64,
    moved_before: u64,
    until: Instant,
}

impl MinProgress {
    /// Starts now and demands at least `least` on average; half of the plan's own rate, if that is less. `None` if
    /// nothing is demanded.
    pub fn from_now(least: BitRate, plan: &Plan) -> Option<Self> {
        // Flushing to disk at the end takes time, and no payload moves then.
        let waits_for_disk = plan.storage.sink.as_ref().is_some_and(|sink| sink.fsync);
        let own = plan.rate_bits_per_s.map_or(f64::INFINITY, |rate| rate.0 / 2.0);
        let least = BitRate(least.0.min(own));
        let least_bytes = least.bytes_in(PROGRESS_WINDOW.as_secs_f64()) as u64;
        (least_bytes > 0 && !waits_for_disk).then(|| Self {
            least_bytes,
            moved: 0,
            moved_before: 0,
            until: Instant::now() + PROGRESS_WINDOW,
        })
    }

    /// What has moved since the beginning.
    pub fn sampled(&mut self, sent_bytes: u64, received_bytes: u64) {
        self.moved = sent_bytes.saturating_add(received_bytes);
    }

    /// Ends, with the reason, once too little has moved for a whole window. May be dropped and called again.
    pub async fn lacking(&mut self) -> String {
        loop {
            tokio::time::sleep_until(self.until).await;
            let moved = self.moved.saturating_sub(self.moved_before);
            if moved < self.least_bytes {
                let (s, least) = (PROGRESS_WINDOW.as_secs(), self.least_bytes);
                return format!(
                    "only {moved} bytes of payload moved in {s} s; this server ends measurements that move fewer than {least} (--min-progress)"
                );
            }
            self.moved_before = self.moved;
            self.until = Instant::now() + PROGRESS_WINDOW;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it ends before this many windows have passed, each of which moved these bytes.
    async fn ends(plan: &Plan, each: u64, windows: u32) -> bool {
        let Some(mut progress) = MinProgress::from_now(BitRate(1000.0), plan) else { return false };
        for window in 1..=windows {
            progress.sampled(0, each * u64::from(window));
            let wait = tokio::time::timeout(PROGRESS_WINDOW, progress.lacking());
            if wait.await.is_ok() {
                return true;
            }
        }
        false
    }

    #[tokio::test(start_paused = true)]
    async fn what_hardly_moves_is_ended_and_what_moves_is_not() {
        let plan = Plan::standard();
        assert!(ends(&plan, 1, 3).await, "one byte in 30 s");
        assert!(ends(&plan, 0, 3).await);
        assert!(!ends(&plan, 5000, 10).await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asked_for_little_need_not_move_more() {
        let plan = Plan { rate_bits_per_s: Some(BitRate(100.0)), ..Plan::standard() };
        assert!(!ends(&plan, 375, 10).await, "its own rate");
        assert!(ends(&plan, 100, 3).await, "less than half of that");
    }

    #[test]
    fn nothing_is_asked_where_the_disk_is_waited_for_or_no_rate_is_set() {
        let mut plan = Plan::standard();
        assert!(MinProgress::from_now(BitRate(0.0), &plan).is_none());
        let name = "x".into();
        plan.storage.sink = Some(goodput_model::Sink { name, direct: false, fsync: true });
        assert!(MinProgress::from_now(BitRate(1000.0), &plan).is_none());
    }
}
