//! How long the near end waits for the far end's report.

use std::time::{Duration, Instant};

use goodput_model::{EndName, Plan, Role, Sample};

/// How long the far end may make no progress, not counting the time that its queues take.
const MAX_STANDSTILL: Duration = Duration::from_secs(15);

/// How long progress may put off the end in total, so that a hostile far end, or a path that carries next to nothing,
/// does not hold this end for ever.
const MAX_PROGRESS_TIME: Duration = Duration::from_secs(300);

/// Both limits if the user has interrupted the measurement: the far end has been asked to finish soon, which takes it a
/// second (`SHORT_DRAIN_TIME`), and an answer may wait behind a full queue.
const HURRIED_STANDSTILL: Duration = Duration::from_secs(3);
const HURRIED_PROGRESS_TIME: Duration = Duration::from_secs(3);

/// Bytes of control messages that count as progress. Signs of life alone are fewer bytes within [`MAX_STANDSTILL`].
const PROGRESS_BYTES: u64 = 512;

/// Write rate of a slow disk, bytes per second, for a sink whose flush belongs to the measurement.
const DISK_BYTES_PER_S: f64 = 10e6;

/// Longest time for queues: beyond it nobody waits at a terminal.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(1200);

/// Waits as long as there is a reason to.
pub struct Patience {
    since: Instant,
    still: Duration,
    /// How long progress may put off the end.
    most: Duration,
    progress: Instant,
    heard_bytes: u64,
    newest_s: f64,
}

impl Patience {
    /// Starts at `now`, when this end's flows have ended; `near` are its samples.
    pub fn new(now: Instant, plan: &Plan, near: &[Sample]) -> Self {
        Self::of(now, MAX_STANDSTILL + queues(plan, near), MAX_PROGRESS_TIME)
    }

    /// The same if the user waits for the end. Queues get no time, because a dead path never empties them.
    pub fn hurried(now: Instant) -> Self {
        Self::of(now, HURRIED_STANDSTILL, HURRIED_PROGRESS_TIME)
    }

    fn of(now: Instant, still: Duration, most: Duration) -> Self {
        Self { since: now, still, most, progress: now, heard_bytes: 0, newest_s: 0.0 }
    }

    /// Records what was received so far: bytes of all messages, and the time of the newest sample.
    pub fn hear(&mut self, now: Instant, heard_bytes: u64, newest_s: f64) {
        if newest_s > self.newest_s || heard_bytes >= self.heard_bytes + PROGRESS_BYTES {
            (self.progress, self.heard_bytes) = (now, heard_bytes);
            self.newest_s = self.newest_s.max(newest_s);
        }
    }

    /// When the wait ends, unless something comes before.
    pub fn ends(&self) -> Instant {
        (self.progress + self.still).min(self.since + self.still + self.most)
    }

    /// Seconds since the wait began.
    pub fn waited_s(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.since).as_secs_f64()
    }
}

/// Estimates how long the queue between the sender and the far end's disk takes to drain: the bytes in this end's
/// sockets at the rate so far, and the bytes that a sink writes at the rate of a slow disk.
fn queues(plan: &Plan, near: &[Sample]) -> Duration {
    let Some(last) = near.last() else { return Duration::ZERO };
    let detailed = near.iter().rev().find(|sample| !sample.flows.is_empty());
    let sending = detailed.iter().flat_map(|sample| &sample.flows);
    let sending = sending.filter(|flow| flow.role == Role::Sender);
    let queued: u64 = sending.filter_map(|flow| flow.queued_bytes.value()).sum();
    let drain_s = match last.sent_bytes as f64 / last.at_s {
        rate if rate > 0.0 => queued as f64 / rate,
        _ => 0.0,
    };
    let far_writes = plan.direction.senders().contains(&EndName::Near)
        && plan.storage.sink.as_ref().is_some_and(|sink| sink.fsync);
    let flush_s = if far_writes { last.sent_bytes as f64 / DISK_BYTES_PER_S } else { 0.0 };
    Duration::try_from_secs_f64(drain_s + flush_s).unwrap_or(MAX_QUEUE_TIME).min(MAX_QUEUE_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{FlowSample, Known};

    const SECOND: Duration = Duration::from_secs(1);

    fn sent(at_s: f64, sent_bytes: u64, queued_bytes: u64) -> Sample {
        let queued_bytes = Known::Value(queued_bytes);
        let flow = FlowSample {
            queued_bytes,
            ..FlowSample::unreported(0, Role::Sender, sent_bytes, "not looked at")
        };
        Sample { at_s, sent_bytes, received_bytes: 0, flows: vec![flow] }
    }

    #[test]
    fn the_wait_grows_with_what_is_queued() {
        let (now, plan) = (Instant::now(), Plan::standard());
        let ends = |samples: &[Sample]| Patience::new(now, &plan, samples).ends() - now;
        assert_eq!(ends(&[]), MAX_STANDSTILL);
        assert_eq!(ends(&[sent(10.0, 1_000_000, 500_000)]), MAX_STANDSTILL + 5 * SECOND);
        assert_eq!(ends(&[sent(10.0, 1, u64::MAX)]), MAX_STANDSTILL + MAX_QUEUE_TIME);
    }

    #[test]
    fn who_interrupts_waits_for_a_live_far_end_and_not_for_a_dead_one() {
        let now = Instant::now();
        let mut patience = Patience::hurried(now);
        assert_eq!(patience.ends(), now + HURRIED_STANDSTILL, "whatever is queued");
        patience.hear(now + 2 * SECOND, 5000, 0.0);
        assert_eq!(patience.ends(), now + 2 * SECOND + HURRIED_STANDSTILL);
        for tick in 3..100u32 {
            patience.hear(now + tick * SECOND, 5000, f64::from(tick));
        }
        assert_eq!(patience.ends(), now + HURRIED_STANDSTILL + HURRIED_PROGRESS_TIME);
    }

    #[test]
    fn a_sink_has_time_to_bring_what_it_got_to_its_disk() {
        let mut plan = Plan::standard();
        let name = String::from("file");
        plan.storage.sink = Some(goodput_model::Sink { name, direct: false, fsync: true });
        let patience = Patience::new(Instant::now(), &plan, &[sent(10.0, 4_000_000_000, 0)]);
        assert_eq!(patience.still, MAX_STANDSTILL + 400 * SECOND);
    }

    #[test]
    fn progress_puts_the_end_off_and_signs_of_life_alone_do_not() {
        let (now, plan) = (Instant::now(), Plan::standard());
        let mut patience = Patience::new(now, &plan, &[]);
        for tick in 1..=14 {
            patience.hear(now + tick * SECOND, u64::from(tick) * 20, 0.0);
        }
        assert_eq!(patience.ends(), now + MAX_STANDSTILL, "pings");
        patience.hear(now + 14 * SECOND, 5000, 0.0);
        assert_eq!(patience.ends(), now + 14 * SECOND + MAX_STANDSTILL, "a part of a report");
        patience.hear(now + 20 * SECOND, 5100, 3.5);
        assert_eq!(patience.ends(), now + 20 * SECOND + MAX_STANDSTILL, "a newer sample");
        patience.hear(now + 30 * SECOND, 5200, 3.5);
        assert_eq!(patience.ends(), now + 20 * SECOND + MAX_STANDSTILL, "the same sample again");
        for tick in 31..1000u32 {
            patience.hear(now + tick * SECOND, 5200, f64::from(tick));
        }
        assert_eq!(patience.ends(), now + MAX_STANDSTILL + MAX_PROGRESS_TIME, "not for ever");
    }
}
