//! The queue and the policer behind a bucket, as TCP meets them.

use goodput_ceiling::bucket::queue_bytes;
use goodput_model::{Bytes, FlowSharing, QueueDiscipline, Seconds, ShapingKind, ShapingQueue};

use super::bucket::{largest_frame, wanted_by_tcp};
use super::downstream::is_policed;
use super::local::is_set_otherwise;
use super::{Answer, Seen, say};

/// Shortest wait that a person notices, seconds: a third of the 150 ms that ITU-T G.114 allows one way for a whole call.
const NOTICED_S: f64 = 0.05;

/// The limit of the local shaper that would do for its rate, or for the one that was asked about, bytes: a round trip of the rate,
/// and 10 ms more or a super-packet, at least two super-packets.
pub(super) fn enough(seen: &Seen) -> Option<f64> {
    let rtt_s = seen.sender.min_rtt_s.clone().ok()?;
    let shaper = seen.shaper()?;
    let set = Some(shaper.rate_bits_per_s).filter(|_| !is_set_otherwise(seen.test, shaper));
    let rate = set.unwrap_or(seen.test.configured_bits_per_s).0;
    // The rate that came may be a little more.
    let given = seen.given().filter(|_| set.is_some()).map_or(rate, |given| given.value.max(rate));
    let wanted = wanted_by_tcp(seen.sender, seen.largest_frame()?, given, rtt_s);
    Some(queue_bytes(rate, rtt_s).max(wanted).ceil())
}

/// [`wanted_by_tcp`] for a shaper or a policer anywhere.
fn wanted(seen: &Seen, rate: f64, rtt_s: f64) -> Option<f64> {
    let own = seen.train()?.frame_bytes.0 as f64;
    let frame = seen.largest_frame().unwrap_or_else(|| largest_frame(seen.sender, None, own));
    Some(wanted_by_tcp(seen.sender, frame, rate, rtt_s))
}

/// A queue that is shorter than what TCP has in flight.
pub(super) fn too_short(seen: &Seen) -> Answer {
    let rtt_s = seen.sender.min_rtt_s.clone().ok()?;
    let rate = seen.given()?.value;
    let (holds, whose) = held_at_most(seen)?;
    let wanted = wanted(seen, rate, rtt_s)?;
    (seen.tcp_lags() && holds < wanted).then(|| {
        say(
            "short-queue",
            format!(
                "{whose} holds {}, {} of the rate; TCP needs about {}: what is in flight in {}, and a burst",
                Bytes(holds as u64),
                Seconds(holds * 8.0 / rate),
                Bytes(wanted as u64),
                Seconds(rtt_s)
            ),
        )
    })
}

/// What the queue holds: the local shaper's limit, or what was seen of a full one.
fn held_at_most(seen: &Seen) -> Option<(f64, &'static str)> {
    let filled = seen.train()?.queue.value();
    let filled =
        filled.filter(|queue| queue.discipline.value() == Some(&QueueDiscipline::DropTail));
    match (limit(seen), filled) {
        (Some(limit), _) => Some((limit, "the shaper's queue")),
        // Another discipline inside a token bucket has a limit of its own.
        (None, Some(queue)) if seen.shaper().is_some() => {
            Some((queue.bytes.0 as f64, "the shaper's queue"))
        }
        (None, Some(queue)) => Some((queue.bytes.0 as f64, "the queue on the way")),
        (None, None) => None,
    }
}

/// A queue in which everything waits for long, or would if a transfer filled it. One that is no longer than TCP needs is right.
pub(super) fn too_long(seen: &Seen) -> Answer {
    let queue = seen.train()?.queue.value()?;
    if seen.shaper().is_some_and(|shaper| shaper.kind == "cake") || may_be_managed(queue) {
        return None;
    }
    let waits_long = queue.longest_wait_s >= NOTICED_S;
    let waits = Seconds(queue.longest_wait_s);
    let text = match limit(seen).zip(seen.shaper().map(|shaper| shaper.rate_bits_per_s.0)) {
        None if waits_long => {
            of_queue(&format!("the shaper's queue lets packets wait for {waits}"), None)
        }
        Some((limit, rate)) => match Seconds(limit * 8.0 / rate) {
            lasts if lasts.0 >= NOTICED_S => {
                let enough = enough(seen);
                if enough.is_some_and(|enough| limit <= enough) {
                    return None;
                }
                let holds = Bytes(limit as u64);
                let words = format!("the shaper's queue holds {holds}, {lasts} of its rate");
                of_queue(&words, enough)
            }
            lasts if waits_long => format!(
                "packets wait for {waits}, and the shaper's queue lasts only {lasts}: another queue on the way holds them"
            ),
            _ => return None,
        },
        None => return None,
    };
    Some(say("long-queue", text))
}

/// What a long queue of a shaper means, in words. `enough`: a limit that would do, bytes.
fn of_queue(words: &str, enough: Option<f64>) -> String {
    let limit = match enough {
        Some(bytes) => format!("a limit of {}", Bytes(bytes as u64)),
        None => "a shorter limit".to_owned(),
    };
    format!(
        "{words}; while one transfer fills the queue, all traffic waits as long: {limit}, or fq_codel below the shaper, \
         keeps this wait short"
    )
}

/// The limit of the local shaper, bytes.
fn limit(seen: &Seen) -> Option<f64> {
    seen.shaper()?.limit_bytes.value().map(|limit| limit.0 as f64)
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
    let wanted = wanted(seen, rate, rtt_s)?;
    (is_policed(seen) && seen.tcp_lags() && bucket < wanted).then(|| {
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

/// A policer that counts packets: what passes it as one super-packet counts as one.
pub(super) fn counts_packets(seen: &Seen) -> Answer {
    /// A super-packet has at least two segments.
    const LEAST_SEGMENTS: f64 = 2.0;
    let (given, tcp) = (seen.test.datagrams_bits_per_s.value()?, seen.test.tcp_bits_per_s.value()?);
    let is_policed = seen.train()?.kind == ShapingKind::Policer;
    (is_policed && tcp.low > LEAST_SEGMENTS * given.high).then(|| {
        say(
            "counts-packets",
            format!(
                "TCP gets {:.0} times as much as datagrams: the policer counts packets, and a super-packet of segmentation \
                 offload passes it as one",
                tcp.value / given.value
            ),
        )
    })
}
