//! The part of a train that arrived while those of other classes did, and its rate.

use goodput_model::{BitRate, Estimate, Missing};

use crate::rate::{TRAIN_PARTS, interval};
use crate::trace::Train;

/// The datagrams that arrived in some time.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainPart {
    train: Train,
    /// Where the time begins, nanoseconds on the receiver's clock.
    from_ns: u64,
    /// Length of the time, seconds.
    seconds: f64,
}

/// The parts of all trains in the time in which all of them arrived, if that is at least half of the shortest one: the
/// buckets shape the beginning of a train, and what is still queued its end. The receiver has one clock for all.
#[must_use]
pub fn overlapping(trains: Vec<Result<Train, Missing>>) -> Vec<Result<TrainPart, Missing>> {
    let spans = || trains.iter().flatten().filter_map(Train::span_ns);
    let from = spans().map(|(from, _)| from).max().unwrap_or_default();
    let to = spans().map(|(_, to)| to).min().unwrap_or_default();
    let least = spans().map(|(from, to)| to - from).min().unwrap_or_default() / 2;
    let part = |train: Train| TrainPart::of(train, from, to, least);
    trains.into_iter().map(|train| train.and_then(part)).collect()
}

impl TrainPart {
    fn of(mut train: Train, from_ns: u64, to_ns: u64, least_ns: u64) -> Result<Self, Missing> {
        if to_ns.saturating_sub(from_ns) < least_ns.max(1) {
            return Err(Missing::because(
                "the datagrams of the classes came at the same time for too short a time",
            ));
        }
        train.arrivals.retain(|arrival| (from_ns..to_ns).contains(&arrival.came_ns));
        let numbers = || train.arrivals.iter().map(|arrival| arrival.number);
        let span = numbers().min().zip(numbers().max());
        train.sent = span.map_or(0, |(first, last)| (last - first).saturating_add(1));
        Ok(Self { train, from_ns, seconds: (to_ns - from_ns) as f64 / 1e9 })
    }

    /// Checks that enough datagrams would have come in this time at the `rate` of the class.
    ///
    /// # Errors
    /// If a class that gets its rate might show none.
    pub(crate) fn lasts_for(&self, rate: BitRate) -> Result<(), Missing> {
        let expected = rate.bytes_in(self.seconds) / self.train.sizes.frame as f64;
        match expected >= Train::MIN_ARRIVALS as f64 {
            true => Ok(()),
            false => Err(Missing::because(format!(
                "the datagrams of all classes came at the same time for {:.2} s, in which {expected:.0} come at {rate}: too few",
                self.seconds
            ))),
        }
    }

    /// The train, with what was sent and what came in this time.
    pub(crate) fn train(&self) -> &Train {
        &self.train
    }

    /// Rate at which datagrams came, bits per second of frames.
    pub(crate) fn rate(&self) -> Estimate {
        let mut counts = [0.0; TRAIN_PARTS];
        let length = self.seconds / TRAIN_PARTS as f64;
        for arrival in &self.train.arrivals {
            let at = arrival.came_ns.saturating_sub(self.from_ns) as f64 / 1e9;
            counts[((at / length) as usize).min(TRAIN_PARTS - 1)] += 1.0;
        }
        let bits = self.train.sizes.frame as f64 * 8.0;
        let rates = counts.map(|count: f64| count * bits / length);
        interval(&rates)
    }

    /// Rate at which they were sent, bits per second of frames, by the numbers of those that came.
    pub(crate) fn offered(&self) -> BitRate {
        let times = || self.train.arrivals.iter().map(|arrival| arrival.sent_ns);
        let span =
            times().min().zip(times().max()).map(|(first, last)| (last - first) as f64 / 1e9);
        let frames = self.train.sent.saturating_sub(1) as f64;
        match span {
            Some(seconds) if seconds > 0.0 => {
                BitRate(frames * self.train.sizes.frame as f64 * 8.0 / seconds)
            }
            _ => BitRate(0.0),
        }
    }

    /// Share of the datagrams sent in this time that did not come.
    pub(crate) fn lost_share(&self) -> f64 {
        1.0 - self.train.arrivals.len() as f64 / (self.train.sent as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Sizes;
    use goodput_model::{Arrival, Known};

    /// Datagrams that come each millisecond from `from_ms`, each second one lost.
    fn train(from_ms: u64, count: u64) -> Train {
        let arrival = |place: u64| Arrival {
            number: 2 * place,
            sent_ns: place * 1_000_000,
            came_ns: (from_ms + place) * 1_000_000,
        };
        Train {
            arrivals: (0..count).map(arrival).collect(),
            sent: 2 * count,
            refused: 0,
            sizes: Sizes { payload: 972, packet: 1000, frame: 1000 },
            held_percent: Known::missing("not counted"),
            rate_waits_per_call: Known::missing("not counted"),
            batch: 1.0,
            joined: None,
        }
    }

    #[test]
    fn only_the_time_counts_in_which_all_trains_come() {
        let failed = Err(Missing::because("refused"));
        let parts = overlapping(vec![Ok(train(0, 101)), Ok(train(50, 201)), failed]);
        let first = parts[0].as_ref().unwrap();
        assert_eq!((first.train.arrivals.len(), first.train.sent), (50, 99));
        assert!((first.rate().value - 8e6).abs() < 1.0, "{:?}", first.rate());
        assert!((first.offered().0 - 16e6).abs() < 1e3, "{:?}", first.offered());
        assert!((first.lost_share() - 49.0 / 99.0).abs() < 1e-9);
        assert_eq!(parts[1].as_ref().unwrap().train.arrivals.len(), 50);
        assert!(parts[2].is_err());
    }

    /// As a far end might report them.
    #[test]
    fn the_numbers_and_times_may_be_the_first_and_the_last_that_there_are() {
        let mut odd = train(0, 101);
        (odd.arrivals[0].number, odd.arrivals[1].number) = (0, u64::MAX);
        (odd.arrivals[0].sent_ns, odd.arrivals[1].sent_ns) = (u64::MAX, 0);
        let parts = overlapping(vec![Ok(odd.clone()), Ok(odd)]);
        let part = parts[0].as_ref().unwrap();
        assert_eq!(part.train.sent, u64::MAX);
        assert!(part.lost_share() > 0.9 && part.offered().0 > 0.0);
    }

    #[test]
    fn trains_that_hardly_overlap_show_nothing() {
        for later_ms in [50, 99, 149] {
            let parts = overlapping(vec![Ok(train(0, 101)), Ok(train(later_ms, 201))]);
            assert_eq!(parts.iter().any(Result::is_err), later_ms > 50, "{later_ms}");
        }
        assert!(overlapping(Vec::new()).is_empty());
    }

    /// A healthy class of 1 Mbit/s sends a datagram each 12 ms, so 50 ms might show none.
    #[test]
    fn a_slow_class_needs_a_longer_time() {
        let parts = overlapping(vec![Ok(train(0, 101)), Ok(train(50, 201))]);
        let part = parts[0].as_ref().unwrap();
        assert_eq!(part.lasts_for(BitRate(8e6)), Ok(()));
        let why = part.lasts_for(BitRate(1e6)).unwrap_err().to_string();
        assert!(why.contains("for 0.05 s, in which 6 come at 1 Mbit/s"), "{why}");
    }
}
