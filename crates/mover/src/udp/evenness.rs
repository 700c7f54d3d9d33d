//! How evenly the datagrams of a paced flow arrived, by the kernel's arrival times. Pure.

use goodput_model::BitRate;

use super::inbox::Arrival;

/// How far a gap may differ from the rate's gap and still be even, as a fraction of it.
const EVEN_GAP_TOLERANCE: f64 = 0.2;

/// Counts gaps between consecutive datagrams that came in separate packets.
#[derive(Debug, Default)]
pub(crate) struct Evenness {
    /// The time of one byte at the rate, nanoseconds; `None` if there is no rate to hold.
    ns_per_byte: Option<f64>,
    /// Number, time and length of the last datagram, unless its time is that of another's packet.
    last: Option<(u64, u64, usize)>,
    /// Gaps that were seen.
    pub(crate) gaps: u64,
    /// Gaps within a fifth of the rate's gap.
    pub(crate) even: u64,
}

impl Evenness {
    /// For a flow that is expected to hold `rate`.
    pub(crate) fn new(rate: Option<BitRate>) -> Self {
        let rate = rate.filter(|rate| rate.0 > 0.0);
        Self { ns_per_byte: rate.map(|rate| 8e9 / rate.0), ..Self::default() }
    }

    /// The datagram `number` has come.
    pub(crate) fn arrived(&mut self, number: u64, arrival: &Arrival<'_>) {
        let Some(ns_per_byte) = self.ns_per_byte else { return };
        let came = (number, arrival.received_ns, arrival.datagram.len());
        let last = std::mem::replace(&mut self.last, arrival.is_first.then_some(came));
        let Some((before, from_ns, len)) = last.filter(|_| arrival.is_first) else { return };
        if before + 1 != number {
            return;
        }
        let ideal_ns = len as f64 * ns_per_byte;
        // The wall clock of the timestamps may be set back.
        let gap_ns = arrival.received_ns as f64 - from_ns as f64;
        self.gaps += 1;
        self.even += u64::from((gap_ns - ideal_ns).abs() <= EVEN_GAP_TOLERANCE * ideal_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(arrivals: &[(u64, u64, bool)]) -> (u64, u64) {
        // 100 bytes take 1000 ns.
        let mut evenness = Evenness::new(Some(BitRate(8e8)));
        for &(number, received_ns, is_first) in arrivals {
            evenness.arrived(number, &Arrival { datagram: &[0; 100], received_ns, is_first });
        }
        (evenness.gaps, evenness.even)
    }

    #[test]
    fn a_gap_within_a_fifth_of_the_ideal_is_even() {
        assert_eq!(
            after(&[(0, 0, true), (1, 800, true), (2, 2000, true), (3, 2799, true)]),
            (3, 2)
        );
        assert_eq!(after(&[(0, 5000, true), (1, 0, true)]), (1, 0), "the clock was set");
    }

    #[test]
    fn what_was_lost_late_or_joined_has_no_gap() {
        assert_eq!(after(&[(0, 0, true), (2, 1000, true), (1, 2000, true)]), (0, 0));
        assert_eq!(after(&[(0, 0, true), (1, 0, false), (2, 1000, true), (3, 2000, true)]), (1, 1));
        assert_eq!(Evenness::new(None).gaps, 0);
    }
}
