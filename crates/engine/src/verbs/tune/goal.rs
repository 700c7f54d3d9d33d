//! The most that the path could carry: tuning ends when it is reached.

use goodput_model::{BitRate, Purpose, Record};

/// The ceiling of the first measurement, for tuning that is about throughput.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    ceiling: BitRate,
    /// Smallest gain that counts, percent.
    least_percent: f64,
}

impl Goal {
    /// `None` if no ceiling is known, or if more goodput is not what tuning is for.
    pub fn of(start: &Record, purpose: Purpose, least_percent: f64) -> Option<Self> {
        let ceiling = start.result.ceiling_bits_per_s.value();
        let ceiling = ceiling.copied().filter(|_| purpose == Purpose::Throughput)?;
        Some(Self { ceiling, least_percent })
    }

    /// Reports in words if less than the smallest gain lies between the goodput and the ceiling. A goodput well above it
    /// shows that the ceiling is another: the fault was in what it was computed from.
    pub fn reached(self, goodput: BitRate) -> Option<String> {
        let Self { ceiling, least_percent } = self;
        let ratio = 1.0 + least_percent / 100.0;
        (ceiling.0 / ratio..=ceiling.0 * ratio).contains(&goodput.0).then(|| {
            format!("{goodput} is within {least_percent} % of {ceiling}, the most that this path could carry")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_reached_from_either_side_and_not_from_afar() {
        let goal = Goal { ceiling: BitRate(100e6), least_percent: 3.0 };
        let reached = |goodput| goal.reached(BitRate(goodput)).is_some();
        assert!(reached(98e6) && reached(102e6));
        assert!(!reached(82e6) && !reached(150e6));
    }
}
