//! Cuts a receiver's cumulative samples into the intervals that are shown and kept.

use goodput_model::{BitRate, EndName, Interval, Sample};

/// Makes the intervals of one direction as its receiver's samples come in.
pub struct IntervalMaker {
    sender: EndName,
    every_s: f64,
    from: (f64, u64),
}

impl IntervalMaker {
    /// Intervals of at least `every_s` seconds of what `sender` sends.
    pub fn new(sender: EndName, every_s: f64) -> Self {
        Self { sender, every_s, from: (0.0, 0) }
    }

    /// Takes the receiver's next sample; an interval, if one is complete with it. Its bounds are the
    /// times of the samples, as counted, not the round times that were asked for.
    pub fn push(&mut self, sample: &Sample) -> Option<Interval> {
        // Half a millisecond of grace: a sample a hair early would double the interval's length.
        let due = sample.at_s - self.from.0 >= self.every_s - 0.0005;
        due.then(|| self.close(sample)).flatten()
    }

    /// The last, usually shorter, interval: up to `sample`.
    pub fn close(&mut self, sample: &Sample) -> Option<Interval> {
        let (from_s, from_bytes) = self.from;
        let received_bytes = sample.received_bytes.checked_sub(from_bytes)?;
        let goodput = BitRate::over(received_bytes, sample.at_s - from_s)?;
        self.from = (sample.at_s, sample.received_bytes);
        Some(Interval {
            sender: self.sender,
            from_s,
            to_s: sample.at_s,
            received_bytes,
            goodput_bits_per_s: goodput,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, received_bytes: u64) -> Sample {
        Sample { at_s, sent_bytes: 0, received_bytes, flows: Vec::new() }
    }

    #[test]
    fn intervals_follow_one_another_without_a_gap() {
        let mut maker = IntervalMaker::new(EndName::Near, 0.2);
        assert!(maker.push(&sample(0.1, 100)).is_none());
        let first = maker.push(&sample(0.2, 250)).unwrap();
        assert_eq!((first.from_s, first.received_bytes), (0.0, 250));
        let last = maker.close(&sample(0.25, 300)).unwrap();
        assert_eq!((last.from_s, last.received_bytes), (0.2, 50));
        assert!((last.goodput_bits_per_s.0 - 8000.0).abs() < 1e-6);
    }
}
