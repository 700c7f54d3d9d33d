//! When rounds run: how many fit into a day's windows, and when a mesh is done.

use crate::mesh::{Mesh, Window};

/// Seconds of a day.
pub(super) const DAY_S: f64 = 86_400.0;

/// Sums of seconds are no more exact.
const TINY_S: f64 = 1e-6;
/// Days after which the meshes that begin in one repeat: a mesh may take several.
const LOOKED_AT_S: f64 = 8.0 * DAY_S;

/// Most meshes that are looked at: a plan must be there at once.
const MOST_BEGINS: usize = 1_000_000;

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

    /// Rounds that fit into a window from this second of the day (UTC) on, if it is open.
    fn room_in(&self, window: Window, of_day_s: f64) -> usize {
        if window.length_s() >= DAY_S {
            return usize::MAX;
        }
        let since_s = (of_day_s - f64::from(window.from_min) * 60.0).rem_euclid(DAY_S);
        ((window.length_s() - since_s + TINY_S) / self.round_s).max(0.0) as usize
    }

    /// The window that has room for a round first, at this second of the day (UTC), and the seconds until then: 0 if a round
    /// that begins now ends within it. `None` if no window has room for one.
    fn opening(&self, of_day_s: f64) -> Option<(f64, Window)> {
        let fitting = self.windows.iter().copied().filter(|window| self.rounds_in(*window) > 0);
        let waits = fitting.map(|window| {
            let since_s = (of_day_s - f64::from(window.from_min) * 60.0).rem_euclid(DAY_S);
            let wait_s = if self.room_in(window, of_day_s) > 0 { 0.0 } else { DAY_S - since_s };
            (wait_s, window)
        });
        waits.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// Meshes of so many rounds that begin within 24 hours, at most, if each begins `every_s` seconds after the one before,
    /// or when that has ended, or when a window opens.
    pub(super) fn meshes_per_day(&self, rounds: usize, every_s: f64) -> u32 {
        let mut most = 1;
        for first in self.windows.iter().filter(|window| self.rounds_in(**window) > 0) {
            let from_s = f64::from(first.from_min) * 60.0;
            let begins = self.begins(from_s, rounds, every_s);
            let within_a_day = |(number, begin): (usize, &f64)| {
                begins.partition_point(|other| *other < begin + DAY_S - TINY_S) - number
            };
            most = begins.iter().enumerate().map(within_a_day).max().unwrap_or(1).max(most);
        }
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// When meshes begin within a few days, seconds after a midnight.
    fn begins(&self, first_s: f64, rounds: usize, every_s: f64) -> Vec<f64> {
        let mut begins = Vec::new();
        let mut next_s = first_s;
        while next_s < first_s + LOOKED_AT_S && begins.len() < MOST_BEGINS {
            let Some((wait_s, _)) = self.opening(next_s.rem_euclid(DAY_S)) else { break };
            let begin_s = next_s + wait_s;
            begins.push(begin_s);
            next_s = (begin_s + every_s).max(self.end_s(begin_s, rounds));
        }
        begins
    }

    /// When a mesh of so many rounds ends that begins then, in seconds of the same count.
    fn end_s(&self, begin_s: f64, rounds: usize) -> f64 {
        let (mut now_s, mut left) = (begin_s, rounds);
        while left > 0 {
            let Some((wait_s, window)) = self.opening(now_s.rem_euclid(DAY_S)) else { break };
            now_s += wait_s;
            let room = self.room_in(window, now_s.rem_euclid(DAY_S)).clamp(1, left);
            now_s += room as f64 * self.round_s;
            left -= room;
        }
        now_s
    }
}

/// When a round of this mesh may begin, at `now_s`, seconds since 1970: the window, and the seconds until it opens. None if it
/// may begin now.
pub fn opening(mesh: &Mesh, now_s: f64) -> Option<(f64, Window)> {
    let calendar = Calendar::new(&mesh.windows, mesh.round_s());
    // A mesh without room for a round is refused when its file is read.
    calendar.opening(now_s.rem_euclid(DAY_S)).filter(|(wait_s, _)| *wait_s > 0.0)
}

/// Seconds until a round of this mesh may begin, at `now_s`, seconds since 1970; 0 within a window that has room for it.
pub fn opens_in_s(mesh: &Mesh, now_s: f64) -> f64 {
    opening(mesh, now_s).map_or(0.0, |(wait_s, _)| wait_s)
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
        let wait = |calendar: &Calendar, at_s| calendar.opening(at_s).map(|(wait_s, _)| wait_s);
        let at = |hour: f64, minute: f64| wait(&calendar, hour * 3600.0 + minute * 60.0);
        assert_eq!(at(12.0, 0.0), Some(0.0));
        assert_eq!(at(11.0, 59.0), Some(60.0));
        assert_eq!(at(12.0, 1.0), Some(10.0 * 3600.0 - 60.0), "it would not end in time");
        assert_eq!(at(22.0, 50.0), Some(0.0));
        assert_eq!(at(22.0, 51.0), Some(13.0 * 3600.0 + 9.0 * 60.0), "at noon of the next day");
        let whole_day = [Window { from_min: 60, length_min: 1440 }];
        assert_eq!(wait(&Calendar::new(&whole_day, 600.0), 3599.0), Some(0.0));
        assert_eq!(wait(&Calendar::new(&windows, 6000.0), 0.0), None);
        assert_eq!(calendar.opening(12.5 * 3600.0), Some((9.5 * 3600.0, NIGHT)));
    }

    #[test]
    fn meshes_of_a_day_begin_within_its_windows() {
        let of = |windows: &[Window], round_s, rounds, every_s| {
            Calendar::new(windows, round_s).meshes_per_day(rounds, every_s)
        };
        let hours = |hours: f64| hours * 3600.0;
        let night = [Window { from_min: 1320, length_min: 480 }];
        assert_eq!(of(&night, 60.0, 10, hours(6.0)), 2, "22:00 and 04:00");
        assert_eq!(of(&night, 60.0, 10, hours(1.0)), 8, "not once more when it closes");
        assert_eq!(of(&night, 60.0, 10, hours(24.0)), 1);
        assert_eq!(of(&[NOON, NIGHT], 600.0, 1, hours(1.0)), 2, "one at noon, one at night");
        assert_eq!(of(&[NOON], 600.0, 3, hours(1.0)), 1, "it takes three days");
        let whole_day = [Window { from_min: 60, length_min: 1440 }];
        assert_eq!(of(&whole_day, 60.0, 10, hours(6.0)), 4);
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
