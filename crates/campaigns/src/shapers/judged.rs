//! What a test says of a drawn shaper, beside the truth.

use serde_json::Value;

use super::draw::Drawn;
use super::planted::{FRAME_BYTES, Queue};

/// Largest difference of a rate that still counts as right.
const RATE_SHARE: f64 = 0.005;
/// The same for a bucket, unless it is less than a frame off.
const BUCKET_SHARE: f64 = 0.1;
/// Share of the rate that TCP must get with the computed bucket.
pub const ENOUGH_SHARE: f64 = 0.95;

/// Whether each answer is right; `None` where the draw has no truth for it, or the test was not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// Shaper, policer or none.
    pub kind: bool,
    /// The rate of the train.
    pub rate: Option<bool>,
    /// Whether the interval of that rate has the truth.
    pub interval: Option<bool>,
    /// The bucket.
    pub bucket: Option<bool>,
    /// When its queue drops.
    pub queue: Option<bool>,
    /// Whether its queue is fair; `None` also where the test does not know.
    pub fair: Option<bool>,
    /// Whether the traffic took at most 5 s; `None` if TCP was not measured.
    pub is_short: Option<bool>,
}

impl Judged {
    /// Judges the record of a test.
    pub fn of(drawn: &Drawn, record: &Value) -> Self {
        let train = &record["shaping"]["train"];
        let planted = drawn.planted();
        // A bucket that is too small for the machine's timers does not give the rate that it is set to.
        let enough = record["shaping"]["enough_bucket"]["for_rate_bytes"].as_f64();
        let gives = || enough.is_some_and(|enough| drawn.bucket_bytes >= enough);
        let has_rate = planted.limits() && (!planted.has_bucket || gives());
        Self {
            kind: train["kind"] == planted.kind,
            rate: has_rate.then(|| is_rate(train, drawn.rate_bits_per_s)),
            interval: has_rate.then(|| contains(train, drawn.rate_bits_per_s)),
            bucket: has_rate.then(|| is_bucket(train, drawn.at_once_bytes)),
            queue: planted.queue.map(|queue| is_queue(train, queue)),
            fair: planted.queue.and_then(|queue| is_fair(train, queue)),
            is_short: traffic_s(record).map(|seconds| seconds <= 5.05),
        }
    }
}

fn is_rate(train: &Value, truth: f64) -> bool {
    let seen = train["rate_bits_per_s"]["value"].as_f64();
    seen.is_some_and(|seen| (seen - truth).abs() <= RATE_SHARE * truth)
}

fn contains(train: &Value, truth: f64) -> bool {
    let end = |name: &str| train["rate_bits_per_s"][name].as_f64();
    end("low").zip(end("high")).is_some_and(|(low, high)| (low..=high).contains(&truth))
}

/// Nothing need be dropped by a queue that drops at its tail: its sender may be held before it is full.
fn is_queue(train: &Value, queue: Queue) -> bool {
    let seen = train["queue"]["discipline"].as_str();
    match queue {
        Queue::Fifo => !matches!(seen, Some("active-management" | "drop-head")),
        Queue::FairAndManaged => seen == Some("active-management"),
    }
}

fn is_fair(train: &Value, queue: Queue) -> Option<bool> {
    let seen = train["queue"]["between_flows"].as_str()?;
    Some((seen == "fair-queue") == (queue == Queue::FairAndManaged))
}

fn is_bucket(train: &Value, truth: f64) -> bool {
    let seen = train["bucket_bytes"]["value"].as_f64();
    seen.is_some_and(|seen| (seen - truth).abs() <= (BUCKET_SHARE * truth).max(FRAME_BYTES))
}

/// Seconds of the train and of TCP together.
fn traffic_s(record: &Value) -> Option<f64> {
    let train = &record["shaping"]["train"];
    let (sent, frame) = (train["sent"].as_f64()?, train["frame_bytes"].as_f64()?);
    let offered = train["offered_bits_per_s"].as_f64()?;
    let tcp = record["plan"]["length"]["seconds"].as_f64()?;
    Some(sent * frame * 8.0 / offered + tcp)
}

/// The bucket that the test computes, bytes.
pub fn computed_bucket(record: &Value) -> Option<f64> {
    record["shaping"]["enough_bucket"]["bytes"].as_f64()
}

