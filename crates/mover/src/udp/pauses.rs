//! The pauses between the packets of a flow that arrived, counted by their length. Pure.

use goodput_model::{GapBin, Gaps};

use super::inbox::Arrival;

/// Beginning of the first bin, nanoseconds; each other bin begins at twice the time of the one before.
const FIRST_BIN_NS: u64 = 1000;

/// Enough for any time.
const BINS: usize = (u64::MAX / FIRST_BIN_NS).ilog2() as usize + 1;

/// Pauses between packets with payload.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// When the last packet came, nanoseconds since 1970.
    last_ns: Option<u64>,
    longest_ns: u64,
    counts: [u64; BINS],
}

impl Default for Pauses {
    fn default() -> Self {
        Self { last_ns: None, longest_ns: 0, counts: [0; BINS] }
    }
}

impl Pauses {
    /// A datagram came. The pause before one that came joined to another is unknown.
    pub(crate) fn arrived(&mut self, arrival: &Arrival<'_>) {
        if !arrival.is_first {
            return;
        }
        let last_ns = self.last_ns.replace(arrival.received_ns);
        // The wall clock of the timestamps may be set back.
        let pause_ns = last_ns.and_then(|last_ns| arrival.received_ns.checked_sub(last_ns));
        if let Some(pause_ns) = pause_ns {
            self.longest_ns = self.longest_ns.max(pause_ns);
            self.counts[(pause_ns / FIRST_BIN_NS).max(1).ilog2() as usize] += 1;
        }
    }

    /// The pauses so far.
    pub(crate) fn gaps(&self) -> Gaps {
        let bins = self.counts.iter().zip(0..).filter(|(count, _)| **count > 0);
        let from_s = |bin: i32| FIRST_BIN_NS as f64 / 1e9 * 2f64.powi(bin);
        let histogram = bins.map(|(count, bin)| GapBin { from_s: from_s(bin), count: *count });
        Gaps {
            longest_s: self.longest_ns as f64 / 1e9,
            histogram: histogram.collect(),
            rhythm: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(arrivals: &[(u64, bool)]) -> Gaps {
        let mut pauses = Pauses::default();
        for &(received_ns, is_first) in arrivals {
            pauses.arrived(&Arrival { datagram: &[], received_ns, is_first });
        }
        pauses.gaps()
    }

    fn counts(gaps: &Gaps) -> Vec<(f64, u64)> {
        gaps.histogram.iter().map(|bin| ((bin.from_s * 1e6).round(), bin.count)).collect()
    }

    #[test]
    fn pauses_are_counted_by_powers_of_two_of_a_microsecond() {
        let times = [0, 100, 1_100, 3_099, 5_099, 9_099, 1_009_099].map(|at_ns| (at_ns, true));
        let gaps = after(&times);
        assert_eq!(counts(&gaps), [(1.0, 3), (2.0, 1), (4.0, 1), (512.0, 1)]);
        assert_eq!(gaps.longest_s, 1e-3);
        assert_eq!(after(&[(0, true), (u64::MAX, true)]).histogram.len(), 1);
    }

    #[test]
    fn what_was_joined_or_came_before_a_clock_was_set_back_has_no_pause() {
        assert_eq!(counts(&after(&[(5_000, true), (5_000, false), (7_000, true)])), [(2.0, 1)]);
        assert_eq!(counts(&after(&[(9_000, true), (1_000, true), (5_000, true)])), [(4.0, 1)]);
        assert_eq!(after(&[(5_000, true)]), Gaps::default());
    }
}
