//! Interarrival jitter after RFC 3550 section 6.4.1. Pure.

/// The running estimate: J += (|D| - J) / 16, where D is the time between two arrivals minus the time between their
/// departures. The two clocks need not agree.
#[derive(Debug, Clone, Default)]
pub struct Jitter {
    last_transit_ns: Option<i128>,
    estimate_ns: f64,
}

impl Jitter {
    /// One more datagram, in order of arrival.
    pub fn arrived(&mut self, sent_ns: u64, received_ns: u64) {
        let transit = i128::from(received_ns) - i128::from(sent_ns);
        if let Some(last) = self.last_transit_ns.replace(transit) {
            let difference = (transit - last).unsigned_abs() as f64;
            self.estimate_ns += (difference - self.estimate_ns) / 16.0;
        }
    }

    /// The estimate, microseconds.
    pub fn us(&self) -> f64 {
        self.estimate_ns / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_stream_has_none_however_far_the_clocks_are_apart() {
        let mut jitter = Jitter::default();
        for at in 0..100 {
            jitter.arrived(u64::MAX - 1_000_000 + at, at);
        }
        assert_eq!(jitter.us(), 0.0);
    }

    #[test]
    fn a_sixteenth_of_each_difference_counts() {
        let mut jitter = Jitter::default();
        jitter.arrived(0, 1_000);
        jitter.arrived(10_000, 27_000);
        assert_eq!(jitter.us(), 1.0);
        jitter.arrived(20_000, 37_000);
        assert_eq!(jitter.us(), 0.9375);
    }
}
