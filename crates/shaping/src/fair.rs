//! Whether a second flow waits behind the first.
//!
//! If both share a queue, a datagram of a sparse flow leaves after all of a train that is queued when it comes. In a fair
//! queue it has the next turn. Both come by one path between the same clocks, so their waits count from the same quickest
//! datagram.

use goodput_model::{Arrival, FlowSharing, Missing, ShapingQueue, median};

use crate::trace::Train;

/// Smallest number of the train's frames that wait in front of a datagram which counts: a fair queue may let it wait for
/// one on the wire, and one of the train's turn.
const MIN_FRAMES_IN_FRONT: f64 = 8.0;
/// Largest share of what is queued that a datagram waits for in a fair queue.
const MAX_FAIR: f64 = 0.35;
/// Smallest share in one queue.
const MIN_SHARED: f64 = 0.75;
/// Smallest number of datagrams that count.
const MIN_SPARSE: usize = 5;

/// Whether a queue is long enough for the question; `rate` in bits per second of frames, `frame` in bytes.
#[must_use]
pub fn has_queue_to_share(queue: &ShapingQueue, rate: f64, frame: f64) -> bool {
    queue.longest_wait_s >= least_wait_s(rate, frame)
}

fn least_wait_s(rate: f64, frame: f64) -> f64 {
    MIN_FRAMES_IN_FRONT * frame * 8.0 / rate
}

/// How a train and a sparse flow beside it share the queue of a shaper of this rate, bits per second of frames.
///
/// # Errors
/// If too few of the sparse flow came while a queue stood, or their waits are between the two.
pub fn sharing(train: &Train, sparse: &Train, rate: f64) -> Result<FlowSharing, Missing> {
    let both = train.arrivals.iter().chain(&sparse.arrivals);
    let quickest = both.map(way_ns).min().unwrap_or_default();
    let wait_s = |arrival: &Arrival| (way_ns(arrival) - quickest) as f64 / 1e9;
    let mut of_train: Vec<(u64, f64)> =
        train.arrivals.iter().map(|one| (one.sent_ns, wait_s(one))).collect();
    of_train.sort_unstable_by_key(|(sent_ns, _)| *sent_ns);
    let least_s = least_wait_s(rate, train.sizes.frame as f64);
    let shares = sparse.arrivals.iter().filter_map(|one| {
        let queued_s = queued_s(&of_train, one.sent_ns).filter(|queued| *queued >= least_s)?;
        Some(wait_s(one) / queued_s)
    });
    let shares: Vec<f64> = shares.collect();
    let sent = sparse.sent;
    match (shares.len(), median(shares.iter().copied())) {
        (MIN_SPARSE.., Some(share)) if share <= MAX_FAIR => Ok(FlowSharing::FairQueue),
        (MIN_SPARSE.., Some(share)) if share >= MIN_SHARED => Ok(FlowSharing::OneQueue),
        (MIN_SPARSE.., Some(share)) => Err(Missing::because(format!(
            "a second flow waited {:.0} % as long as the first, which is neither a turn of its own nor the same queue",
            share * 100.0
        ))),
        (came, _) => Err(Missing::because(format!(
            "{came} of {sent} datagrams of a second flow came beside a queue of the first, which is too few"
        ))),
    }
}

fn way_ns(arrival: &Arrival) -> i128 {
    i128::from(arrival.came_ns) - i128::from(arrival.sent_ns)
}

/// What is queued of the train at this time, seconds: until the last one of those sent by then leaves.
fn queued_s(of_train: &[(u64, f64)], sent_ns: u64) -> Option<f64> {
    let later = of_train.partition_point(|(sent, _)| *sent <= sent_ns);
    let (last_ns, wait_s) = of_train.get(later.checked_sub(1)?)?;
    Some(wait_s - (sent_ns - last_ns) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Sizes;
    use goodput_model::Known;

    /// 100 Mbit/s, by frames of 1250 bytes.
    const RATE: f64 = 1e8;
    const FRAME_NS: u64 = 100_000;

    fn train(arrivals: Vec<Arrival>) -> Train {
        let sent = arrivals.len() as u64;
        let sizes = Sizes { payload: 1208, packet: 1236, frame: 1250 };
        let missing = || Known::missing("not counted");
        let (held_percent, rate_waits_per_call) = (missing(), missing());
        Train {
            arrivals,
            sent,
            refused: 0,
            sizes,
            held_percent,
            rate_waits_per_call,
            batch: 1.0,
            joined: None,
        }
    }

    /// Datagrams sent each `period` frames, which wait a share of a queue that grows to 90 frames and stays as long.
    fn flow(count: u64, period: u64, share: f64) -> Train {
        let arrival = |number: u64| {
            let sent_ns = number * period * FRAME_NS + FRAME_NS / 2;
            let queue_ns = (sent_ns * 3).min(90 * FRAME_NS);
            let came_ns = sent_ns + 5_000_000 + (queue_ns as f64 * share) as u64;
            Arrival { number, sent_ns, came_ns }
        };
        train((0..count).map(arrival).collect())
    }

    #[test]
    fn who_waits_as_long_is_in_the_same_queue() {
        let beside = |share| sharing(&flow(2000, 1, 1.0), &flow(100, 20, share), RATE);
        assert_eq!(beside(1.0), Ok(FlowSharing::OneQueue));
        assert_eq!(beside(0.02), Ok(FlowSharing::FairQueue));
        let between = beside(0.5).unwrap_err().to_string();
        assert!(between.contains("waited 50 % as long"), "{between}");
    }

    #[test]
    fn a_short_queue_and_few_datagrams_show_nothing() {
        let short = sharing(&flow(2000, 1, 0.05), &flow(100, 20, 0.05), RATE).unwrap_err();
        assert!(short.to_string().contains("0 of 100 datagrams"), "{short}");
        let few = sharing(&flow(2000, 1, 1.0), &flow(4, 20, 1.0), RATE).unwrap_err();
        assert!(few.to_string().contains("of 4 datagrams"), "{few}");
        assert!(sharing(&train(Vec::new()), &train(Vec::new()), RATE).is_err());
    }

    #[test]
    fn only_a_queue_of_several_frames_is_asked_about() {
        let queue = |longest_wait_s| ShapingQueue {
            longest_wait_s,
            bytes: goodput_model::Bytes(0),
            discipline: Known::missing("not asked"),
            between_flows: Known::missing("not asked"),
        };
        assert!(has_queue_to_share(&queue(0.9e-3), RATE, 1250.0));
        assert!(!has_queue_to_share(&queue(0.7e-3), RATE, 1250.0));
    }
}
