//! The queue and the policer behind a bucket, as TCP meets them.

use goodput_ceiling::bucket::SUPER_PACKET_BYTES;
use goodput_model::{Bytes, FlowSharing, QueueDiscipline, Seconds, ShapingKind, ShapingQueue};

use super::{Answer, Seen, say};

/// Shortest wait that a person notices, seconds: a third of the 150 ms that ITU-T G.114 allows one way for a whole call.
const NOTICED_S: f64 = 0.05;

/// A queue that is shorter than what TCP has in flight.
pub(super) fn too_short(seen: &Seen) -> Answer {
    let rtt_s = seen.sender.min_rtt_s.clone().ok()?;
    let rate = seen.given()?.value;
    let (holds, whose) = queue_bytes(seen)?;
    let wanted = rate / 8.0 * rtt_s + SUPER_PACKET_BYTES;
    (seen.tcp_lags() && holds < wanted).then(|| {
        say(
            "short-queue",
            format!(
                "{whose} holds {}, {} of the rate; TCP needs about {}: what is in flight in {}, and a super-packet",
                Bytes(holds as u64),
                Seconds(holds * 8.0 / rate),
                Bytes(wanted as u64),
                Seconds(rtt_s)
            ),
        )
    })
}

/// What the queue holds: the local shaper's limit, or what was seen of a full one.
fn queue_bytes(seen: &Seen) -> Option<(f64, &'static str)> {
    let limit = seen.shaper().and_then(|shaper| shaper.limit_bytes.value());
    let filled = seen.train()?.queue.value();
    let filled =
        filled.filter(|queue| queue.discipline.value() == Some(&QueueDiscipline::DropTail));
    match (limit, filled) {
        (Some(limit), _) => Some((limit.0 as f64, "the shaper's queue")),
        (None, Some(queue)) => Some((queue.bytes.0 as f64, "the queue on the way")),
        (None, None) => None,
    }
}

/// A queue in which everything waits for long.
pub(super) fn too_long(seen: &Seen) -> Answer {
    let queue = seen.train()?.queue.value()?;
    let is_cake = seen.shaper().is_some_and(|shaper| shaper.kind == "cake");
    (queue.longest_wait_s >= NOTICED_S && !is_cake && !may_be_managed(queue)).then(|| {
        say(
            "long-queue",
            format!(
                "the shaper's queue lets packets wait for {}; while one transfer fills the queue, all traffic waits as \
                 long: a shorter limit, or fq_codel below the shaper, keeps this wait short",
                Seconds(queue.longest_wait_s)
            ),
        )
    })
}

/// Whether a queue keeps waits short, or may do so: fq_codel and cake drop their oldest if a train fills them faster than
/// their management drops. In a fair queue nobody waits for a transfer of others.
fn may_be_managed(queue: &ShapingQueue) -> bool {
    use QueueDiscipline::{ActiveManagement, DropHead};
    matches!(queue.discipline.value(), Some(ActiveManagement | DropHead))
        || queue.between_flows.value() == Some(&FlowSharing::FairQueue)
}

/// A policer whose bucket is smaller than what TCP sends at once.
pub(super) fn policed_tcp(seen: &Seen) -> Answer {
    let train = seen.train()?;
    let (rate, bucket) = (seen.given()?.value, train.bucket_bytes.value()?.value);
    let rtt_s = seen.sender.min_rtt_s.clone().ok()?;
    let wanted = rate / 8.0 * rtt_s + SUPER_PACKET_BYTES;
    (train.kind == ShapingKind::Policer && seen.tcp_lags() && bucket < wanted).then(|| {
        say(
            "policed-bursts",
            format!(
                "TCP sends bursts, and the policer drops what exceeds its bucket of {}: TCP needs about {}, or a shaper \
                 before the policer",
                Bytes(bucket as u64),
                Bytes(wanted as u64)
            ),
        )
    })
}
