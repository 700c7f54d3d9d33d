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
