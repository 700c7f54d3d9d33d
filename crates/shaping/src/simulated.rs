//! Token buckets that are simulated, and what is seen of them.

use goodput_model::{Arrival, Known, QueueDiscipline, Shaping, ShapingKind};
use proptest::prelude::*;

use crate::{Sizes, Train, shaping};

const SIZES: Sizes = Sizes { payload: 1472, packet: 1500, frame: 1514 };

/// Ratio of a train's rate to the bucket's. Not a whole number, so that the two do not beat.
const OFFERED_TO_BUCKET_RATE: f64 = 4.3;

/// Number of buckets drawn, each from its own seed.
const SIMULATED_BUCKETS: u64 = 60;

/// What holds the rate.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Bytes per second.
    rate: f64,
    /// Bytes.
    depth: f64,
    /// Bytes that may wait; `None`: nothing waits, what exceeds the rate is dropped.
    queue: Option<f64>,
}

/// A generator of even numbers from 0 to 1 (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with this mean.
    fn delay(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }
}

/// A train at `times` the rate for `seconds`, with hosts that add `jitter_s` to each time on average and stop the sender
/// for `stall_s` now and then.
fn train(
    bucket: Bucket,
    times: f64,
    seconds: f64,
    jitter_s: f64,
    stall_s: f64,
    seed: u64,
) -> Train {
    let frame = SIZES.frame as f64;
    let mut random = Random(seed * 2 + 1);
    let (mut arrivals, mut sent) = (Vec::new(), 0);
    let (mut tokens, mut filled_s, mut free_s) = (bucket.depth, 0.0, 0.0);
    let (mut at, mut last_came) = (0.0, 0.0);
    while at < seconds {
        let number = sent;
        sent += 1;
        let queued = (f64::max(free_s - at, 0.0)) * bucket.rate;
        let leaves = match bucket.queue {
            Some(room) if queued + frame > room.max(2.0 * frame) => None,
            Some(_) => {
                let from = f64::max(at, free_s);
                tokens = f64::min(bucket.depth, tokens + (from - filled_s) * bucket.rate);
                let wait = f64::max(frame - tokens, 0.0) / bucket.rate;
                tokens += wait * bucket.rate - frame;
                (filled_s, free_s) = (from + wait, from + wait);
                Some(from + wait)
            }
            None => {
                tokens = f64::min(bucket.depth, tokens + (at - filled_s) * bucket.rate);
                filled_s = at;
                let passes = tokens >= frame;
                tokens -= if passes { frame } else { 0.0 };
                passes.then_some(at)
            }
        };
        if let Some(leaves) = leaves {
            last_came = f64::max(last_came, leaves + 0.01 + random.delay(jitter_s));
            let ns = |s: f64| (s * 1e9) as u64;
            arrivals.push(Arrival {
                number,
                sent_ns: 7_000_000_000 + ns(at),
                came_ns: 3_000_000_000 + ns(last_came),
            });
        }
        at += frame / (bucket.rate * times);
        if stall_s > 0.0 && random.next() < 1e-3 {
            at += random.delay(stall_s);
        }
    }
    seen(arrivals, sent)
}

fn seen(arrivals: Vec<Arrival>, sent: u64) -> Train {
    let missing = || Known::missing("not counted");
    let (held_percent, rate_waits_per_call) = (missing(), missing());
    Train {
        arrivals,
        sent,
        refused: 0,
        sizes: SIZES,
        held_percent,
        rate_waits_per_call,
        batch: 1.0,
        joined: None,
    }
}

fn is_near(estimate: f64, truth: f64, share: f64, least: f64) -> bool {
    (estimate - truth).abs() <= f64::max(share * truth, least)
}

fn check(bucket: Bucket, seen: &Shaping) {
    let kind = if bucket.queue.is_some() { ShapingKind::Shaper } else { ShapingKind::Policer };
    assert_eq!(seen.kind, kind, "{:?}", bucket);
    let rate = seen.rate_bits_per_s.value().unwrap();
    assert!(is_near(rate.value / 8.0, bucket.rate, 0.005, 0.0), "{rate:?} of {bucket:?}");
    assert_eq!(seen.outage_s, None, "{bucket:?}");
    let depth = seen.bucket_bytes.value().unwrap();
    assert!(is_near(depth.value, bucket.depth, 0.1, 1514.0), "{depth:?} of {bucket:?}");
}

