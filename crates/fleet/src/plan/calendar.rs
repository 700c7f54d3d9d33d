//! When rounds run: how many fit into a day's windows, and when a mesh is done.

use crate::mesh::{Mesh, Window};

/// Seconds of a day.
pub(super) const DAY_S: f64 = 86_400.0;

/// Sums of seconds are no more exact.
const TINY_S: f64 = 1e-6;

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
        steps(window.length_s(), self.round_s)
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
        steps(window.length_s() - since_s, self.round_s)
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

    /// Meshes of so many rounds that begin within any 24 hours, at most, if each begins `every_s` seconds after the one
    /// before, or when that has ended, or when a window opens; the first one may begin anywhere within a window.
    pub(super) fn meshes_per_day(&self, rounds: usize, every_s: f64) -> u32 {
        let rounds = rounds.max(1);
        let apart_s = every_s.max(rounds as f64 * self.round_s);
        let fitting = || self.windows.iter().filter(|window| self.rounds_in(**window) > 0);
        let in_windows: usize =
            fitting().map(|window| steps(self.begins_within_s(*window), apart_s) + 1).sum();
        // 24 hours can begin within a window, and end there on the next day: each of both parts has a first mesh.
        let may_cut = fitting().any(|window| self.begins_within_s(*window) > TINY_S);
        // All but the last one end before it begins.
        let in_a_day: usize = fitting().map(|window| self.rounds_in(*window)).sum();
        let by_time = (DAY_S / apart_s).ceil() as usize;
        let most = (in_windows + usize::from(may_cut)).min(in_a_day / rounds + 1).min(by_time);
        u32::try_from(most.max(1)).unwrap_or(u32::MAX)
    }

    /// From the first to the last second of a window at which a round can begin.
    fn begins_within_s(&self, window: Window) -> f64 {
        let is_all_day = window.length_s() >= DAY_S;
        if is_all_day { DAY_S } else { window.length_s() - self.round_s }
    }
}

/// How often `step_s` fits into `span_s`; 0 if that is negative.
fn steps(span_s: f64, step_s: f64) -> usize {
    ((span_s + TINY_S) / step_s).max(0.0) as usize
}

/// When a round of this mesh may begin, at `now_s`, seconds since 1970: the window, and the seconds until it opens. None if it
/// may begin now.
pub fn opening(mesh: &Mesh, now_s: f64) -> Option<(f64, Window)> {
    let calendar = Calendar::new(&mesh.windows, mesh.round_s());
    // A mesh without room for a round is refused when its file is read.
    calendar.opening(now_s.rem_euclid(DAY_S)).filter(|(wait_s, _)| *wait_s > 0.0)
}

/// Whether one more test of this mesh, within a round, may begin at `now_s`, seconds since 1970: it would end within a window.
pub fn has_window(mesh: &Mesh, now_s: f64) -> bool {
    let calendar = Calendar::new(&mesh.windows, mesh.length_s);
    let of_day_s = now_s.rem_euclid(DAY_S);
    mesh.windows.is_empty()
        || mesh.windows.iter().any(|window| calendar.room_in(*window, of_day_s) > 0)
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
    fn within_a_round_a_test_begins_only_if_it_ends_within_a_window() {
        let head = "[test]\nlength = \"100s\"\npause = \"20s\"\n";
        let sites = "[site.a]\ntarget = \"a\"\n[site.b]\n";
        let mesh = |windows: &str| Mesh::parse("x", &format!("{head}{windows}{sites}")).unwrap();
        let noon = mesh("windows = [\"12:00-12:04\"]\n");
        let at = |minute: f64| has_window(&noon, 3.0 * DAY_S + 12.0 * 3600.0 + minute * 60.0);
        assert!(at(0.0) && at(2.0), "the second test of a round that fits");
        assert!(!at(2.5), "the one before it took longer");
        assert!(!at(5.0) && !at(-1.0));
        assert!(has_window(&mesh(""), 0.0), "always");
    }

    #[test]
    fn meshes_of_a_day_begin_within_its_windows() {
        let of = |windows: &[Window], round_s, rounds, every_s| {
            Calendar::new(windows, round_s).meshes_per_day(rounds, every_s)
        };
        let hours = |hours: f64| hours * 3600.0;
        let night = [Window { from_min: 1320, length_min: 480 }];
        assert_eq!(of(&night, 60.0, 10, hours(6.0)), 3, "23:00, 05:00 and 22:00");
        assert_eq!(of(&night, 60.0, 10, hours(1.0)), 9, "22:30 to 05:30, and 22:00");
        assert_eq!(of(&night, 60.0, 10, hours(24.0)), 1);
        assert_eq!(of(&[NOON, NIGHT], 600.0, 1, hours(1.0)), 3, "22:30, 12:00 and 22:00");
        assert_eq!(of(&[NOON], 600.0, 1, hours(1.0)), 1, "at noon");
        assert_eq!(of(&[NOON], 600.0, 3, hours(1.0)), 1, "it takes three days");
        let whole_day = [Window { from_min: 60, length_min: 1440 }];
        assert_eq!(of(&whole_day, 60.0, 10, hours(6.0)), 4);
    }

    /// When the meshes of a week begin, seconds after a midnight.
    fn begins(calendar: &Calendar, first_s: f64, rounds: usize, every_s: f64) -> Vec<f64> {
        let mut begins = Vec::new();
        let mut next_s = first_s;
        while next_s < first_s + 7.0 * DAY_S {
            let mut now_s = next_s;
            for round in 0..rounds {
                now_s += calendar.opening(now_s.rem_euclid(DAY_S)).unwrap().0;
                if round == 0 {
                    begins.push(now_s);
                    next_s = now_s + every_s;
                }
                now_s += calendar.round_s;
            }
            next_s = next_s.max(now_s);
        }
        begins
    }

    proptest! {
        /// A mesh may begin at any time within a window: the number of a day holds for all of them.
        #[test]
        fn no_day_has_more_meshes_than_are_said(
            first_s in 0.0..DAY_S,
            rounds in 1usize..20,
            round_s in 60.0f64..600.0,
            every_s in 600.0..DAY_S,
        ) {
            let windows = [NOON, NIGHT, Window { from_min: 1410, length_min: 300 }];
            let calendar = Calendar::new(&windows, round_s);
            let begins = begins(&calendar, first_s, rounds, every_s);
            let most = calendar.meshes_per_day(rounds, every_s) as usize;
            for (number, begin) in begins.iter().enumerate() {
                let until = begins.partition_point(|other| *other < begin + DAY_S - 1e-3);
                prop_assert!(until - number <= most, "{} of {most} from {begin}", until - number);
            }
        }

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
