//! Sources and destinations of payload that moves in bodies: who requests each body, and the state of its connections.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use goodput_model::{Known, TcpInfo};
use rustix::event::PollFlags;
use rustix::io::{Errno, Result as SysResult};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::clock::now_ns;

/// Requests the bodies of one flow.
pub trait Bodies: Send {
    /// Requests the next body, and returns when its payload can be read; `None`: there are no more. Waits only through
    /// `pause`, so that a stop ends the wait.
    fn next(&mut self, pause: &dyn Pause) -> Result<Option<Body>, BodyError>;

    /// Reads from a body that is [`Extent::Decoded`], without waiting: an error of the kind `WouldBlock` if the socket
    /// has no data. Zero is the end of the body.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize>;

    /// No more is read: the flow has all the payload that it wants, the last `got` bytes of it from the last body.
    fn read_enough(&mut self, _got: u64) {}

    /// For a sender: requests to send a body of this many bytes, `None` if its length is unknown, and returns when
    /// payload can be written. The previous body is over.
    fn store(&mut self, _bytes: Option<u64>, _pause: &dyn Pause) -> Result<Body, BodyError> {
        Err(BodyError::Own("these bodies are only received".into()))
    }

    /// The longest body that a sender without a source sends, bytes.
    fn most_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Writes payload of a body that is [`Extent::Decoded`], without waiting: an error of the kind `WouldBlock` if
    /// the socket has no room.
    fn write(&mut self, _payload: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Events for which a body that is [`Extent::Decoded`] waits at its socket when it takes no more.
    fn awaits(&self) -> PollFlags {
        PollFlags::OUT
    }

    /// The whole body is written: returns when the peer has confirmed its receipt.
    fn stored(&mut self, _pause: &dyn Pause) -> Result<(), BodyError> {
        Ok(())
    }

    /// What the peer said about a connection that takes no more, if it says anything soon.
    fn refusal(&mut self, _pause: &dyn Pause) -> Option<BodyError> {
        None
    }

    /// Why nothing moves, if the peer is not the reason: its connection broke, and there is no new one yet.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Whether the peer sends more only when this end reads, so that reading late gains nothing.
    fn is_asked_as_read(&self) -> bool {
        false
    }

    /// The current body has brought nothing for its whole patience. Returns whether the next body continues where this
    /// one ended, perhaps on another connection. If not, the flow fails.
    fn cut(&mut self, _why: &str) -> bool {
        false
    }

    /// When payload continues without being asked for again, if the peer asked to wait. Until then it is not stalled.
    fn resumes_at(&self) -> Option<Instant> {
        None
    }

    /// How long no payload of a body may move before it is given up.
    fn patience(&self) -> Duration;
}

/// Knows the kernel's counts for a flow's connections, of which there may be several in succession.
pub trait Connections: Send + Sync {
    /// Another connection replaces this one.
    fn leaves(&self, socket: BorrowedFd<'_>);

    /// The counts of this connection and of those before it.
    fn tcp_info(&self, socket: BorrowedFd<'_>) -> Known<TcpInfo>;

    /// Payload that the peer reported as received, bytes; `None`: it does not report this during the transfer.
    fn confirmed_bytes(&self) -> Option<u64> {
        None
    }
}

/// Payload that was requested, or that may be sent.
#[derive(Debug)]
pub struct Body {
    /// How far it reaches. For a sender's body, only whether it is [`Extent::Decoded`] counts: the sender knows the
    /// length.
    pub extent: Extent,
    /// The socket on which it moves, if not that of the previous body.
    pub socket: Option<OwnedFd>,
}

/// How far a body reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This many bytes of the socket.
    Bytes(u64),
    /// Everything until the peer ends the stream.
    ToClose,
    /// What [`Bodies::read`] makes of the socket's bytes, or what [`Bodies::write`] encodes into them.
    Decoded,
}

/// Why there is no body, or no more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// A [`Pause`] was ended by the stop.
    Stopped,
    /// The peer did or said something unexpected.
    Peer(String),
    /// The peer does not let this user get or store it.
    Forbidden(String),
    /// This end could not continue.
    Own(String),
}

/// How the requester of a body waits.
pub trait Pause {
    /// Waits until one of `events` happens at `socket`, or until `until`. Counts as blocked. Fails with
    /// [`BodyError::Stopped`] if the flow is to end.
    fn on(
        &self,
        socket: BorrowedFd<'_>,
        events: PollFlags,
        until: Instant,
    ) -> Result<(), BodyError>;