/// Whether TCP gets nearly the whole rate of a drawn shaper.
pub fn gives(drawn: &Drawn, record: &Value) -> bool {
    let seen = record["shaping"]["tcp_bits_per_s"]["value"].as_f64();
    seen.is_some_and(|seen| seen >= ENOUGH_SHARE * drawn.rate_bits_per_s)
}

#[cfg(test)]
mod tests {
    use super::super::planted::Kernel;
    use super::*;

    fn drawn(id: &str) -> Drawn {
        let mut all = (0..100).map(|number| Drawn::of(Kernel::Own, 1, number));
        all.find(|one| one.planted().id == id).unwrap()
    }

    fn record(drawn: &Drawn, rate: f64, bucket: f64, enough: f64) -> Value {
        let estimate = |value: f64| serde_json::json!({ "value": value, "low": value * 0.999, "high": value * 1.001 });
        serde_json::json!({ "shaping": {
            "train": {
                "kind": drawn.planted().kind, "rate_bits_per_s": estimate(drawn.rate_bits_per_s * rate),
                "bucket_bytes": estimate(drawn.at_once_bytes + bucket),
                "sent": 1000, "frame_bytes": 1514, "offered_bits_per_s": 1514.0 * 8000.0,
            },
            "enough_bucket": { "for_rate_bytes": enough, "bytes": enough },
            "tcp_bits_per_s": estimate(drawn.rate_bits_per_s * rate),
        }, "plan": { "length": { "seconds": 4.0 } } })
    }

    #[test]
    fn answers_are_held_against_the_truth() {
        let tbf = drawn("tbf");
        let right = Judged::of(&tbf, &record(&tbf, 1.004, 1500.0, 1.0));
        let all = Judged {
            kind: true,
            rate: Some(true),
            interval: Some(false),
            bucket: Some(true),
            queue: Some(true),
            fair: None,
            is_short: Some(true),
        };
        assert_eq!(right, all);
        let near = Judged::of(&tbf, &record(&tbf, 1.0005, 1500.0, 1.0));
        assert_eq!(near, Judged { interval: Some(true), ..all });
        let wrong = Judged::of(&tbf, &record(&tbf, 1.006, 2e5, 1.0));
        assert_eq!((wrong.rate, wrong.bucket), (Some(false), Some(false)));
        let too_small = Judged::of(&tbf, &record(&tbf, 0.5, 0.0, 1e9));
        assert_eq!((too_small.kind, too_small.rate), (true, None));
        let nothing = drawn("none");
        assert_eq!(Judged::of(&nothing, &record(&nothing, 1.0, 0.0, 1.0)).bucket, None);
        assert!(!Judged::of(&tbf, &serde_json::json!({})).kind);
    }

    #[test]
    fn a_queue_is_held_against_the_truth() {
        let (tbf, none) = (drawn("tbf"), drawn("none"));
        let seen = |drawn: &Drawn, discipline: &str, shared: Value| {
            let mut record = record(drawn, 1.0, 0.0, 1.0);
            let queue = serde_json::json!({ "discipline": discipline, "between_flows": shared });
            record["shaping"]["train"]["queue"] = queue;
            let judged = Judged::of(drawn, &record);
            (judged.queue, judged.fair)
        };
        let unknown = || serde_json::json!({ "missing": "no second flow was sent" });
        assert_eq!(seen(&tbf, "unfilled", unknown()), (Some(true), None));
        assert_eq!(seen(&tbf, "drop-tail", "one-queue".into()), (Some(true), Some(true)));
        assert_eq!(
            seen(&tbf, "active-management", "fair-queue".into()),
            (Some(false), Some(false))
        );
        assert_eq!(seen(&none, "drop-tail", "one-queue".into()), (None, None));
    }

    #[test]
    fn a_computed_bucket_gives_the_rate_or_not() {
        let tbf = drawn("tbf");
        assert!(gives(&tbf, &record(&tbf, 0.951, 0.0, 7.0)));
        assert!(!gives(&tbf, &record(&tbf, 0.949, 0.0, 7.0)));
        assert_eq!(computed_bucket(&record(&tbf, 1.0, 0.0, 7.0)), Some(7.0));
    }
}
