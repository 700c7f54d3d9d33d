//! One flow, as its mover sees it: its task, its socket, and how to wait.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use goodput_framing::{Datagrams, Framing};
use goodput_model::{BitRate, Role, Transport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::body_source::BodySource;
use crate::clock::now_ns;
use crate::counters::Counters;
use crate::error::MoveError;
use crate::gate::Gate;
use crate::lockstep::Lockstep;
use crate::mounted_file::MountedFile;
use crate::shared_rate::SharedRate;
use crate::socket::set_cork;
use crate::stop::{Phase, Stop};
use crate::storage::FlowStorage;
use crate::tap::Tap;

/// How long a wait for a socket watches the socket alone, nanoseconds; the signal of the stop, which all flows share,
/// is watched only after this. A fast flow never waits so long, and then neither takes the signal's lock with the other
/// flows nor pays for a second descriptor in each wait. A stop is noticed this much later at most.
const ALONE_NS: u64 = 20_000_000;
/// How often a flow that ends checks whether its deadline was brought forward, nanoseconds.
const LOOK_AGAIN_NS: u64 = 100_000_000;

/// The task of one flow.
#[derive(Debug, Clone)]
pub struct FlowConfig {
    /// The flow's number in the plan.
    pub id: u16,
    /// Whether this end sends or receives.
    pub role: Role,
    /// TCP or UDP.
    pub transport: Transport,
    /// Bytes of one write, or of one datagram with its header; see [`crate::movers`] for bounds.
    pub chunk: usize,
    /// Strict pacing of this flow; `None` or zero: as fast as possible. A receiver reads no faster.
    pub rate: Option<BitRate>,
    /// Rates that it shares with other flows; it keeps to all of them in both roles.
    pub shared_rates: Vec<Arc<SharedRate>>,
    /// Whether `rate` is the first of `shared_rates`, not a wish of the plan.
    pub rate_is_shared: bool,
    /// The most that its socket may hold if datagrams are received, bytes of the kernel's own count (`sk_rcvbuf`);
    /// `None`: the socket is left unchanged.
    pub queue_bytes: Option<usize>,
    /// Most bytes that a paced sender of datagrams lets leave at once; `None`: see [`crate::pace`].
    pub burst_bytes: Option<usize>,
    /// `TCP_QUICKACK` (tcp(7)) of a receiver of a stream: off from the beginning, or on again after each read, because
    /// the kernel forgets it; `None`: the kernel's default.
    pub quickack: Option<bool>,
    /// Whether a receiver of datagrams records when each was sent and received.
    pub keeps_arrivals: bool,
    /// The rate that the sender should hold, for a receiver that checks its evenness.
    pub expected_rate: Option<BitRate>,
    /// Payload bytes after which a sender ends its stream, or a receiver of bodies asks for no more. Other receivers read to
    /// the end.
    pub limit_bytes: Option<u64>,
    /// How the payload looks on the wire, and how it ends.
    pub framing: Framing,
    /// The payload that moved before the flow had its mover.
    pub early: EarlyPayload,
    /// State shared with the other sending flows of its measurement, if a receiver reads all streams in turn. Only for
    /// a sender of a stream.
    pub lockstep: Option<Arc<Lockstep>>,
    /// Where its payload comes from or goes to, if not memory.
    pub storage: FlowStorage,
    /// Requests the bodies of a stream, if it moves in bodies. A receiver then ends with the stop at once.
    pub bodies: Option<Arc<BodySource>>,
    /// The part of a file on a mount that it moves, if this is its payload; its descriptor is the open file.
    pub file: Option<MountedFile>,
    /// An observer of what it receives; only with a mover that [shows](crate::Mover::shows) it.
    pub tap: Option<Arc<dyn Tap>>,
    /// The only CPU on which its thread may run; `None`: any, as scheduled.
    pub pin: Option<u16>,
    /// Whether the other flows go on if its connection is lost.
    pub may_be_lost: bool,
}

impl FlowConfig {
    /// Flow 0, of goodput's own framing, from memory to memory, as fast as possible, without an end of its own.
    pub fn new(role: Role, transport: Transport, chunk: usize) -> Self {
        Self {
            id: 0,
            role,
            transport,
            chunk,
            rate: None,
            shared_rates: Vec::new(),
            rate_is_shared: false,
            queue_bytes: None,
            burst_bytes: None,
            quickack: None,
            keeps_arrivals: false,
            expected_rate: None,
            limit_bytes: None,
            framing: Framing::default(),
            early: EarlyPayload::default(),
            lockstep: None,
            storage: FlowStorage::default(),
            bodies: None,
            file: None,
            tap: None,
            pin: None,
            may_be_lost: false,
        }
    }

    /// Its framing's datagrams.
    pub(crate) fn datagrams(&self) -> Box<dyn Datagrams> {
        self.framing.datagrams(self.id, self.chunk)
    }
}

/// The part of a flow's payload that moved before its mover began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EarlyPayload {
    /// Bytes of a stream that were read to identify the stream, or written to identify it to the peer.
    pub bytes: u64,
    /// Datagrams that came before the flow had a socket of its own.
    pub datagrams: Vec<Vec<u8>>,
}

