//! The rate that a run has once it stays the same: a token bucket lets a first burst through faster.

use goodput_experiment::steady;
use goodput_model::{Direction, Length, Measured, Record, Sample};

/// Largest share of a run that may be left out as its beginning.
const MAX_UNSETTLED_SHARE: f64 = 0.5;

/// What the receiver counted, without the bucket's first burst and without what filled holes of the beginning; `None` if it
/// kept no samples. A slow path still carries at its rate what the sender's buffer holds when it is stopped: that counts until
/// nothing comes for an interval, as when the last packet is lost.
pub fn settled(record: &Record) -> Option<Measured> {
    let receiver = match record.plan.direction {
        Direction::Reverse => record.ends.near.value(),
        _ => record.ends.far.value(),
    };
    let samples = &receiver?.samples;
    let all = samples.last()?.received_bytes;
    let Length::Seconds(sent_s) = record.plan.length else { return None };
    let mut before = 0;
    let counts = |sample: &&Sample| {
        let came = sample.received_bytes > std::mem::replace(&mut before, sample.received_bytes);
        sample.at_s <= sent_s || (came && sample.received_bytes < all)
    };
    let counted = samples.iter().take_while(counts);
    let series: Vec<_> = counted.map(|sample| (sample.at_s, sample.received_bytes)).collect();
    steady::settled(&series, MAX_UNSETTLED_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{End, Known};

    /// A bucket of a million bytes that begins full, and a rate of 80 Mbit/s.
    #[test]
    fn the_first_burst_of_a_bucket_is_left_out() {
        let json = include_str!("../../../store/tests/golden/v1/test.json");
        let mut record = Record::from_json(json).unwrap();
        record.plan.direction = Direction::Reverse;
        record.plan.length = Length::Seconds(1.0);
        let first = record.ends.near.value().unwrap().samples[0].clone();
        let at = |tick: u64| Sample {
            at_s: tick as f64 * 0.025,
            received_bytes: if tick == 0 { 0 } else { 1_000_000 + 250_000 * tick },
            ..first.clone()
        };
        let samples = (0..=40).map(at).collect();
        let near = record.ends.near.value().unwrap().clone();
        record.ends.near = Known::Value(End { samples, ..near });
        let goodput = settled(&record).unwrap().goodput.0;
        assert!((goodput / 80e6 - 1.0).abs() < 1e-9, "{goodput}");
    }
}
