//! When probes are sent and given up, and their outcome.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Time between two probes. They are sent whether or not earlier ones were answered: waiting for an answer first would
/// measure bad times less often than good ones.
pub const PROBE_INTERVAL: Duration = Duration::from_millis(20);

/// Most round trips that are kept of one phase: eleven minutes of them. Beyond that, every second one is dropped and
/// half as many new ones are kept, so that they are spread over all of a long phase.
const MAX_KEPT_ROUND_TRIPS: usize = 1 << 15;

/// An answer that takes longer does not come any more.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Longest time that a thread sleeps without looking at its [`Halt`].
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const PHASE_FINISHED: u8 = 1;
const PHASE_ABANDONED: u8 = 2;

/// Ends the probing threads: politely, or at once.
#[derive(Default)]
pub struct Halt(AtomicU8);

impl Halt {
    /// No more probes.
    pub fn finish(&self) {
        self.0.fetch_max(PHASE_FINISHED, Ordering::Relaxed);
    }

    /// Nobody waits for the answers any more.
    pub fn abandon(&self) {
        self.0.fetch_max(PHASE_ABANDONED, Ordering::Relaxed);
    }

    fn is_finished(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= PHASE_FINISHED
    }

    fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= PHASE_ABANDONED
    }
}

/// The outcome of one phase's probes.
#[derive(Debug)]
pub struct PhaseProbes {
    /// Times to the answers, microseconds, in order: each `of_every`-th.
    pub us: Vec<f64>,
    /// `us` has one of this many answers.
    pub of_every: u64,
    /// Number of answered probes.
    pub answered: u64,
    /// The shortest and the longest time of all answers.
    pub range_us: (f64, f64),
    /// Number of unanswered probes.
    pub lost: u64,
}

impl Default for PhaseProbes {
    fn default() -> Self {
        let range_us = (f64::INFINITY, 0.0);
        Self { us: Vec::new(), of_every: 1, answered: 0, range_us, lost: 0 }
    }
}

impl PhaseProbes {
    /// A probe was answered after this many microseconds.
    pub fn take(&mut self, us: f64) {
        self.range_us = (self.range_us.0.min(us), self.range_us.1.max(us));
        if self.answered.is_multiple_of(self.of_every) {
            self.us.push(us);
        }
        self.answered += 1;
        if self.us.len() > MAX_KEPT_ROUND_TRIPS {
            let mut number = 0;
            self.us.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.of_every *= 2;
        }
    }
}

/// Probes that wait for their answer, the oldest first; `T` identifies a probe.
pub struct Waiting<'a, T> {
    probes: PhaseProbes,
    out: Vec<(T, Instant)>,
    next: Instant,
    halt: &'a Halt,
}

impl<'a, T> Waiting<'a, T> {
    /// No probe yet; the first is due now.
    pub fn new(halt: &'a Halt) -> Self {
        Self { probes: PhaseProbes::default(), out: Vec::new(), next: Instant::now(), halt }
    }

    /// Whether a probe is due now. After a stall one is due, not all that were missed.
    pub fn is_due(&mut self) -> bool {
        self.is_due_at(Instant::now())
    }

    fn is_due_at(&mut self, now: Instant) -> bool {
        if now < self.next || self.halt.is_finished() {
            return false;
        }
        let next = self.next + PROBE_INTERVAL;
        self.next = if next > now { next } else { now + PROBE_INTERVAL };
        true
    }

    /// A probe was begun at `at`.
    pub fn sent(&mut self, probe: T, at: Instant) {
        self.out.push((probe, at));
    }

    /// A probe could not even be sent.
    pub fn not_sent(&mut self) {
        self.probes.lost += 1;
    }

    /// The probes without an answer so far.
    pub fn out(&self) -> impl Iterator<Item = &T> {
        self.out.iter().map(|(probe, _)| probe)
    }

    /// The probes for which `is` holds were answered at `at`, or not, as `was_answered` says.
    pub fn settle(
        &mut self,
        at: Instant,
        mut is: impl FnMut(&T) -> bool,
        mut was_answered: impl FnMut(&T) -> bool,
    ) {
        let probes = &mut self.probes;
        self.out.retain(|(probe, since)| {
            if !is(probe) {
                return true;
            }
            if was_answered(probe) {
                probes.take(at.saturating_duration_since(*since).as_nanos() as f64 / 1e3);
            } else {
                probes.lost += 1;
            }
            false
        });
    }

    /// Gives up probes that have waited too long. Returns whether anything is left to do.
    pub fn goes_on(&mut self) -> bool {
        self.goes_on_at(Instant::now())
    }

    fn goes_on_at(&mut self, now: Instant) -> bool {
        let all = self.out.len();
        self.out.retain(|(_, since)| now.saturating_duration_since(*since) < ANSWER_TIMEOUT);
        self.probes.lost += (all - self.out.len()) as u64;
        !(self.halt.is_abandoned() || self.halt.is_finished() && self.out.is_empty())
    }

    /// Longest sleep until the next probe is due.
    pub fn pause(&self) -> Duration {
        let left = self.next.saturating_duration_since(Instant::now());
        if self.halt.is_finished() {
            POLL_INTERVAL
        } else {
            left.min(POLL_INTERVAL).max(Duration::from_micros(1))
        }
    }

    /// The outcome of all probes.
    pub fn into_probes(self) -> PhaseProbes {
        self.probes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_late_or_not_at_all_is_distinguished() {
        let halt = Halt::default();
        let mut waiting = Waiting::new(&halt);
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        let now = after(3001);
        waiting.sent(1, began);
        waiting.sent(2, after(1001));
        waiting.sent(3, after(2001));
        assert!(waiting.goes_on_at(now));
        waiting.settle(now, |probe| *probe == 2, |_| true);
        waiting.settle(now, |probe| *probe == 2, |_| true);
        halt.finish();
        assert!(waiting.goes_on_at(now), "one may still be answered");
        waiting.settle(now, |_| true, |_| false);
        assert!(!waiting.goes_on_at(now));
        let probes = waiting.into_probes();
        assert_eq!((probes.us, probes.lost), (vec![2e6], 2));
    }

    #[test]
    fn a_long_phase_is_shown_by_as_many_spread_over_all_of_it() {
        let mut probes = PhaseProbes::default();
        let day = 24 * 60 * 60 * 50_u32;
        (0..day).for_each(|number| probes.take(f64::from(number)));
        assert!(
            (MAX_KEPT_ROUND_TRIPS / 2..=MAX_KEPT_ROUND_TRIPS).contains(&probes.us.len()),
            "{}",
            probes.us.len()
        );
        let gap = probes.of_every as f64;
        assert!(probes.us.iter().enumerate().all(|(at, us)| *us == at as f64 * gap));
        assert_eq!((probes.answered, probes.range_us), (u64::from(day), (0.0, f64::from(day - 1))));
    }

    #[test]
    fn probes_come_evenly_and_end_with_the_phase() {
        let halt = Halt::default();
        let mut waiting: Waiting<'_, u8> = Waiting::new(&halt);
        let first = waiting.next;
        assert!(waiting.is_due_at(first));
        assert!(!waiting.is_due_at(first));
        assert!(waiting.is_due_at(first + PROBE_INTERVAL));
        assert!(waiting.pause() <= PROBE_INTERVAL);
        let late = first + 10 * PROBE_INTERVAL;
        assert!(waiting.is_due_at(late));
        assert!(!waiting.is_due_at(late), "one after a stall, not as many as were missed");
        halt.finish();
        assert!(!waiting.is_due_at(late + PROBE_INTERVAL));
    }
}