/// A bucket drawn at random, with the train that meets it: long enough to empty it and to see the rate afterwards.
fn drawn(seed: u64) -> Option<(Bucket, Train)> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut power = |from: f64, to: f64| 10f64.powf(from + (to - from) * random.next());
    let rate = power(6.0, 9.7) / 8.0;
    // A policer of one frame wastes what comes in while it waits for the next datagram: it gives less than its rate.
    let queue = (power(0.0, 1.0) > 3.0).then(|| power(0.7, 3.0).round() * 1514.0);
    let least = if queue.is_some() { 1514.0 } else { 3028.0 };
    let depth = (power(0.0, 2.8).round() * 1514.0).max(least);
    let bucket = Bucket { rate, depth, queue };
    let seconds = (60_000.0 * 1514.0 / (4.0 * rate)).min(4.0);
    let jitter_s = (0.2 * 1514.0 / rate).min(20e-6);
    let is_enough = depth / (3.0 * rate) < 0.5 * seconds && seconds * rate > 600.0 * 1514.0;
    is_enough.then(|| (bucket, train(bucket, OFFERED_TO_BUCKET_RATE, seconds, jitter_s, 0.0, seed)))
}

#[test]
fn any_bucket_is_found() {
    let mut found = 0;
    for (bucket, train) in (0..SIMULATED_BUCKETS).filter_map(drawn) {
        check(bucket, &shaping(&train).unwrap());
        found += 1;
    }
    assert!(found > SIMULATED_BUCKETS / 2, "{found}");
}

proptest! {
    #[test]
    fn no_train_breaks_it(
        arrivals in proptest::collection::vec((0..90u64, any::<u64>(), any::<u64>()), 0..120), sent: u64,
    ) {
        let arrival = |(number, sent_ns, came_ns)| Arrival { number, sent_ns, came_ns };
        let arrivals = arrivals.into_iter().map(arrival).collect();
        // JSON has no numbers that are not finite: they would come back as null.
        if let Ok(shaping) = shaping(&seen(arrivals, sent)) {
            let json = serde_json::to_string(&shaping).unwrap();
            prop_assert!(serde_json::from_str::<Shaping>(&json).is_ok(), "{}", json);
        }
    }
}

const RATE: f64 = 100e6 / 8.0;

#[test]
fn a_sender_that_stalls_wastes_tokens_and_not_the_estimate() {
    for queue in [None, Some(100_000.0)] {
        let bucket = Bucket { rate: RATE, depth: 30_000.0, queue };
        let train = train(bucket, OFFERED_TO_BUCKET_RATE, 4.0, 10e-6, 2e-3, 5);
        check(bucket, &shaping(&train).unwrap());
    }
}

/// Its bucket fills in most pauses, and what comes in then is wasted.
#[test]
fn a_policer_whose_sender_stops_again_and_again_is_known() {
    for (depth, seed) in [(6056.0, 7), (90_000.0, 8)] {
        let bucket = Bucket { rate: RATE, depth, queue: None };
        let train = train(bucket, OFFERED_TO_BUCKET_RATE, 2.5, 10e-6, 60e-3, seed);
        check(bucket, &shaping(&train).unwrap());
    }
}

/// It stops for most of the time, and sends less on average than passes.
#[test]
fn a_policer_that_is_hardly_ever_reached_has_no_rate() {
    let bucket = Bucket { rate: RATE, depth: 126_000.0, queue: None };
    let train = train(bucket, OFFERED_TO_BUCKET_RATE, 2.5, 10e-6, 200e-3, 8);
    let seen = shaping(&train).unwrap();
    assert_eq!(seen.kind, ShapingKind::Policer);
    let why = seen.rate_bits_per_s.get().unwrap_err().to_string();
    assert!(why.starts_with("the sender stopped for so long"), "{why}");
}

