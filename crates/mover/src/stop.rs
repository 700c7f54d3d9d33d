//! How the flows of one measurement end: politely, or at once.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::now_ns;
use crate::liveness::{LastHeard, Liveness, SILENCE_S};
use crate::signal::Signal;

/// The current task of a measurement's flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Continue.
    Run,
    /// Senders end their streams; receivers read to the end, but not beyond the deadline.
    Finish,
    /// Everyone stops now.
    Abort,
}

/// A time that never comes.
const NO_DEADLINE: u64 = u64::MAX;

/// Ends all flows that share it. The phase only ever grows.
#[derive(Debug)]
pub struct Stop {
    phase: AtomicU8,
    /// [`NO_DEADLINE`] before [`Stop::finish`].
    deadline_ns: AtomicU64,
    /// Whether the far end announces that it has stopped sending, and has not yet.
    awaits_far_end: AtomicBool,
    finish: Signal,
    abort: Signal,
    liveness: Liveness,
}

impl Stop {
    /// Takes two descriptors; fails if none is left.
    pub fn new() -> io::Result<Self> {
        let (finish, abort) = (Signal::new()?, Signal::new()?);
        Ok(Self {
            phase: AtomicU8::new(0),
            deadline_ns: AtomicU64::new(NO_DEADLINE),
            awaits_far_end: AtomicBool::new(false),
            finish,
            abort,
            liveness: Liveness::default(),
        })
    }

    /// Ends the senders of datagrams if the far end shows no sign of life for 15 s, neither on `control`, a TCP
    /// connection that is dropped at the end, nor through its echoes. Fails if the connection accepts no keepalive
    /// options.
    pub fn watch_peer(&self, control: OwnedFd, echoes: LastHeard) -> io::Result<()> {
        self.liveness.begin(control, echoes, SILENCE_S * 1000)
    }

    /// The channels on which the far end is heard.
    pub(crate) fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// The far end announces that it has stopped sending: until then, silence does not end its flows.
    pub fn await_far_end(&self) {
        self.awaits_far_end.store(true, Ordering::Release);
    }

    /// The far end has stopped sending, or will not announce it.
    pub fn far_end_stopped(&self) {
        self.awaits_far_end.store(false, Ordering::Release);
    }

    /// Whether the far end may still send after a silence of any length.
    pub(crate) fn awaits_far_end(&self) -> bool {
        self.awaits_far_end.load(Ordering::Acquire)
    }

    /// Senders stop and end their streams; receivers read to the end, for `drain` at most. The earliest deadline of all
    /// calls stands.
    pub fn finish(&self, drain: Duration) {
        let drain_ns = u64::try_from(drain.as_nanos()).unwrap_or(NO_DEADLINE);
        self.deadline_ns.fetch_min(now_ns().saturating_add(drain_ns), Ordering::AcqRel);
        self.phase.fetch_max(Phase::Finish as u8, Ordering::Release);
        self.finish.raise();
        self.liveness.end();
    }

    /// Everyone stops at once; TCP connections are reset when they are closed.
    pub fn abort(&self) {
        self.phase.fetch_max(Phase::Abort as u8, Ordering::Release);
        self.finish.raise();
        self.abort.raise();
        self.liveness.end();
    }

    /// What the flows must do now.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Run,
            1 => Phase::Finish,
            _ => Phase::Abort,
        }
    }

    /// When receivers give up, on the monotonic clock; `None` before [`Stop::finish`].
    pub fn deadline_ns(&self) -> Option<u64> {
        let deadline_ns = self.deadline_ns.load(Ordering::Acquire);
        (deadline_ns != NO_DEADLINE).then_some(deadline_ns)
    }

    /// How long ago the deadline of [`Stop::finish`] passed; `None`: there is none, or it is to come.
    pub fn overdue(&self) -> Option<Duration> {
        now_ns().checked_sub(self.deadline_ns()?).map(Duration::from_nanos)
    }

    /// The signal of the next phase, which a thread that waits in `phase` must watch.
    pub(crate) fn next_signal(&self, phase: Phase) -> &Signal {
        if phase == Phase::Run { &self.finish } else { &self.abort }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abort_is_never_taken_back_and_the_earliest_deadline_stands() {
        let stop = Stop::new().unwrap();
        assert_eq!(stop.phase(), Phase::Run);
        assert_eq!(stop.deadline_ns(), None);
        stop.finish(Duration::from_secs(600));
        let later = stop.deadline_ns();
        stop.finish(Duration::from_secs(1));
        let deadline = stop.deadline_ns();
        assert!(deadline < later);
        stop.abort();
        stop.finish(Duration::from_secs(9));
        assert_eq!(stop.phase(), Phase::Abort);
        assert_eq!(stop.deadline_ns(), deadline);
    }
}
