//! How much memory the measurements take that are shown, so that clients can be charged with it.

use goodput_model::{FlowSample, Plan, Sample};
use goodput_wire::check::duration_s;

use crate::run::cadence::Cadence;

/// Samples of single flows that are kept of one measurement: 13 minutes of one flow. Of further samples only the last
/// is kept, so that no client can fill this host's memory.
const MAX_KEPT_SAMPLES: usize = 8192;

/// Samples of each flow beside those at even times: the first, the last, one at the end of a warm-up, and one more.
const UNEVEN_SAMPLES: f64 = 4.0;

/// Measurements that watchers keep after their end, until someone asks for their results: one of each direction.
const UNREAD_MEASUREMENTS: u64 = 3;

/// Samples of single flows that are kept of a measurement by this plan, at most; none if flows are not looked at.
pub fn kept_samples(plan: &Plan) -> usize {
    let Some(detail) = Cadence::of(plan).detail else { return 0 };
    let Some(duration_s) = duration_s(plan) else { return MAX_KEPT_SAMPLES };
    let each = (duration_s / detail.as_secs_f64()).ceil() + UNEVEN_SAMPLES;
    let wanted = plan.flow_plans().len() as f64 * each;
    (wanted as usize).min(MAX_KEPT_SAMPLES)
}

/// Memory that a measurement by this plan takes while it is shown, bytes: what is kept of it, including the samples that
/// are kept beyond all bounds, and one that is handed on. A vector that grows may have room for twice as many.
pub fn kept_bytes(plan: &Plan) -> u64 {
    let flows = plan.flow_plans().len() as u64;
    let samples = kept_samples(plan) as u64 + UNEVEN_SAMPLES as u64 * flows;
    samples * (size_of::<FlowSample>() + 2 * size_of::<Sample>()) as u64
}

/// Memory that watchers take for measurements that are over, bytes. No client is charged with it.
pub const UNREAD_BYTES: u64 = UNREAD_MEASUREMENTS
    * MAX_KEPT_SAMPLES as u64
    * (size_of::<FlowSample>() + 2 * size_of::<Sample>()) as u64;
