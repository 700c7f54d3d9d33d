//! The time in which the bucket was seen to be empty, in windows, and those of them in which a host stopped.
//!
//! A shaper's host that stops for longer than its bucket lasts loses tokens for good, and the datagrams after a sender's
//! pause may still find some. Both are in few windows, and far from the others.

use std::iter::Sum;

use crate::trace::{Came, Trace};

/// Number of windows, if the bucket was empty all the time.
const HELD_WINDOWS: f64 = 64.0;
/// Distance of a window's rate from the quartiles beyond which it is none of the usual ones, as a multiple of their
/// distance (Tukey, Exploratory Data Analysis, 1977).
const FENCE: f64 = 1.5;

/// What was let through in a time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Held {
    pub(crate) seconds: f64,
    pub(crate) bytes: f64,
}

impl Sum for Held {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::with)
    }
}

impl Held {
    /// From one arrival to a later one, each of which passed `at_s`.
    pub(crate) fn between(
        trace: &Trace,
        from: usize,
        to: usize,
        at_s: impl Fn(&Came) -> f64,
    ) -> Self {
        Self {
            seconds: at_s(&trace.came[to]) - at_s(&trace.came[from]),
            bytes: (to - from) as f64 * trace.frame,
        }
    }

    /// Both together.
    pub(crate) fn with(self, other: Self) -> Self {
        Self { seconds: self.seconds + other.seconds, bytes: self.bytes + other.bytes }
    }

    /// Bytes per second.
    pub(crate) fn rate(self) -> f64 {
        self.bytes / self.seconds
    }
}

/// Windows of nearly the same length, each of steps that need not be side by side.
pub(crate) fn windows(steps: &[Held]) -> Vec<Held> {
    let held_s: f64 = steps.iter().map(|step| step.seconds).sum();
    // Times add up to nearly the whole.
    let length_s = held_s / HELD_WINDOWS * (1.0 - f64::EPSILON * 1e3);
    let (mut windows, mut window) = (Vec::new(), Held::default());
    for step in steps {
        window = window.with(*step);
        if window.seconds >= length_s {
            windows.push(std::mem::take(&mut window));
        }
    }
    windows
}

/// From each arrival of a run to the next, at each of which a shaper's bucket was empty.
pub(crate) fn steps(trace: &Trace, run: &[usize]) -> Vec<Held> {
    let ends = run.iter().copied().filter(|place| is_last_at_its_time(trace, *place));
    let ends: Vec<usize> = ends.collect();
    let step = |two: &[usize]| Held::between(trace, two[0], two[1], |came| came.came_s);
    ends.windows(2).map(step).collect()
}

/// Whether no other arrival has the same time: a receiver times several that came together as one.
fn is_last_at_its_time(trace: &Trace, place: usize) -> bool {
    trace.came.get(place + 1).is_none_or(|next| next.came_s > trace.came[place].came_s)
}

/// The windows whose rates are near the others: between Tukey's fences, or as near as a frame at each end makes them
/// differ.
pub(crate) fn usual(windows: Vec<Held>, frame: f64) -> Vec<Held> {
    let mut rates: Vec<f64> = windows.iter().map(|window| window.rate()).collect();
    rates.sort_by(f64::total_cmp);
    let Some(last) = rates.len().checked_sub(1) else { return windows };
    let quartile = |share: f64| rates[(last as f64 * share).round() as usize];
    let (low, high) = (quartile(0.25), quartile(0.75));
    let is_usual = |window: &Held| {
        let far = (FENCE * (high - low)).max(2.0 * frame / window.seconds);
        (low - far..=high + far).contains(&window.rate())
    };
    windows.into_iter().filter(is_usual).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: f64 = 1000.0;

    fn trace(times: impl Iterator<Item = f64>) -> Trace {
        let came = times.map(|came_s| Came { sent_s: 0.0, came_s, wait_s: 1.0, lost_before: 0 });
        Trace { came: came.collect(), frame: FRAME }
    }

    fn rate(trace: &Trace, run: &[usize]) -> f64 {
        usual(windows(&steps(trace, run)), FRAME).into_iter().sum::<Held>().rate()
    }

    #[test]
    fn a_host_that_stops_changes_no_rate() {
        let trace =
            trace((0..10_000).map(|n| f64::from(n) * 1e-4 + if n > 3000 { 0.05 } else { 0.0 }));
        let whole: Vec<usize> = (0..10_000).collect();
        assert!((rate(&trace, &whole) / 1e7 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_that_is_uneven_everywhere_is_the_mean() {
        let mut at = 0.0;
        let uneven = trace((0..9999).map(|n| {
            at += if n % 9 < 4 { 2e-4 } else { 1e-4 };
            at
        }));
        let mean = 9998.0 * FRAME / uneven.came[9998].came_s;
        let whole: Vec<usize> = (0..9999).collect();
        assert!((rate(&uneven, &whole) / mean - 1.0).abs() < 1e-3);
    }

    #[test]
    fn what_came_at_one_time_is_in_one_window() {
        let joined = trace((0..8000).map(|n| f64::from(n / 20) * 2e-3));
        let whole: Vec<usize> = (0..8000).collect();
        let all = windows(&steps(&joined, &whole));
        assert!(all.iter().all(|one| (one.rate() / 1e7 - 1.0).abs() < 1e-9), "{all:?}");
    }

    #[test]
    fn nothing_has_no_windows() {
        assert_eq!(usual(windows(&[]), FRAME), []);
        assert_eq!(windows(&steps(&trace([0.0].into_iter()), &[0])), []);
    }
}
