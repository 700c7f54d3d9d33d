//! The end of a measurement: waits until both ends have reported, as far as they do, and not for ever.

use std::time::{Duration, Instant};

use goodput_model::{EndName, Plan, Role, Sample};

use super::both_ends::BothEnds;
use crate::error::EngineError;
use crate::events::Listener;
use crate::interrupt::Interrupt;

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

/// Waits until this end's flows have ended, and until the far end has reported or there is no more reason to wait
/// for its report.
pub async fn await_reports(
    ends: &mut BothEnds<'_>,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) {
    let was_raised = interrupt.is_raised();
    let mut timeout = timeout_of(ends, was_raised);
    let mut was_forsaken = false;
    while !ends.run.has_ended() || ends.awaits_report() {
        let newest_s = ends.kept.far().last().map_or(0.0, |last| last.at_s);
        timeout.hear(Instant::now(), ends.client.conversation.heard_bytes(), newest_s);
        let waits = ends.run.has_ended() && ends.awaits_report();
        let at = timeout.ends();
        tokio::select! {
            seen = ends.run.next(), if !ends.run.has_ended() => {
                if let Err(why) = ends.seen(seen, listener) {
                    ends.cut_short(why).await;
                }
                timeout = timeout_of(ends, was_raised);
            }
            action = ends.client.next(), if ends.hears => {
                if let Err(why) = action.and_then(|action| ends.acted(action, listener)) {
                    match ends.own_reason(&why, interrupt, listener).await {
                        Some(own) => ends.cut_short(own).await,
                        None => ends.lose_report(&without_target(&why)),
                    }
                }
            }
            () = tokio::time::sleep_until(at.into()), if waits => {
                if timeout.ends() <= Instant::now() {
                    let waited_s = timeout.waited_s(Instant::now());
                    ends.lose_report(&format!("no report within {waited_s:.0} s of the end"));
                }
            }
            () = interrupt.raised(), if waits && !was_raised => {
                let how = interrupt.in_words();
                ends.lose_report(&format!("{how} while this end waited for its report"));
            }
            () = interrupt.raised(), if !ends.run.has_ended() && !was_forsaken => {
                ends.run.forsake_far_end();
                was_forsaken = true;
            }
        }
    }
}

fn timeout_of(ends: &BothEnds<'_>, hurried: bool) -> ReportTimeout {
    match hurried {
        true => ReportTimeout::hurried(Instant::now()),
        false => ReportTimeout::new(Instant::now(), ends.run.plan(), ends.kept.near()),
    }
}

/// An error of the conversation, for a sentence that already names the target.
fn without_target(error: &EngineError) -> String {
    match error {
        EngineError::Wire { failure, .. } => failure.to_string(),
        EngineError::Refused { why, .. } => format!("refused: {why}"),
        other => other.to_string(),
    }
}

/// When the wait for the far end's report ends: as late as there is a reason to wait.
struct ReportTimeout {
    since: Instant,
    still: Duration,
    /// How long progress may put off the end.
    most: Duration,
    progress: Instant,
    heard_bytes: u64,
    newest_s: f64,
}

impl ReportTimeout {
    /// Starts at `now`, when this end's flows have ended; `near` are its samples.
    fn new(now: Instant, plan: &Plan, near: &[Sample]) -> Self {
        Self::of(now, MAX_STANDSTILL + queues(plan, near), MAX_PROGRESS_TIME)
    }

    /// The same if the user waits for the end. Queues get no time, because a dead path never empties them.
    fn hurried(now: Instant) -> Self {
        Self::of(now, HURRIED_STANDSTILL, HURRIED_PROGRESS_TIME)
    }

    fn of(now: Instant, still: Duration, most: Duration) -> Self {
        Self { since: now, still, most, progress: now, heard_bytes: 0, newest_s: 0.0 }
    }

    /// Records what was received so far: bytes of all messages, and the time of the newest sample.
    fn hear(&mut self, now: Instant, heard_bytes: u64, newest_s: f64) {
        if newest_s > self.newest_s || heard_bytes >= self.heard_bytes + PROGRESS_BYTES {
            (self.progress, self.heard_bytes) = (now, heard_bytes);
            self.newest_s = self.newest_s.max(newest_s);
        }
    }

    /// When the wait ends, unless something comes before.
    fn ends(&self) -> Instant {
        (self.progress + self.still).min(self.since + self.still + self.most)
    }

    /// Seconds since the wait began.
    fn waited_s(&self, now: Instant) -> f64 {
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
        let ends = |samples: &[Sample]| ReportTimeout::new(now, &plan, samples).ends() - now;
        assert_eq!(ends(&[]), MAX_STANDSTILL);
        assert_eq!(ends(&[sent(10.0, 1_000_000, 500_000)]), MAX_STANDSTILL + 5 * SECOND);
        assert_eq!(ends(&[sent(10.0, 1, u64::MAX)]), MAX_STANDSTILL + MAX_QUEUE_TIME);
    }

    #[test]
    fn who_interrupts_waits_for_a_live_far_end_and_not_for_a_dead_one() {
        let now = Instant::now();
        let mut timeout = ReportTimeout::hurried(now);
        assert_eq!(timeout.ends(), now + HURRIED_STANDSTILL, "whatever is queued");
        timeout.hear(now + 2 * SECOND, 5000, 0.0);
        assert_eq!(timeout.ends(), now + 2 * SECOND + HURRIED_STANDSTILL);
        for tick in 3..100u32 {
            timeout.hear(now + tick * SECOND, 5000, f64::from(tick));
        }
        assert_eq!(timeout.ends(), now + HURRIED_STANDSTILL + HURRIED_PROGRESS_TIME);
    }

    #[test]
    fn a_sink_has_time_to_bring_what_it_got_to_its_disk() {
        let mut plan = Plan::standard();
        let name = String::from("file");
        plan.storage.sink = Some(goodput_model::Sink { name, direct: false, fsync: true });
        let timeout = ReportTimeout::new(Instant::now(), &plan, &[sent(10.0, 4_000_000_000, 0)]);
        assert_eq!(timeout.still, MAX_STANDSTILL + 400 * SECOND);
    }

    #[test]
    fn progress_puts_the_end_off_and_signs_of_life_alone_do_not() {
        let (now, plan) = (Instant::now(), Plan::standard());
        let mut timeout = ReportTimeout::new(now, &plan, &[]);
        for tick in 1..=14 {
            timeout.hear(now + tick * SECOND, u64::from(tick) * 20, 0.0);
        }
        assert_eq!(timeout.ends(), now + MAX_STANDSTILL, "pings");
        timeout.hear(now + 14 * SECOND, 5000, 0.0);
        assert_eq!(timeout.ends(), now + 14 * SECOND + MAX_STANDSTILL, "a part of a report");
        timeout.hear(now + 20 * SECOND, 5100, 3.5);
        assert_eq!(timeout.ends(), now + 20 * SECOND + MAX_STANDSTILL, "a newer sample");
        timeout.hear(now + 30 * SECOND, 5200, 3.5);
        assert_eq!(timeout.ends(), now + 20 * SECOND + MAX_STANDSTILL, "the same sample again");
        for tick in 31..1000u32 {
            timeout.hear(now + tick * SECOND, 5200, f64::from(tick));
        }
        assert_eq!(timeout.ends(), now + MAX_STANDSTILL + MAX_PROGRESS_TIME, "not for ever");
    }
}
