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

/// The parts of all trains in the time in which all of them arrived. The receiver has one clock for all.
#[must_use]
pub fn overlapping(trains: Vec<Result<Train, Missing>>) -> Vec<Result<TrainPart, Missing>> {
    let spans = || trains.iter().flatten().filter_map(Train::span_ns);
    let from = spans().map(|(from, _)| from).max().unwrap_or_default();
    let to = spans().map(|(_, to)| to).min().unwrap_or_default();
    let part = |train: Train| TrainPart::of(train, from, to);
    trains.into_iter().map(|train| train.and_then(part)).collect()
}

impl TrainPart {
    fn of(mut train: Train, from_ns: u64, to_ns: u64) -> Result<Self, Missing> {
        if to_ns <= from_ns {
            return Err(Missing::because(
                "the datagrams of the classes did not come at the same time",
            ));
        }
        train.arrivals.retain(|arrival| (from_ns..to_ns).contains(&arrival.came_ns));
        let numbers = || train.arrivals.iter().map(|arrival| arrival.number);
        let span = numbers().min().zip(numbers().max());
        train.sent = span.map_or(0, |(first, last)| last - first + 1);
        Ok(Self { train, from_ns, seconds: (to_ns - from_ns) as f64 / 1e9 })
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
            sizes: Sizes { payload: 972, packet: 1000, frame: 1000 },
            held_percent: Known::missing("not counted"),
            rate_waits_per_call: Known::missing("not counted"),
            batch: 1.0,
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

    #[test]
    fn trains_one_after_the_other_show_nothing() {
        let parts = overlapping(vec![Ok(train(0, 10)), Ok(train(50, 10))]);
        assert!(parts.iter().all(Result::is_err));
        assert!(overlapping(Vec::new()).is_empty());
    }
}
