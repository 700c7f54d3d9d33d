//! A change that takes the one before it back: the path was different for a while only, or not at all.

use goodput_model::Estimate;

/// Longest time that a change may have lasted, seconds, to have been none that lasts: two days, if tests come often. After that, the
/// path's usual goodput is another one, and what comes is a change of it.
pub(crate) const MOST_S: f64 = 2.0 * 86_400.0;

/// A change of a path, by its size alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// When the first test after it began, seconds since 1970.
    pub(crate) at_s: f64,
    /// Goodput since, divided by that before, with its interval.
    pub(crate) ratio: Estimate,
}

impl Step {
    /// Whether the path is as before `earlier` again, which lasted `most_s` seconds at most: as far as the intervals tell, both
    /// together change nothing.
    pub(crate) fn takes_back(&self, earlier: &Self, most_s: f64) -> bool {
        let lasted_s = self.at_s - earlier.at_s;
        let opposite = (self.ratio.value < 1.0) != (earlier.ratio.value < 1.0);
        let (low, high) =
            (self.ratio.low * earlier.ratio.low, self.ratio.high * earlier.ratio.high);
        (0.0..=most_s).contains(&lasted_s) && opposite && low <= 1.0 && high >= 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(hours: f64, value: f64) -> Step {
        let ratio = Estimate { value, low: value - 0.02, high: value + 0.02 };
        Step { at_s: hours * 3600.0, ratio }
    }

    #[test]
    fn a_path_that_is_as_before_soon_takes_its_change_back() {
        let drop = step(100.0, 0.9);
        assert!(step(120.0, 1.0 / 0.9).takes_back(&drop, MOST_S));
        assert!(step(120.0, 0.9).takes_back(&step(100.0, 1.1), MOST_S));
        assert!(step(149.0, 1.11).takes_back(&drop, 2.0 * MOST_S));
        for other in [step(149.0, 1.11), step(99.0, 1.11), step(120.0, 1.3), step(120.0, 0.99)] {
            assert!(!other.takes_back(&drop, MOST_S), "{other:?}");
        }
    }
}