    /// Waits until `until`. Counts as blocked. Fails as [`Self::on`] does.
    fn rest(&self, until: Instant) -> Result<(), BodyError>;
}

/// Where a flow gets its bodies.
pub struct BodySource {
    inner: Mutex<Inner>,
    /// How long no payload of a body may move, nanoseconds.
    pub(crate) patience_ns: u64,
    /// Held while the flow's socket is replaced, and by anyone who must not see this half done.
    replacing: Mutex<()>,
    pub(crate) connections: Box<dyn Connections>,
    /// Most payload that was known to be acknowledged, bytes.
    acknowledged: AtomicU64,
}

/// The data behind the lock.
pub(crate) struct Inner {
    /// Whether the mover reads and writes decoded bodies.
    may_decode: bool,
    pub(crate) bodies: Box<dyn Bodies>,
    decodes: bool,
    /// Why the last read or write of a decoded body failed.
    pub(crate) failure: Option<BodyError>,
}

impl BodySource {
    /// Bodies that are requested as needed.
    pub fn new(bodies: impl Bodies + 'static, connections: impl Connections + 'static) -> Self {
        let patience_ns = u64::try_from(bodies.patience().as_nanos()).unwrap_or(u64::MAX);
        let bodies = Box::new(bodies);
        let inner = Inner { bodies, may_decode: false, decodes: false, failure: None };
        Self {
            inner: Mutex::new(inner),
            patience_ns,
            replacing: Mutex::default(),
            connections: Box::new(connections),
            acknowledged: AtomicU64::new(0),
        }
    }

    /// Until when the flow may wait for room, on the monotonic clock.
    pub(crate) fn patient_until(&self) -> u64 {
        let until = now_ns().saturating_add(self.patience_ns);
        self.resumes_at().map_or(until, |at| at.min(until))
    }

    /// When payload continues, on the monotonic clock, if the peer asked to wait.
    pub(crate) fn resumes_at(&self) -> Option<u64> {
        let left = self.inner().bodies.resumes_at()?.saturating_duration_since(Instant::now());
        Some(now_ns().saturating_add(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Events for which to wait at the socket of a stuck sender.
    pub(crate) fn awaits(&self) -> PollFlags {
        let inner = self.inner();
        if inner.decodes { inner.bodies.awaits() } else { PollFlags::OUT }
    }

    /// Payload that the peer reported as received, bytes, if it reports this during the transfer.
    pub fn confirmed_bytes(&self) -> Option<u64> {
        self.connections.confirmed_bytes()
    }

    /// Payload that the peer has acknowledged, bytes, if the flow has written `sent` bytes and the socket still holds
    /// `waiting` bytes. Encryption adds to what waits, and the flow may write between the two readings, so an estimate
    /// may be lower than the one before. What was acknowledged stays so: the highest estimate counts.
    pub fn acknowledged_bytes(&self, sent: u64, waiting: u64) -> u64 {
        let estimate = sent.saturating_sub(waiting);
        self.acknowledged.fetch_max(estimate, Ordering::Relaxed).max(estimate)
    }

    /// The kernel's counts over all connections of the flow, of which `socket` is the last.
    pub fn tcp_info(&self, socket: BorrowedFd<'_>) -> Known<TcpInfo> {
        self.holding(|| self.connections.tcp_info(socket))
    }

    /// Runs `work` while the flow's socket can't be replaced.
    pub(crate) fn holding<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        work()
    }

    /// Sets whether the mover reads and writes decoded bodies.
    pub(crate) fn set_may_decode(&self, may_decode: bool) {
        self.inner().may_decode = may_decode;
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads up to as many bytes as there is room for, without waiting.
    pub(crate) fn read(&self, socket: &OwnedFd, room: &mut [u8]) -> SysResult<usize> {
        let mut inner = self.inner();
        if !inner.decodes {
            return recv(socket, room, RecvFlags::empty()).map(|(taken, _)| taken);
        }
        let read = inner.bodies.read(room);
        read.map_err(|cause| inner.note(&cause))
    }

    /// Writes as much as there is room for, without waiting.
    pub(crate) fn write(&self, socket: &OwnedFd, payload: &[u8]) -> SysResult<usize> {
        let mut inner = self.inner();
        if !inner.decodes {
            return send(socket, payload, SendFlags::NOSIGNAL);
        }
        let written = inner.bodies.write(payload);
        written.map_err(|cause| inner.note(&cause))
    }
}

impl Inner {
    /// The next body is decoded or not; returns whether the mover can move it.
    pub(crate) fn take(&mut self, is_decoded: bool) -> bool {
        self.decodes = is_decoded;
        self.may_decode || !is_decoded
    }

    /// Records why a read or a write failed, unless a retry is enough.
    fn note(&mut self, cause: &io::Error) -> Errno {
        match cause.kind() {
            io::ErrorKind::WouldBlock => Errno::AGAIN,
            io::ErrorKind::Interrupted => Errno::INTR,
            _ => {
                let words = cause.to_string();
                self.failure = Some(match cause.kind() {
                    io::ErrorKind::PermissionDenied => BodyError::Forbidden(words),
                    _ => BodyError::Peer(words),
                });
                Errno::IO
            }
        }
    }
}

impl fmt::Debug for BodySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodySource")
    }
}
