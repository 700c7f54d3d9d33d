//! When the far end's samples began, on this end's clock, while they arrive: the far clock is known only from its
//! report. Two things are certain. The far end began after it was asked to. It also began before its first sample
//! arrived, by at least the sample's own time. The truth lies between these bounds; their distance is the error.

use std::time::Instant;

/// Bounds for the far end's beginning, seconds after this end's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FarStart {
    /// When the far end was asked to begin, and when this end began.
    near: Option<(Instant, Instant)>,
    latest_s: Option<f64>,
}

impl FarStart {
    /// The far end is being asked now.
    pub fn asked(now: Instant) -> Self {
        Self { near: Some((now, now)), latest_s: None }
    }

    /// This end's samples count from `now`.
    pub fn began(&mut self, now: Instant) {
        if let Some((_, began)) = &mut self.near {
            *began = now;
        }
    }

    /// A sample that the far end took `at_s` after its beginning has arrived at `now`.
    pub fn heard(&mut self, now: Instant, at_s: f64) {
        let Some((_, began)) = self.near else { return };
        let later_s = now.saturating_duration_since(began).as_secs_f64() - at_s;
        // It can't have begun before it was asked, whatever it reports.
        let later_s = later_s.max(self.earliest_s());
        self.latest_s = Some(self.latest_s.map_or(later_s, |latest| latest.min(later_s)));
    }

    /// The far end began at least this much later than this end; usually negative.
    pub fn earliest_s(&self) -> f64 {
        self.near
            .map_or(0.0, |(asked, began)| -began.saturating_duration_since(asked).as_secs_f64())
    }

    /// The far end began no later than this. Before its first sample this is not a bound yet, and is not used.
    pub fn latest_s(&self) -> f64 {
        self.latest_s.unwrap_or_else(|| self.earliest_s())
    }

    /// How long the far end's samples have counted at `now`, at least, seconds.
    pub fn far_s(&self, now: Instant) -> f64 {
        let elapsed = |(_, began)| now.saturating_duration_since(began).as_secs_f64();
        self.near.map_or(0.0, elapsed) - self.latest_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_beginning_lies_between_what_was_asked_and_the_fastest_sample() {
        let asked = Instant::now();
        let mut start = FarStart::asked(asked);
        start.began(asked + ms(5));
        assert_eq!(start.earliest_s(), -0.005);
        // Began 40 ms after this end; its samples take 20 ms, the second 300 ms.
        for (at_ms, takes_ms) in [(100, 20), (200, 300), (300, 20)] {
            start.heard(asked + ms(5 + 40 + at_ms + takes_ms), at_ms as f64 / 1e3);
        }
        assert!((start.latest_s() - 0.06).abs() < 1e-9, "{start:?}");
        assert!((start.earliest_s()..=start.latest_s()).contains(&0.04));
        // 400 ms after this end began, the far end has counted for at least 340 ms.
        assert!((start.far_s(asked + ms(405)) - 0.34).abs() < 1e-9, "{start:?}");
    }

    #[test]
    fn a_far_end_that_makes_its_times_up_is_held_to_what_is_possible() {
        let asked = Instant::now();
        let mut start = FarStart::asked(asked);
        start.began(asked);
        for at_s in [1e9, f64::INFINITY, f64::NAN] {
            start.heard(asked + ms(10), at_s);
            assert!(start.latest_s().is_finite(), "{at_s} {start:?}");
        }
        assert_eq!((start.earliest_s(), start.latest_s()), (0.0, 0.0));
        assert_eq!(FarStart::default().latest_s(), 0.0);
    }
}
