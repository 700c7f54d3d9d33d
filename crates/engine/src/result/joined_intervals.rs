//! The intervals of one direction. A long measurement keeps a bounded number of them.

use goodput_model::{BitRate, Interval, Known, Missing};

/// Most intervals that are kept of one direction; each takes about 120 bytes, and 200 in JSON. Enough for more than an
/// hour of one-second intervals.
const MAX_INTERVALS: usize = 4096;

/// Intervals in order. If there are too many, neighbours are joined in pairs, and later intervals are joined in the
/// same number: bytes add up, so the kept intervals stay exact and are only less detailed.
#[derive(Debug)]
pub struct JoinedIntervals {
    intervals: Vec<Interval>,
    /// How many shown intervals become one kept interval.
    each: usize,
    /// How many are in the last kept interval so far.
    open: usize,
}

impl Default for JoinedIntervals {
    fn default() -> Self {
        Self { intervals: Vec::new(), each: 1, open: 0 }
    }
}

impl JoinedIntervals {
    /// Takes the next interval.
    pub fn push(&mut self, next: Interval) {
        match self.intervals.last_mut().filter(|_| self.open < self.each) {
            Some(last) => {
                *last = join(last, &next);
                self.open += 1;
            }
            None => {
                self.intervals.push(next);
                self.open = 1;
            }
        }
        if self.intervals.len() > MAX_INTERVALS {
            self.halve();
        }
    }

    /// When the newest interval ended, seconds; 0 before the first.
    pub fn until_s(&self) -> f64 {
        self.intervals.last().map_or(0.0, |last| last.to_s)
    }

    /// Length of the kept intervals, seconds, if they are longer than the shown ones.
    pub fn every_s(&self) -> Option<f64> {
        let first = self.intervals.first().filter(|_| self.each > 1)?;
        Some(first.to_s - first.from_s)
    }

    /// All remaining intervals.
    pub fn into_intervals(self) -> Vec<Interval> {
        self.intervals
    }

    fn halve(&mut self) {
        if self.intervals.len().is_multiple_of(2) {
            self.open += self.each;
        }
        self.each *= 2;
        let pairs = self.intervals.chunks(2);
        self.intervals = pairs
            .map(|pair| match pair {
                [first, second] => join(first, second),
                rest => rest[0].clone(),
            })
            .collect();
    }
}

/// Joins two consecutive intervals of one direction.
fn join(first: &Interval, second: &Interval) -> Interval {
    let (from_s, to_s) = (first.from_s, second.to_s);
    let bytes = || -> Result<u64, Missing> {
        let (first, second) = (first.received_bytes.get()?, second.received_bytes.get()?);
        // Each is the difference of two 64-bit counters; the second begins where the first ends.
        Ok(first.saturating_add(*second))
    };
    let bytes = bytes();
    let goodput = bytes.clone().and_then(|bytes| {
        let empty = || Missing::because("an interval of no length has no rate");
        BitRate::over(bytes, to_s - from_s).ok_or_else(empty)
    });
    let bits = |one: &Interval| Some(one.sent_bits_per_s?.0 * (one.to_s - one.from_s));
    let sent = bits(first).zip(bits(second)).map(|(a, b)| BitRate((a + b) / (to_s - from_s)));
    Interval {
        sender: first.sender,
        from_s,
        to_s,
        received_bytes: Known::from(bytes),
        goodput_bits_per_s: Known::from(goodput),
        sent_bits_per_s: sent,
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::EndName;

    use super::*;

    fn interval(second: u64) -> Interval {
        let bytes = 1000 + second % 7;
        Interval {
            sender: EndName::Near,
            from_s: second as f64,
            to_s: (second + 1) as f64,
            received_bytes: Known::Value(bytes),
            goodput_bits_per_s: Known::Value(BitRate(bytes as f64 * 8.0)),
            sent_bits_per_s: None,
        }
    }

    fn joined(seconds: u64) -> JoinedIntervals {
        let mut joined = JoinedIntervals::default();
        (0..seconds).for_each(|second| joined.push(interval(second)));
        joined
    }

    #[test]
    fn what_is_short_is_kept_as_it_was_shown() {
        let joined = joined(MAX_INTERVALS as u64);
        assert_eq!(joined.every_s(), None);
        assert_eq!(
            joined.into_intervals(),
            (0..MAX_INTERVALS as u64).map(interval).collect::<Vec<_>>()
        );
    }

    #[test]
    fn however_many_there_were_bytes_and_times_add_up() {
        for seconds in [MAX_INTERVALS as u64 + 1, MAX_INTERVALS as u64 + 2, 86_399, 86_400] {
            let joined = joined(seconds);
            let every_s = joined.every_s().unwrap();
            let left = joined.into_intervals();
            assert!((MAX_INTERVALS / 2..=MAX_INTERVALS).contains(&left.len()), "{}", left.len());
            assert!(left.windows(2).all(|pair| pair[0].to_s == pair[1].from_s));
            assert_eq!((left[0].from_s, left[left.len() - 1].to_s), (0.0, seconds as f64));
            for one in &left {
                let mine = one.from_s as u64..one.to_s as u64;
                let bytes: u64 = mine.map(|second| 1000 + second % 7).sum();
                assert_eq!(one.received_bytes, Known::Value(bytes));
                let rate = one.goodput_bits_per_s.value().unwrap().0;
                assert!((rate * (one.to_s - one.from_s) - bytes as f64 * 8.0).abs() < 1e-3);
            }
            let whole = &left[..left.len() - 1];
            assert!(whole.iter().all(|one| one.to_s - one.from_s == every_s), "{seconds}");
        }
    }

    #[test]
    fn what_is_not_known_of_a_part_is_not_known_of_the_whole() {
        let unknown = || Known::missing("the far end does not report it");
        let unreported = Interval {
            received_bytes: unknown(),
            goodput_bits_per_s: Known::missing("the far end does not report it"),
            ..interval(1)
        };
        let both = join(&interval(0), &unreported);
        assert_eq!(both.received_bytes, unknown());
        assert!(both.goodput_bits_per_s.value().is_none());
    }

    #[test]
    fn what_was_sent_is_the_mean_by_time() {
        let sent = |second, length, rate| Interval {
            to_s: second as f64 + length,
            sent_bits_per_s: Some(BitRate(rate)),
            ..interval(second)
        };
        let both = join(&sent(0, 1.0, 300.0), &sent(1, 2.0, 600.0));
        assert_eq!(both.sent_bits_per_s, Some(BitRate(500.0)));
    }
}