/// One flow while it runs.
#[derive(Debug)]
pub struct Flow {
    /// Its task.
    pub config: FlowConfig,
    /// The connected socket, in non-blocking mode.
    pub socket: Arc<OwnedFd>,
    /// Its counts.
    pub counters: Arc<Counters>,
    /// When to end.
    pub stop: Arc<Stop>,
    /// When to begin.
    pub gate: Arc<Gate>,
    /// When the payload's clock began, if the payload itself marks it.
    pub(crate) began: Arc<OnceLock<Instant>>,
    /// When the last payload had moved, once known.
    pub(crate) over: Arc<OnceLock<Instant>>,
}

impl Flow {
    /// Passes received payload to the flow's tap.
    pub(crate) fn show(&self, payload: &[u8]) {
        if let Some(tap) = &self.config.tap {
            tap.saw(payload);
        }
    }

    /// Whether a sender may continue.
    pub(crate) fn may_send(&self) -> bool {
        self.stop.phase() == Phase::Run
    }

    /// Whether a receiver may continue: not beyond the deadline of a finished measurement.
    pub(crate) fn may_receive(&self) -> Result<bool, MoveError> {
        match self.stop.phase() {
            Phase::Run => Ok(true),
            // If this end keeps requesting, nobody else ends the flow.
            Phase::Finish if self.config.bodies.is_some() || self.config.file.is_some() => {
                Ok(false)
            }
            Phase::Finish => Ok(self.stop.deadline_ns().is_none_or(|end| now_ns() < end)),
            Phase::Abort => Err(self.aborted()),
        }
    }

    /// Waits until the socket has room, or for whatever else a body waits, as far as the stop lets it. For a body, the
    /// wait is no longer than bodies may stall. Counts as blocked.
    pub(crate) fn wait_writable(&self) -> Result<(), MoveError> {
        let bodies = self.config.bodies.as_deref();
        let until = bodies.map(BodySource::patient_until);
        let events = bodies.map_or(PollFlags::OUT, BodySource::awaits);
        self.counters.blocked.during(|| self.park(Some(events), until))
    }

    /// Waits until the socket has data, as far as the stop lets it, or until `until` on the
    /// monotonic clock. Counts as blocked.
    pub(crate) fn wait_readable(&self, until: Option<u64>) -> Result<(), MoveError> {
        self.counters.blocked.during(|| self.park(Some(PollFlags::IN), until))
    }

    /// Waits for `nanoseconds`, because poll(2) can't report when there is room. Counts as blocked.
    pub(crate) fn wait_blocked(&self, nanoseconds: u64) -> Result<(), MoveError> {
        self.counters.blocked.during(|| self.park(None, Some(now_ns() + nanoseconds)))
    }

    /// Waits for an instant of the schedule, as far as the stop lets it. Counts as paced.
    pub(crate) fn wait_paced(&self, until: u64) -> Result<(), MoveError> {
        self.counters.paced.during(|| self.park(None, Some(until)))
    }

    /// Waits for the socket, for the next phase of the stop, for its deadline or for `until`, whichever comes first.
    /// The caller checks its condition again, so an interruption by a signal needs no care.
    pub(crate) fn park(
        &self,
        socket: Option<PollFlags>,
        until: Option<u64>,
    ) -> Result<(), MoveError> {
        self.park_on(&self.socket, socket, until)
    }

