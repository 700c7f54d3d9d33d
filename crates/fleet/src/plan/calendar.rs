//! When rounds run: how many fit into a day's windows, and when a mesh is done.

use crate::mesh::{Mesh, Window};

/// Seconds of a day.
pub(super) const DAY_S: f64 = 86_400.0;

/// The windows of a day, and the length of a round.
pub(super) struct Calendar<'a> {
    windows: &'a [Window],
    round_s: f64,
}

impl<'a> Calendar<'a> {
    /// `windows` in the order of their beginnings; none: all day.
    pub(super) fn new(windows: &'a [Window], round_s: f64) -> Self {
        Self { windows, round_s }
    }

    /// Rounds that fit into a window.
    fn rounds_in(&self, window: Window) -> usize {
        (window.length_s() / self.round_s) as usize
    }

    /// From the beginning of the first round to the end of the last one, seconds; the first round begins with the first
    /// window in which one fits. `None` if no window has room for one.
    pub(super) fn done_after_s(&self, rounds: usize) -> Option<f64> {
        if self.windows.is_empty() {
            return Some(rounds as f64 * self.round_s);
        }
        let fitting: Vec<Window> =
            self.windows.iter().copied().filter(|window| self.rounds_in(*window) > 0).collect();
        let begin_min = fitting.first()?.from_min;
        let in_a_day: usize = fitting.iter().map(|window| self.rounds_in(*window)).sum();
        let days = rounds.saturating_sub(1) / in_a_day;
        let mut rest = rounds - days * in_a_day;
        for window in fitting {
            let room = self.rounds_in(window);
            if rest <= room {
                let opens_s = f64::from(window.from_min - begin_min) * 60.0;
                return Some(days as f64 * DAY_S + opens_s + rest as f64 * self.round_s);
            }
            rest -= room;
        }
        None
    }

    /// Seconds until a round may begin, at this second of the day (UTC). 0: one that begins now ends within its window.
    /// `None` if no window has room for one.
    fn opens_in_s(&self, of_day_s: f64) -> Option<f64> {
        if self.windows.is_empty() {
            return Some(0.0);
        }
        let fitting = self.windows.iter().filter(|window| self.rounds_in(**window) > 0);
        let waits = fitting.map(|window| {
            let since_s = (of_day_s - f64::from(window.from_min) * 60.0).rem_euclid(DAY_S);
            let (length_s, is_always) = (window.length_s(), window.length_s() >= DAY_S);
            if is_always || since_s + self.round_s <= length_s { 0.0 } else { DAY_S - since_s }
        });
        waits.reduce(f64::min)
    }
}

/// Seconds until a round of this mesh may begin, at `now_s`, seconds since 1970; 0 within a window that has room for it.
pub fn opens_in_s(mesh: &Mesh, now_s: f64) -> f64 {
    let calendar = Calendar::new(&mesh.windows, mesh.round_s());
    // A mesh without room for a round is refused when its file is read.
    calendar.opens_in_s(now_s.rem_euclid(DAY_S)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NIGHT: Window = Window { from_min: 1320, length_min: 60 };
    const NOON: Window = Window { from_min: 720, length_min: 10 };

    #[test]
    fn rounds_go_on_in_the_next_window_and_on_the_next_day() {
        let windows = [NOON, NIGHT];
        let calendar = Calendar::new(&windows, 600.0);
        assert_eq!(calendar.done_after_s(1), Some(600.0));
        assert_eq!(calendar.done_after_s(2), Some(36_000.0 + 600.0));
        assert_eq!(calendar.done_after_s(7), Some(36_000.0 + 3600.0));
        assert_eq!(calendar.done_after_s(8), Some(DAY_S + 600.0));
        assert_eq!(Calendar::new(&[], 600.0).done_after_s(8), Some(4800.0));
        assert_eq!(Calendar::new(&windows, 6000.0).done_after_s(1), None);
    }

    #[test]
    fn a_round_waits_for_a_window_that_has_room_for_it() {
        let windows = [NOON, NIGHT];
        let calendar = Calendar::new(&windows, 600.0);
        let at = |hour: f64, minute: f64| calendar.opens_in_s(hour * 3600.0 + minute * 60.0);
        assert_eq!(at(12.0, 0.0), Some(0.0));
        assert_eq!(at(11.0, 59.0), Some(60.0));
        assert_eq!(at(12.0, 1.0), Some(10.0 * 3600.0 - 60.0), "it would not end in time");
        assert_eq!(at(22.0, 50.0), Some(0.0));
        assert_eq!(at(22.0, 51.0), Some(13.0 * 3600.0 + 9.0 * 60.0), "at noon of the next day");
        let whole_day = [Window { from_min: 60, length_min: 1440 }];
        assert_eq!(Calendar::new(&whole_day, 600.0).opens_in_s(3599.0), Some(0.0));
        assert_eq!(Calendar::new(&[], 600.0).opens_in_s(5.0), Some(0.0));
        assert_eq!(Calendar::new(&windows, 6000.0).opens_in_s(0.0), None);
    }

    proptest! {
        #[test]
        fn more_rounds_take_longer(rounds in 1usize..500, round_s in 1.0f64..3600.0) {
            let windows = [NOON, NIGHT];
            let calendar = Calendar::new(&windows, round_s);
            let done = |rounds| calendar.done_after_s(rounds).unwrap();
            prop_assert!(done(rounds + 1) > done(rounds));
            prop_assert!(done(rounds) >= rounds as f64 * round_s - 1e-6);
        }
    }
}
