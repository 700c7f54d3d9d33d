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
        let moved = to.1.bytes.saturating_sub(from.1.bytes) as f64;
        if seconds <= 0.0 || !is_behind(to.1, moved / seconds) {
            return None;
        }
        let scale = duration_us / (seconds * 1e6);
        let work = Work::between(from.1, to.1).ok()?.scaled(scale);
        let work = work.throttled(self.throttled_share * duration_us, duration_us);
        (work.blocked_us < MAX_WAIT_SHARE * duration_us).then_some(work)
    }

    fn nearest(&self, flow: u16, at_s: f64) -> Option<(f64, &'a FlowSample)> {
        let near = |sample: &&(f64, &Sample)| (sample.0 - at_s).abs();
        let (time, sample) = self.samples.iter().min_by(|a, b| near(a).total_cmp(&near(b)))?;
        let mine = |f: &&FlowSample| f.flow == flow && f.role == Role::Receiver;
        Some((*time, sample.flows.iter().find(mine)?))
    }
}

/// Whether more waits in the socket than a reader that keeps up leaves there.
fn is_behind(sample: &FlowSample, bytes_per_s: f64) -> bool {
    let queued = sample.queued_bytes.value().copied().unwrap_or(0) as f64;
    let backlog = sample.memory.value().map_or(0, |memory| memory.backlog_bytes);
    backlog > 0 || queued >= TRAIN_BYTES.max(WAKE_UP_S * bytes_per_s)
}

/// Share of the window in which a quota kept the process from running; none if that is unknown.
pub fn throttled_share(side: &Side) -> f64 {
    let share: Result<f64, Missing> = side.throttled_share();
    share.unwrap_or(0.0).clamp(0.0, 1.0)
}
