//! Whether a low-water mark lets a reader sleep less often, found by turns with it and without it.
//!
//! A mark saves wake-ups if packets come one by one, as from a sender that paces. If they come faster than a reader
//! wakes, it finds many of them without a mark, and a mark only makes it begin late: the sender then fills its window
//! and waits, and both sleep more often. Over a veth pair with two CPUs and two flows of cubic, readers with a mark
//! slept after each 275 kB, and after each 400 kB without, and got 96 instead of 120 Gbit/s. With bbr they slept after
//! each 600 kB, and after each 135 kB without, and got 30 instead of 24 Gbit/s. So the mark is judged by what it is
//! for, the sleeps for the same bytes.

use nix::sys::resource::{UsageWho, getrusage};

/// Bytes of one turn: a few hundred sleeps of a single fast stream.
const TURN_BYTES: u64 = 32 << 20;
/// The turns of a trial: who goes first changes, so that a rate that rises or falls favours neither.
const TURNS: [Way; 8] = {
    use Way::{Marked, Plain};
    [Marked, Plain, Plain, Marked, Marked, Plain, Plain, Marked]
};
/// Bytes for which the outcome holds, then the next trial begins: a trial is a ninth of all bytes.
const HOLDS_BYTES: u64 = 8 * TURNS.len() as u64 * TURN_BYTES;

/// How a reader waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With a mark, if the stream is fast.
    Marked,
    /// For any bytes.
    Plain,
}

/// Trials of one reader, one after another.
#[derive(Debug)]
pub(crate) struct MarkTrial {
    /// The present turn; behind the last one while an outcome holds.
    turn: usize,
    /// How the reader waits now.
    way: Way,
    /// Bytes until the turn or the outcome is over.
    left: u64,
    /// Sleeps of the thread before this turn; `None` before the first turn.
    slept: Option<u64>,
    /// Sleeps in the turns so far, with a mark and without.
    sleeps: [u64; 2],
}

impl Default for MarkTrial {
    fn default() -> Self {
        Self { turn: 0, way: TURNS[0], left: TURN_BYTES, slept: None, sleeps: [0; 2] }
    }
}

impl MarkTrial {
    /// Whether the reader may have a mark now.
    pub(crate) fn allows_mark(&self) -> bool {
        self.way == Way::Marked
    }

    /// `bytes` were read. Only for the reader's own thread.
    pub(crate) fn read(&mut self, bytes: u64) {
        self.go_on(bytes, own_sleeps);
    }

    fn go_on(&mut self, bytes: u64, sleeps: impl FnOnce() -> u64) {
        if self.slept.is_some() && bytes < self.left {
            self.left -= bytes;
            return;
        }
        let now = sleeps();
        let Some(before) = self.slept.replace(now) else { return };
        if self.turn < TURNS.len() {
            self.sleeps[self.way as usize] += now.saturating_sub(before);
            self.turn += 1;
        } else {
            (self.turn, self.sleeps) = (0, [0; 2]);
        }
        (self.way, self.left) = match TURNS.get(self.turn) {
            Some(way) => (*way, TURN_BYTES),
            None => (self.better(), HOLDS_BYTES),
        };
    }

    /// Without a difference, a reader without a mark makes fewer calls.
    fn better(&self) -> Way {
        let [marked, plain] = self.sleeps;
        if marked < plain { Way::Marked } else { Way::Plain }
    }
}

/// How often the calling thread has slept so far (`ru_nvcsw`, getrusage(2)). 0 if the kernel does not say.
fn own_sleeps() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD);
    usage.ok().and_then(|usage| u64::try_from(usage.voluntary_context_switches()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a turn at a time until the outcome of the next trial holds, and returns it. The reader sleeps `marked`
    /// times in a turn with a mark, and `plain` times without.
    fn outcome(trial: &mut MarkTrial, marked: u64, plain: u64) -> Way {
        let mut slept = trial.slept.unwrap_or(0);
        trial.go_on(0, || slept);
        while trial.turn < TURNS.len() {
            slept += if trial.allows_mark() { marked } else { plain };
            trial.go_on(TURN_BYTES, || slept);
        }
        trial.way
    }

    #[test]
    fn the_way_with_fewer_sleeps_wins() {
        assert_eq!(outcome(&mut MarkTrial::default(), 50, 300), Way::Marked);
        assert_eq!(outcome(&mut MarkTrial::default(), 120, 80), Way::Plain);
        assert_eq!(outcome(&mut MarkTrial::default(), 0, 0), Way::Plain);
    }

    #[test]
    fn an_outcome_holds_until_the_next_trial_which_may_end_otherwise() {
        let mut trial = MarkTrial::default();
        assert_eq!(outcome(&mut trial, 120, 80), Way::Plain);
        trial.go_on(HOLDS_BYTES - 1, || panic!("the outcome still holds"));
        let slept = trial.slept.unwrap_or(0);
        trial.go_on(1, || slept + 1000);
        assert_eq!((trial.turn, trial.sleeps), (0, [0; 2]), "sleeps in between don't count");
        assert_eq!(outcome(&mut trial, 50, 300), Way::Marked);
    }

    #[test]
    fn both_ways_have_as_many_turns_at_the_same_mean_time() {
        let times = |way| TURNS.iter().enumerate().filter(move |(_, turn)| **turn == way);
        let mean = |way| times(way).map(|(at, _)| at).sum::<usize>();
        assert_eq!(times(Way::Marked).count(), times(Way::Plain).count());
        assert_eq!(mean(Way::Marked), mean(Way::Plain));
    }

    #[test]
    fn a_thread_that_waits_sleeps() {
        let before = own_sleeps();
        // No moment is awaited: the thread only has to give up its CPU.
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(own_sleeps() > before);
    }
}