/// Of 4 s, the path loses all for one; or it is not there again before the end.
#[test]
fn a_path_that_breaks_is_known() {
    for (queue, to_s) in [(None, 2.5), (Some(100_000.0), 2.5), (Some(100_000.0), 4.0)] {
        let bucket = Bucket { rate: RATE, depth: 30_000.0, queue };
        let mut train = train(bucket, OFFERED_TO_BUCKET_RATE, 4.0, 10e-6, 0.0, 5);
        let lost = 8_500_000_000..7_000_000_000 + (to_s * 1e9) as u64;
        train.arrivals.retain(|arrival| !lost.contains(&arrival.sent_ns));
        let seen = shaping(&train).unwrap();
        let outage_s = seen.outage_s.unwrap();
        assert_eq!(seen.outages, 1);
        assert!(is_near(outage_s, to_s - 1.5, 0.01, 0.0), "{outage_s} of {queue:?}");
    }
}

/// A tbf of 50 Mbit/s whose queue the sender's socket holds short, and of 2.3 s the device is down for 2 s: nothing waits then,
/// and all is lost. Or the sender stops for as long, and sends nothing.
#[test]
fn a_shaper_stays_one_when_the_path_breaks_or_the_sender_stops() {
    const STEP_NS: u64 = 242_240;
    let at = |number: u64, sent_ns: u64, wait_ns: u64| Arrival {
        number,
        sent_ns: 7_000_000_000 + sent_ns,
        came_ns: 3_000_000_000 + sent_ns + wait_ns,
    };
    for lost in [34_000, 0] {
        // 92 frames fit into the socket.
        let first = (0..1200).map(|n| at(n, n * STEP_NS, 20_000 + n.min(92) * STEP_NS));
        let later = 1200 * STEP_NS + 2_000_000_000;
        let last = (0..40).map(|n| at(1200 + lost + n, later + n * STEP_NS, 20_000));
        let train = seen(first.chain(last).collect(), 1240 + lost);
        let seen = shaping(&train).unwrap();
        assert_eq!(seen.kind, ShapingKind::Shaper, "{lost} lost");
        let rate = seen.rate_bits_per_s.value().unwrap();
        assert!(is_near(rate.value / 8.0, 6.25e6, 0.005, 0.0), "{rate:?}, {lost} lost");
        assert_eq!((seen.outages, seen.lost), (u64::from(lost > 0), lost));
        assert!(is_near(seen.gaps.longest_s, 2.0, 0.02, 0.0), "{}", seen.gaps.longest_s);
    }
}

/// It sends 430 kbit/s to a policer of 20: what its bucket lets through at first is most of what comes, and whole, and each
/// pause afterwards is a hole.
#[test]
fn a_slow_policer_with_a_deep_bucket_is_one() {
    let bucket = Bucket { rate: 20e3 / 8.0, depth: 20.2 * 1514.0, queue: None };
    let train = train(bucket, 21.5, 2.6, 10e-6, 0.0, 5);
    assert_eq!(shaping(&train).unwrap().kind, ShapingKind::Policer);
}

/// It holds 3.2 s of its rate, which a train of 4.3 times the rate takes in 0.97 of a second: 2 % of the train are lost.
#[test]
fn a_policer_whose_bucket_lasts_for_nearly_all_of_the_train_is_one() {
    let bucket = Bucket { rate: RATE, depth: 40e6, queue: None };
    let train = train(bucket, OFFERED_TO_BUCKET_RATE, 1.0, 10e-6, 0.0, 5);
    let seen = shaping(&train).unwrap();
    assert_eq!(seen.kind, ShapingKind::Policer);
    let rate = seen.rate_bits_per_s.value().unwrap();
    assert!(is_near(rate.value / 8.0, RATE, 0.02, 0.0), "{rate:?}");
    assert!(is_near(seen.bucket_bytes.value().unwrap().value, 40e6, 0.05, 0.0));
}

#[test]
fn a_broken_path_without_a_limit_has_none() {
    let endless = Bucket { rate: RATE * 1e3, depth: 1e9, queue: None };
    let mut train = train(endless, 1e-3, 1.0, 10e-6, 0.0, 3);
    train.arrivals.retain(|one| !(7_250_000_000..7_550_000_000).contains(&one.sent_ns));
    assert_eq!(shaping(&train).unwrap().kind, ShapingKind::None);
}

