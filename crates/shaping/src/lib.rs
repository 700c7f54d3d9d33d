//! What holds the rate of a path: a shaper, a policer or nothing, how fast it is and how deep its bucket.
//!
//! The evidence is a train of numbered datagrams, sent after a pause faster than the rate, with the times at which
//! each was sent and came. Pure: [`shaping`] reads a [`Train`] and nothing else.
//!
//! The model is a token bucket: it holds at most `b` bytes, gains `r` bytes a second, and lets a frame of `L` bytes
//! pass if it holds as much. A shaper lets the others wait, a policer drops them. At some arrivals the bucket is
//! known to be empty (see `empty.rs`); everything is estimated from these.
#![forbid(unsafe_code)]
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod behind;
mod brief;
mod burst;
mod busy;
mod captured;
mod changed;
mod classes;
mod codel;
mod configured;
mod counted;
mod curve;
mod depth;
mod discipline;
mod empty;
mod explain;
mod fair;
mod gaps;
mod held;
mod judge;
mod kind;
mod levels;
mod others;
mod outage;
mod part;
mod policed;
mod proof;
mod questions;
mod rate;
mod rough;
#[cfg(test)]
mod simulated;
mod since;
mod stall;
mod trace;
mod waiting;
mod windows;

use goodput_model::{BitRate, Bytes, Estimate, Known, Missing, Shaping, ShapingKind};

pub use behind::{Behind, behind};
pub use captured::captured;
pub use classes::{ClassAsked, ClassSeen, TrainPart, classes, overlapping};
pub use configured::Configured;
pub use counted::{Counts, TcpRate};
pub use explain::{Sender, TcpLimit, Timers, Watched, counts, explain, held_first, other_traffic};
pub use fair::{has_queue_to_share, sharing};
pub use judge::{judge, judge_tcp};
pub use others::{Around, Counted, OtherTraffic, Others};
pub use proof::proof;
pub use questions::{Chosen, Question, Questions, chosen, questions};
pub use since::since;
pub use trace::{Sizes, Train};

use gaps::Passed;
use part::Part;
use trace::{Came, Trace};

/// What a train shows.
///
/// # Errors
/// If fewer than [`Train::MIN_ARRIVALS`] datagrams came, or all came or were sent at one time.
pub fn shaping(train: &Train) -> Result<Shaping, Missing> {
    let whole = Trace::of(train)?;
    let held_by = |trace: &Trace| {
        let rough = rough::line(trace);
        (rough, kind::kind(trace, &rough, &train.rate_waits_per_call))
    };
    let hides_policer =
        |part: &Part| held_by(&part.trace).1 == ShapingKind::None && part.leaves_out_drops(&whole);
    let part = part::longest(&whole).filter(|part| !hides_policer(part));
    let trace = part.as_ref().map_or(&whole, |part| &part.trace);
    let (rough, kind) = held_by(trace);
    let empty = empty::arrivals(trace, kind, &rough);
    let rate = rate::rate(trace, kind, &empty, &rough);
    let bucket = match &rate {
        Ok(rate) => depth::depth(trace, kind, &empty, &rough, rate),
        Err(why) => Err(why.clone()),
    };
    let bucket = match (&part, &rate) {
        (Some(part), Ok(rate)) => bucket.and_then(|depth| part.bucket(depth, rate.mean.value)),
        _ => bucket,
    };
    // Datagrams that leave together come together, through any bucket that is as large.
    let together = (train.batch - 1.0).max(0.0) * trace.frame;
    // A bucket holds no less than nothing: of an estimate below that, only the bound is known.
    let bucket = bucket.map(|depth| Estimate {
        value: depth.value.max(0.0),
        low: (depth.low - together).max(0.0),
        high: (depth.high + together).max(0.0),
    });
    let long_term = rate.as_ref().map_or(rough.rate, |rate| rate.mean.value);
    let outages = outage::outages(&whole, train, long_term, bucket.as_ref().ok());
    let held = empty.span(trace);
    let passed = |came: &Came| Passed { at_s: came.came_s, bytes: trace.frame };
    // A hole is a pause that came, too.
    let all = if part.is_some() { &whole.came } else { held };
    let passed: Vec<Passed> = all.iter().map(passed).collect();
    let bits = |bytes_per_s: f64| BitRate(bytes_per_s * 8.0);
    Ok(Shaping {
        kind,
        payload_bytes: Bytes(train.sizes.payload),
        packet_bytes: Bytes(train.sizes.packet),
        frame_bytes: Bytes(train.sizes.frame),
        sent: train.sent,
        lost: train.sent.saturating_sub(whole.came.len() as u64),
        refused: train.refused,
        joined: train.joined.filter(|joined| *joined > 1.0),
        stalled_s: match &part {
            Some(part) => part.stalled_s,
            None => stall::longest(&whole),
        },
        outage_s: outages.map(|all| all.seconds),
        outages: outages.map_or(0, |all| all.count),
        offered_bits_per_s: bits(whole.offered_bytes_per_s()),
        held_percent: train.held_percent.clone(),
        rate_waits_per_call: train.rate_waits_per_call.clone(),
        queue: Known::from(match (&rate, kind) {
            (Ok(rate), ShapingKind::Shaper) => {
                waiting::queue(trace, &empty, &rough, rate.mean.value)
            }
            (Ok(_), _) => Err(Missing::because("nothing waited")),
            (Err(why), _) => Err(why.clone()),
        }),
        windows: windows::rates(held, trace.frame),
        gaps: gaps::gaps(&passed),
        curve: curve::curve(&whole),
        rate_bits_per_s: rate.map(|rate| rate.mean.scaled(8.0)).into(),
        bucket_bytes: bucket.into(),
    })
}
