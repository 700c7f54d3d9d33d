//! What held up a watch, so that who is late says why.

use std::time::Duration;

use crate::history_thread::Delay;
use crate::report::watch::{HeldUp, HistoryDelay, TestTook};

/// Share of the time below which something is not named: it was not the reason.
const NAMED: f64 = 0.1;

/// What took the time since a turn was due.
#[derive(Debug, Default)]
pub struct SinceDue {
    due_s: f64,
    turn: Duration,
    test: Option<(String, Duration)>,
}

impl SinceDue {
    /// A turn that is due then, seconds since the watch began.
    pub fn new(due_s: f64) -> Self {
        Self { due_s, ..Self::default() }
    }

    /// It waited this long for the turn to test on this host.
    pub fn waited(&mut self, turn: Duration) {
        self.turn += turn;
    }

    /// The test of this target took this long.
    pub fn tested(&mut self, target: &str, took: Duration) {
        self.test = Some((target.into(), took));
    }

    /// What took most of the time until `now_s`. What is left is that of this host, which did not let the watch go on.
    pub fn because(&self, now_s: f64, history: Delay) -> HeldUp {
        let all_s = now_s - self.due_s;
        let is_named = |took_s: f64| took_s > 0.0 && took_s >= NAMED * all_s;
        let (turn_s, history_s) = (self.turn.as_secs_f64(), history.took.as_secs_f64());
        let test_s = self.test.as_ref().map_or(0.0, |(_, took)| took.as_secs_f64());
        let named = |took_s: f64| Some(took_s).filter(|took_s| is_named(*took_s));
        let test = self.test.as_ref().zip(named(test_s));
        HeldUp {
            test: test.map(|((target, _), took_s)| TestTook { target: target.clone(), took_s }),
            turn_s: named(turn_s),
            history: named(history_s).map(|took_s| HistoryDelay { took_s, why: history.why }),
            host_s: named(all_s - turn_s - test_s - history_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn because(turn_s: u64, test_s: u64, history_s: u64, all_s: f64) -> HeldUp {
        let mut since = SinceDue::new(100.0);
        since.waited(Duration::from_secs(turn_s));
        since.tested("nas", Duration::from_secs(test_s));
        let history = Delay { took: Duration::from_secs(history_s), why: Some("locked".into()) };
        since.because(100.0 + all_s, history)
    }

    #[test]
    fn a_history_that_took_little_is_not_blamed_for_what_a_test_took() {
        let test = TestTook { target: "nas".into(), took_s: 60.0 };
        let expected = HeldUp { test: Some(test), ..HeldUp::default() };
        assert_eq!(because(0, 60, 3, 63.5), expected);
    }

    #[test]
    fn all_that_took_long_is_named() {
        let history = Some(HistoryDelay { took_s: 20.0, why: Some("locked".into()) });
        let expected = HeldUp { turn_s: Some(30.0), history, ..HeldUp::default() };
        assert_eq!(because(30, 1, 20, 51.5), expected);
    }

    #[test]
    fn what_neither_a_test_nor_the_history_took_is_that_of_a_busy_host() {
        assert_eq!(because(0, 1, 1, 40.0), HeldUp { host_s: Some(38.0), ..HeldUp::default() });
        assert_eq!(SinceDue::new(5.0).because(5.0, Delay::default()), HeldUp::default());
    }
}