/// A queue that holds two frames drops almost as a policer does; its rate is known as well.
#[test]
fn a_shaper_with_hardly_a_queue_looks_like_a_policer() {
    let bucket = Bucket { rate: RATE, depth: 70_000.0, queue: None };
    let train = train(bucket, OFFERED_TO_BUCKET_RATE, 2.0, 10e-6, 0.0, 4);
    for waits in [0.0, 1.37] {
        let counted = Train { rate_waits_per_call: Known::Value(waits), ..train.clone() };
        let seen = shaping(&counted).unwrap();
        assert_eq!(seen.kind, ShapingKind::Policer, "only the settings of its shaper tell");
        let rate = seen.rate_bits_per_s.value().unwrap();
        assert!(is_near(rate.value / 8.0, RATE, 0.005, 0.0), "{rate:?}");
    }
}

#[test]
fn nothing_in_the_way_is_none() {
    let endless = Bucket { rate: RATE * 1e3, depth: 1e9, queue: None };
    let train = train(endless, 1e-3, 1.0, 10e-6, 1e-3, 3);
    let seen = shaping(&train).unwrap();
    assert_eq!(seen.kind, ShapingKind::None);
    assert!(seen.rate_bits_per_s.value().is_none() && seen.bucket_bytes.value().is_none());
    assert!(seen.lost == 0 && seen.curve.len() == 200);
}

/// Each batch of eight has left before the next is sent, because the shaper's timers take the sender's CPU: waits come and
/// go with the batches.
#[test]
fn a_shaper_that_slows_its_sender_is_known_by_its_own_count() {
    const BATCH: u64 = 8;
    let frame_ns = (SIZES.frame as f64 / RATE * 1e9) as u64;
    let arrival = |number: u64| Arrival {
        number,
        sent_ns: (number - number % BATCH) * frame_ns,
        came_ns: (number + 1) * frame_ns,
    };
    let train = seen((0..4000).map(arrival).collect(), 4000);
    assert_eq!(shaping(&train).unwrap().kind, ShapingKind::None, "nothing was counted");
    let counted = Train { rate_waits_per_call: Known::Value(BATCH as f64), ..train };
    let seen = shaping(&counted).unwrap();
    assert_eq!(seen.kind, ShapingKind::Shaper);
    let rate = seen.rate_bits_per_s.value().unwrap();
    assert!(is_near(rate.value / 8.0, RATE, 0.005, 0.0), "{rate:?}");
}

/// A small bucket's timers are late each time, and the sender is slower than the rate: two datagrams leave together, then
/// nothing for a while. In a queue of two, nothing waits as long as some do.
#[test]
fn what_waits_for_late_timers_waits_in_no_queue() {
    const PAIR_NS: u64 = 100_000;
    let arrival = |number: u64| {
        let pair = number / 2;
        let late_ns = [190_000, 95_000].get(pair as usize % 7).unwrap_or(&20_000);
        Arrival {
            number,
            sent_ns: pair * PAIR_NS + number % 2 * 1000,
            came_ns: 7_000 + pair * PAIR_NS + late_ns + number % 2 * 1500,
        }
    };
    let counted = Train {
        rate_waits_per_call: Known::Value(1.7),
        ..seen((0..20_000).map(arrival).collect(), 20_000)
    };
    let seen = shaping(&counted).unwrap();
    assert_eq!(seen.kind, ShapingKind::Shaper);
    let why = seen.rate_bits_per_s.get().unwrap_err().to_string();
    assert!(why.contains("never queued"), "{why}");
    assert!(seen.bucket_bytes.value().is_none());
}

#[test]
fn a_full_queue_is_measured_and_drops_at_its_tail() {
    let bucket = Bucket { rate: RATE, depth: 15_140.0, queue: Some(151_400.0) };
    let seen = shaping(&train(bucket, OFFERED_TO_BUCKET_RATE, 2.0, 5e-6, 0.0, 9)).unwrap();
    let queue = seen.queue.value().unwrap();
    assert!(is_near(queue.bytes.0 as f64, 151_400.0, 0.05, 0.0), "{queue:?}");
    assert!(is_near(queue.longest_wait_s, 151_400.0 / RATE, 0.05, 0.0), "{queue:?}");
    assert_eq!(queue.discipline, Known::Value(QueueDiscipline::DropTail));
    let lengths: Vec<f64> = seen.windows.iter().map(|window| window.window_s).collect();
    assert_eq!(lengths, [0.001, 0.01, 0.1, 1.0]);
    let [.., second] = seen.windows[..] else { panic!("{:?}", seen.windows) };
    assert!(is_near(second.lowest_bits_per_s.0, 100e6, 0.01, 0.0), "{second:?}");
}