    /// The same for another file of the flow.
    pub(crate) fn park_on(
        &self,
        file: impl AsFd,
        events: Option<PollFlags>,
        until: Option<u64>,
    ) -> Result<(), MoveError> {
        let phase = self.stop.phase();
        let deadline = if phase == Phase::Finish { self.stop.deadline_ns() } else { None };
        // A later call of `Stop::finish` may bring the deadline forward.
        let deadline = deadline.map(|deadline| deadline.min(now_ns() + LOOK_AGAIN_NS));
        let until = [until, deadline].into_iter().flatten().min();
        let left = || until.map(|until| until.saturating_sub(now_ns()));
        let signal = PollFd::from_borrowed_fd(self.stop.next_signal(phase).as_fd(), PollFlags::IN);
        let Some(events) = events else {
            return self.poll(&mut [signal], left()).map(drop);
        };
        let file = PollFd::from_borrowed_fd(file.as_fd(), events);
        let brief = left().map_or(ALONE_NS, |left| left.min(ALONE_NS));
        if self.poll(&mut [file.clone()], Some(brief))? || brief < ALONE_NS {
            return Ok(());
        }
        self.poll(&mut [signal, file], left()).map(drop)
    }

    /// Waits for these for `nanoseconds` at most; returns whether one of them, or a signal, ended the wait.
    fn poll(
        &self,
        watched: &mut [PollFd<'_>],
        nanoseconds: Option<u64>,
    ) -> Result<bool, MoveError> {
        match poll(watched, nanoseconds.map(timespec).as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(true),
            Err(cause) => Err(self.failed("wait for the socket", cause)),
        }
    }

    /// The payload's clock began at `at_ns` of the monotonic clock. The first call counts.
    pub(crate) fn payload_began(&self, at_ns: u64) {
        self.began.get_or_init(|| instant(at_ns));
    }

    /// All payload has moved; what follows, like end markers, does not count as measurement time. The first call
    /// counts; the last possible one is at the end of the thread.
    pub(crate) fn payload_is_over(&self) {
        self.over.get_or_init(Instant::now);
    }

    /// The same in hindsight: all payload had moved at `at_ns` of the monotonic clock.
    pub(crate) fn payload_was_over(&self, at_ns: u64) {
        self.over.get_or_init(|| instant(at_ns));
    }

    /// Sets or clears `TCP_CORK`, if the plan wants it.
    pub(crate) fn cork(&self, on: bool) -> Result<(), MoveError> {
        if !self.config.storage.cork {
            return Ok(());
        }
        match set_cork(&self.socket, on) {
            Err(cause) if !self.is_end(cause) => Err(self.failed("set TCP_CORK", cause)),
            _ => Ok(()),
        }
    }

    /// Whether `cause` only means that the peer, which learned elsewhere that the flow is over, closed its end first.
    pub(crate) fn is_end(&self, cause: Errno) -> bool {
        let gone = matches!(cause, Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN);
        let framing = &self.config.framing;
        let is_read = self.config.role == Role::Receiver && framing.ends_by_control();
        gone && !self.may_send() && (is_read || framing.ends_elsewhere())
    }

    /// An error of the system during `operation`.
    pub(crate) fn failed(&self, operation: &'static str, cause: Errno) -> MoveError {
        MoveError::from_system(self.config.id, operation, cause)
    }

    /// The result of an aborted flow.
    pub(crate) fn aborted(&self) -> MoveError {
        MoveError::Aborted { flow: self.config.id }
    }
}

/// The instant of a past time of the monotonic clock.
fn instant(at_ns: u64) -> Instant {
    let (now, ago) = (Instant::now(), Duration::from_nanos(now_ns().saturating_sub(at_ns)));
    now.checked_sub(ago).unwrap_or(now)
}

fn timespec(nanoseconds: u64) -> Timespec {
    const NS_PER_SECOND: u64 = 1_000_000_000;
    Timespec {
        tv_sec: (nanoseconds / NS_PER_SECOND) as i64,
        tv_nsec: (nanoseconds % NS_PER_SECOND) as i64,
    }
}
