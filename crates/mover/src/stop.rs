//! How the flows of one measurement end: politely, or at once.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
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

/// Ends all flows that share it. The phase only ever grows.
#[derive(Debug)]
pub struct Stop {
    phase: AtomicU8,
    deadline_ns: OnceLock<u64>,
    finish: Signal,
    abort: Signal,
    liveness: Liveness,
}

impl Stop {
    /// Takes two descriptors; fails if none is left.
    pub fn new() -> io::Result<Self> {
        let (finish, abort) = (Signal::new()?, Signal::new()?);
        let (phase, deadline_ns) = (AtomicU8::new(0), OnceLock::new());
        Ok(Self { phase, deadline_ns, finish, abort, liveness: Liveness::default() })
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

    /// Senders stop and end their streams; receivers read to the end, for `drain` at most. The
    /// first call sets the deadline.
    pub fn finish(&self, drain: Duration) {
        let drain_ns = u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX);
        self.deadline_ns.get_or_init(|| now_ns().saturating_add(drain_ns));
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
        self.deadline_ns.get().copied()
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
    fn an_abort_is_never_taken_back_and_the_first_deadline_stands() {
        let stop = Stop::new().unwrap();
        assert_eq!(stop.phase(), Phase::Run);
        stop.finish(Duration::from_secs(1));
        let deadline = stop.deadline_ns();
        stop.abort();
        stop.finish(Duration::from_secs(9));
        assert_eq!(stop.phase(), Phase::Abort);
        assert_eq!(stop.deadline_ns(), deadline);
    }
}
