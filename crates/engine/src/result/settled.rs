//! The rate that a run has once it stays the same: a token bucket lets a first burst through faster.

use goodput_experiment::steady;
use goodput_model::{Direction, End, Length, Measured, Record, Sample};

/// Largest share of a run that may be left out as its beginning.
const MAX_UNSETTLED_SHARE: f64 = 0.5;

/// What the receiver counted, without the bucket's first burst and without what filled holes of the beginning; `None` if it
/// kept no samples. A slow path still carries at its rate what the sender's buffer holds when it is stopped: that counts until
/// nothing comes for an interval, as when the last packet is lost.
pub fn settled(record: &Record) -> Option<Measured> {
    let samples = &receiver(record)?.samples;
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

/// What came at the receiver of TCP in whatever order, by its count of segments, after the beginning; `None` if that was not counted.
/// What it could read comes in leaps where TCP had to fill holes, which on a slow path hides the rate that the path carried.
/// Segments that came twice count twice: they crossed the path.
pub fn carried(record: &Record, payload: f64) -> Option<Measured> {
    let samples = &receiver(record)?.samples;
    let came = |sample: &Sample| {
        let mut all = 0.0;
        for flow in &sample.flows {
            all += flow.tcp.value()?.data_segs_in? as f64 * payload;
        }
        (!sample.flows.is_empty()).then_some((sample.at_s, all as u64))
    };
    let series: Vec<(f64, u64)> = samples.iter().filter_map(came).collect();
    let all = series.last()?.1;
    // What comes last may have been lost, and sent again after a time-out.
    let last = series.windows(2).rposition(|two| two[1].1 > two[0].1 && two[1].1 < all)? + 1;
    steady::settled(&series[..=last], MAX_UNSETTLED_SHARE)
}

fn receiver(record: &Record) -> Option<&End> {
    match record.plan.direction {
        Direction::Reverse => record.ends.near.value(),
        _ => record.ends.far.value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{FlowSample, Known};

    /// TCP of a tbf of 1 Mbit/s with 50 kB of queue, as measured: what its receiver could read, and what came.
    #[test]
    fn what_a_slow_path_carries_shows_although_tcp_fills_holes() {
        const EVERY_S: f64 = 0.1;
        const PAYLOAD: f64 = 1448.0;
        let read = [
            0, 11, 19, 27, 35, 43, 51, 59, 59, 59, 59, 59, 70, 87, 103, 119, 130, 130, 130, 130,
            130, 141, 155, 165, 179, 187, 197, 204, 209, 215, 225, 231, 239, 243, 254, 259, 267,
            275, 282, 289, 296, 303, 311, 319, 331, 337, 349, 361, 369, 376, 395, 402, 417, 424,
            430,
        ];
        let json = include_str!("../../../store/tests/golden/v1/test.json");
        let mut record = Record::from_json(json).unwrap();
        record.plan.direction = Direction::Reverse;
        record.plan.length = Length::Seconds(2.0);
        let near = record.ends.near.value().unwrap().clone();
        let first = near.samples.iter().find(|sample| !sample.flows.is_empty()).unwrap().clone();
        let at = |(tick, segments): (usize, &u64)| {
            let tcp = first.flows[0].tcp.value().unwrap();
            // 80 segments a second, with the last loss repaired at the end.
            let came = Some((1 + 8 * tick as u64).min(432));
            let tcp = Known::Value(goodput_model::TcpInfo { data_segs_in: came, ..tcp.clone() });
            let flow = FlowSample { tcp, ..first.flows[0].clone() };
            let received_bytes = segments * PAYLOAD as u64;
            let at_s = tick as f64 * EVERY_S;
            Sample { at_s, received_bytes, flows: vec![flow], ..first.clone() }
        };
        let samples = read.iter().enumerate().map(at).collect();
        record.ends.near = Known::Value(End { samples, ..near });
        let carried = carried(&record, PAYLOAD).unwrap();
        assert!((carried.goodput.0 / (80.0 * PAYLOAD * 8.0) - 1.0).abs() < 0.005, "{carried:?}");
        assert!(*carried.precision_percent.value().unwrap() < 1.0, "{carried:?}");
        let in_order = settled(&record).unwrap();
        let precise = in_order.precision_percent.value().is_some_and(|off| *off < 5.0);
        assert!(!precise, "{in_order:?}");
    }

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
