//! Cuts cumulative samples into the intervals that are shown and kept.

use goodput_model::{BitRate, EndName, Interval, Known, Sample};

/// Cuts the intervals of one direction as samples come in.
pub struct IntervalMaker {
    sender: EndName,
    counts: Counts,
    every_s: f64,
    from: (f64, u64),
}

/// What the samples count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Received bytes.
    Received,
    /// Sent bytes, because no end reports what arrived.
    Sent,
}

impl IntervalMaker {
    /// Intervals of at least `every_s` seconds of the data from `sender`.
    pub fn new(sender: EndName, counts: Counts, every_s: f64) -> Self {
        Self { sender, counts, every_s, from: (0.0, 0) }
    }

    /// Takes the next sample. Returns an interval, if the sample completes one. Its bounds are the times of the samples,
    /// as counted, not the round times that were asked for. What had come by the first sample, at 0 s, is in no interval.
    pub fn push(&mut self, sample: &Sample) -> Option<Interval> {
        if sample.at_s <= 0.0 {
            self.from = (sample.at_s, self.counted(sample));
            return None;
        }
        // Half a millisecond of grace: a slightly early sample would double the interval's length.
        let due = sample.at_s - self.from.0 >= self.every_s - 0.0005;
        due.then(|| self.close(sample)).flatten()
    }

    /// The last, usually shorter interval, up to `sample`.
    pub fn close(&mut self, sample: &Sample) -> Option<Interval> {
        let (from_s, from_bytes) = self.from;
        let so_far = self.counted(sample);
        let bytes = so_far.checked_sub(from_bytes)?;
        let rate = BitRate::over(bytes, sample.at_s - from_s)?;
        self.from = (sample.at_s, so_far);
        let unreported = "the far end does not report it while it receives";
        let (received_bytes, goodput, sent) = match self.counts {
            Counts::Received => (Known::Value(bytes), Known::Value(rate), None),
            Counts::Sent => (Known::missing(unreported), Known::missing(unreported), Some(rate)),
        };
        Some(Interval {
            sender: self.sender,
            from_s,
            to_s: sample.at_s,
            received_bytes,
            goodput_bits_per_s: goodput,
            sent_bits_per_s: sent,
        })
    }

    fn counted(&self, sample: &Sample) -> u64 {
        match self.counts {
            Counts::Received => sample.received_bytes,
            Counts::Sent => sample.sent_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, received_bytes: u64) -> Sample {
        Sample { at_s, sent_bytes: 2 * received_bytes, received_bytes, flows: Vec::new() }
    }

    #[test]
    fn intervals_follow_one_another_without_a_gap() {
        let mut maker = IntervalMaker::new(EndName::Near, Counts::Received, 0.2);
        assert!(maker.push(&sample(0.1, 100)).is_none());
        let first = maker.push(&sample(0.2, 250)).unwrap();
        assert_eq!((first.from_s, first.received_bytes), (0.0, Known::Value(250)));
        let last = maker.close(&sample(0.25, 300)).unwrap();
        assert_eq!((last.from_s, last.received_bytes), (0.2, Known::Value(50)));
        assert!((last.goodput_bits_per_s.value().unwrap().0 - 8000.0).abs() < 1e-6);
        assert_eq!(last.sent_bits_per_s, None);
    }

    #[test]
    fn what_came_before_the_first_sample_is_in_no_interval() {
        let mut maker = IntervalMaker::new(EndName::Near, Counts::Received, 0.2);
        assert!(maker.push(&sample(0.0, 40)).is_none());
        assert_eq!(maker.push(&sample(0.2, 250)).unwrap().received_bytes, Known::Value(210));
    }

    #[test]
    fn what_was_sent_is_not_what_arrived() {
        let mut maker = IntervalMaker::new(EndName::Near, Counts::Sent, 0.2);
        let interval = maker.push(&sample(0.2, 250)).unwrap();
        assert!(interval.received_bytes.value().is_none());
        assert!(interval.goodput_bits_per_s.value().is_none());
        assert!((interval.sent_bits_per_s.unwrap().0 - 20_000.0).abs() < 1e-6);
    }
}
