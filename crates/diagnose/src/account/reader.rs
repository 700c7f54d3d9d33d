//! Whether the receiver's program was behind, and what its thread did meanwhile.

use goodput_model::{FlowSample, Missing, Role, Sample};

use super::work::Work;
use crate::view::{Side, View};

/// Bytes that may wait for a reader that keeps up: a train of segments that was received at once (GRO).
const TRAIN_BYTES: f64 = 65_536.0;
/// Time whose arrivals may wait while the reader wakes up, seconds.
const WAKE_UP_S: f64 = 0.001;
/// Share of an interval from which a reader that waited for data was not behind.
const MAX_WAIT_SHARE: f64 = 0.25;

/// The receiver's samples, by the sender's time.
pub struct Readers<'a> {
    samples: Vec<(f64, &'a Sample)>,
    throttled_share: f64,
}

impl<'a> Readers<'a> {
    /// Of the receiver of `view`; without one, no reader is ever behind.
    pub fn of(view: &View<'a>) -> Self {
        let later_s = view.sender_began_earlier_s();
        let detailed = view.receiver.end().map(|end| end.samples.iter()).into_iter().flatten();
        let detailed = detailed.filter(|sample| !sample.flows.is_empty());
        let samples = detailed.map(|sample| (sample.at_s + later_s, sample)).collect();
        Self { samples, throttled_share: throttled_share(&view.receiver) }
    }

    /// What the thread of `flow` did in this time, seconds by the sender's clock, if it was behind.
    pub fn behind(&self, flow: u16, from_s: f64, to_s: f64) -> Option<Work> {
        let duration_us = (to_s - from_s) * 1e6;
        let (from, to) = (self.nearest(flow, from_s)?, self.nearest(flow, to_s)?);
        let seconds = to.0 - from.0;
        let work = behind([from.1, to.1], seconds, self.throttled_share)?;
        Some(work.scaled(duration_us / (seconds * 1e6)))
    }

    fn nearest(&self, flow: u16, at_s: f64) -> Option<(f64, &'a FlowSample)> {
        let near = |sample: &&(f64, &Sample)| (sample.0 - at_s).abs();
        let (time, sample) = self.samples.iter().min_by(|a, b| near(a).total_cmp(&near(b)))?;
        let mine = |f: &&FlowSample| f.flow == flow && f.role == Role::Receiver;
        Some((*time, sample.flows.iter().find(mine)?))
    }
}

/// What a reader's thread did between two samples this many seconds apart, if it was behind.
pub fn behind([from, to]: [&FlowSample; 2], seconds: f64, throttled_share: f64) -> Option<Work> {
    let moved = to.bytes.saturating_sub(from.bytes) as f64;
    if seconds <= 0.0 || !is_behind(to, moved / seconds) {
        return None;
    }
    let duration_us = seconds * 1e6;
    let work = Work::between(from, to).ok()?;
    let work = work.throttled(throttled_share * duration_us, duration_us);
    (work.blocked_us < MAX_WAIT_SHARE * duration_us).then_some(work)
}

/// Whether more waits in the socket than a reader that keeps up leaves there.
fn is_behind(sample: &FlowSample, bytes_per_s: f64) -> bool {
    let queued = sample.queued_bytes.value().copied().unwrap_or(0) as f64;
    let backlog = sample.memory.value().map_or(0, |memory| memory.backlog_bytes);
    backlog > 0 || queued >= TRAIN_BYTES.max(WAKE_UP_S * bytes_per_s)
}

/// Whether the receiver's program is behind, as far as the sender can see. Asked only if the receiver itself reports
/// nothing.
pub fn reader_is_behind(view: &View) -> bool {
    let side = &view.sender;
    let behind = side.peer_window_is_shut() || side.peer_window_falls().unwrap_or(false);
    view.receiver.blocked_share().is_err() && behind
}

/// Share of the window in which a quota kept the process from running; none if that is unknown.
pub fn throttled_share(side: &Side) -> f64 {
    let share: Result<f64, Missing> = side.throttled_share();
    share.unwrap_or(0.0).clamp(0.0, 1.0)
}
