//! Payload that comes in bodies, one after the other, each asked for: as from a server of files.
//!
//! Who asks is not the mover's business: it learns how long each body is, and reads it off the socket as it reads any
//! stream. A body that can't be read off the socket, as it is encrypted or in chunks, is read through who asked for it.

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use goodput_model::{Known, TcpInfo};
use rustix::event::PollFlags;
use rustix::io::{Errno, Result as SysResult};
use rustix::net::{RecvFlags, recv};

use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::low_water::LowWater;
use crate::movers::Mover;
use crate::stop::Phase;

/// Who asks for the bodies of one flow.
pub trait Bodies: Send {
    /// Asks for the next body, and returns when its payload can be read; `None`: there is no more. Waits by `pause`
    /// alone, so that a stop ends it.
    fn next(&mut self, pause: &Pause<'_>) -> Result<Option<Body>, BodyError>;

    /// Reads of a body that is [`Extent::Decoded`], without waiting: an error of the kind `WouldBlock` where the
    /// socket has nothing. Zero is its end.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize>;

    /// Whether the peer sends more only as this end reads on, so that nothing is gained by reading late.
    fn is_asked_as_read(&self) -> bool {
        false
    }

    /// How long a body may bring nothing before it is given up.
    fn patience(&self) -> Duration;
}

/// Who knows what the kernel counts on the connections of a flow, of which there may be several one after the other.
pub trait Connections: Send + Sync {
    /// Another connection takes the place of this one.
    fn leaves(&self, socket: BorrowedFd<'_>);

    /// What was counted on this one and on those before it.
    fn tcp_info(&self, socket: BorrowedFd<'_>) -> Known<TcpInfo>;
}

/// Payload that was asked for.
#[derive(Debug)]
pub struct Body {
    /// How far it reaches.
    pub extent: Extent,
    /// The socket on which it comes, if that is another than that of the body before.
    pub socket: Option<OwnedFd>,
}

/// How far a body reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes of the socket.
    Bytes(u64),
    /// All until the peer ends the stream.
    ToClose,
    /// What [`Bodies::read`] makes of the socket's bytes.
    Decoded,
}

/// Why there is no body, or no more of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// A [`Pause`] was ended by the stop.
    Stopped,
    /// The peer did or said something else than was to be.
    Peer(String),
    /// This end could not go on.
    Own(String),
}

/// How whoever asks for a body waits.
pub struct Pause<'a>(&'a Flow);

impl Pause<'_> {
    /// Waits until `socket` can be read, or written where `for_room`, or until `until`. Counts as blocked. Fails with
    /// [`BodyError::Stopped`] if the flow is to end.
    pub fn on(
        &self,
        socket: BorrowedFd<'_>,
        for_room: bool,
        until: Instant,
    ) -> Result<(), BodyError> {
        let flow = self.0;
        let events = if for_room { PollFlags::OUT } else { PollFlags::IN };
        let left = until.saturating_duration_since(Instant::now());
        let until_ns = now_ns().saturating_add(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        let parked =
            flow.counters.blocked.during(|| flow.park_on(socket, Some(events), Some(until_ns)));
        parked.map_err(|why| BodyError::Own(why.to_string()))?;
        if flow.stop.phase() == Phase::Run { Ok(()) } else { Err(BodyError::Stopped) }
    }
}

/// Where a flow has its bodies from.
pub struct BodySource {
    inner: Mutex<Inner>,
    /// Held while the flow's socket is replaced, and by whoever must not see that half done.
    replacing: Mutex<()>,
    connections: Box<dyn Connections>,
}

struct Inner {
    /// Whether the mover reads what is decoded.
    may_decode: bool,
    bodies: Box<dyn Bodies>,
    decodes: bool,
    /// Why the last read of a decoded body failed.
    failure: Option<String>,
}

impl BodySource {
    /// Bodies that are asked for as they are wanted.
    pub fn new(bodies: impl Bodies + 'static, connections: impl Connections + 'static) -> Self {
        let bodies = Box::new(bodies);
        let inner = Inner { bodies, may_decode: false, decodes: false, failure: None };
        Self {
            inner: Mutex::new(inner),
            replacing: Mutex::default(),
            connections: Box::new(connections),
        }
    }

    /// What the kernel counted on all connections of the flow, the last of which is `socket`.
    pub fn tcp_info(&self, socket: BorrowedFd<'_>) -> Known<TcpInfo> {
        self.holding(|| self.connections.tcp_info(socket))
    }

    /// Does something while the flow keeps its socket.
    fn holding<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        work()
    }

    pub(crate) fn are_read_by(&self, mover: &dyn Mover) {
        self.inner().may_decode = mover.decodes();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads up to as many bytes as there is room for, without waiting.
    fn read(&self, socket: &OwnedFd, room: &mut [u8]) -> SysResult<usize> {
        let mut inner = self.inner();
        if !inner.decodes {
            return recv(socket, room, RecvFlags::empty()).map(|(taken, _)| taken);
        }
        inner.bodies.read(room).map_err(|cause| match cause.kind() {
            io::ErrorKind::WouldBlock => Errno::AGAIN,
            io::ErrorKind::Interrupted => Errno::INTR,
            _ => {
                inner.failure = Some(cause.to_string());
                Errno::IO
            }
        })
    }
}

impl fmt::Debug for BodySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodySource")
    }
}

impl Flow {
    /// Reads a byte stream without waiting, as its bodies are to be read if it has such.
    pub(crate) fn take(&self, room: &mut [u8]) -> SysResult<usize> {
        match &self.config.bodies {
            Some(source) => source.read(&self.socket, room),
            None => recv(&self.socket, room, RecvFlags::empty()).map(|(taken, _)| taken),
        }
    }
}

/// The bodies of a flow while they are read.
pub(crate) struct Succession<'a> {
    flow: &'a Flow,
    source: &'a BodySource,
    patience_ns: u64,
    /// What is left of the one that is read; `None` between two.
    left: Option<Left>,
    /// Bytes that this one has brought.
    got: u64,
    /// When it brought something last.
    heard_ns: u64,
}

enum Left {
    Bytes(u64),
    Unknown,
}

impl<'a> Succession<'a> {
    /// Of a flow that has bodies.
    pub(crate) fn of(flow: &'a Flow) -> Option<Self> {
        let source = flow.config.bodies.as_deref()?;
        let patience = source.inner().bodies.patience().as_nanos();
        let patience_ns = u64::try_from(patience).unwrap_or(u64::MAX);
        Some(Self { flow, source, patience_ns, left: None, got: 0, heard_ns: 0 })
    }

    /// Sees to it that there is a body to read. Whether there is one.
    pub(crate) fn go_on(&mut self, low_water: &mut LowWater) -> Result<bool, MoveError> {
        while self.left.is_none() {
            // An answer is shorter than what a fast stream is woken for.
            low_water.lower(self.flow);
            let next = self.source.inner().bodies.next(&Pause(self.flow));
            let body = match next {
                Ok(Some(body)) => body,
                Ok(None) | Err(BodyError::Stopped) => return Ok(false),
                Err(BodyError::Peer(why)) => return Err(self.failed(why, true)),
                Err(BodyError::Own(why)) => return Err(self.failed(why, false)),
            };
            self.begin(body)?;
            if self.source.inner().bodies.is_asked_as_read() {
                low_water.never();
            }
        }
        Ok(true)
    }

    fn begin(&mut self, body: Body) -> Result<(), MoveError> {
        if let Some(socket) = body.socket {
            let put = rustix::io::ioctl_fionbio(&socket, true).and_then(|()| self.put(&socket));
            put.map_err(|cause| self.flow.failed("go on with another connection", cause))?;
        }
        let decodes = body.extent == Extent::Decoded;
        if decodes && !self.source.inner().may_decode {
            let why = "the server sends the file encrypted or in chunks, which only the mover copy can receive: \
                       leave out --receive-mover";
            return Err(self.failed(why.into(), false));
        }
        self.source.inner().decodes = decodes;
        self.left = match body.extent {
            Extent::Bytes(0) => None,
            Extent::Bytes(bytes) => Some(Left::Bytes(bytes)),
            Extent::ToClose | Extent::Decoded => Some(Left::Unknown),
        };
        (self.got, self.heard_ns) = (0, now_ns());
        Ok(())
    }

    /// Puts `socket` in the place of the flow's: whoever has the flow's descriptor has the new one.
    #[expect(unsafe_code, reason = "a descriptor that others hold is made to mean another socket")]
    fn put(&self, socket: &OwnedFd) -> SysResult<()> {
        // SAFETY: the flow keeps its descriptor open, and this second owner never closes it.
        let mut own =
            ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(self.flow.socket.as_raw_fd()) });
        self.source.holding(|| {
            self.source.connections.leaves(own.as_fd());
            rustix::io::dup3(socket, &mut own, rustix::io::DupFlags::CLOEXEC)
        })
    }

    /// How much of `want` bytes may be read.
    pub(crate) fn at_most(&self, want: usize) -> usize {
        match self.left {
            Some(Left::Bytes(left)) => usize::try_from(left).unwrap_or(usize::MAX).min(want),
            _ => want,
        }
    }

    /// `bytes` were read.
    pub(crate) fn took(&mut self, bytes: usize) {
        (self.got, self.heard_ns) = (self.got + bytes as u64, now_ns());
        if let Some(Left::Bytes(left)) = &mut self.left {
            *left = left.saturating_sub(bytes as u64);
            if *left == 0 {
                self.left = None;
            }
        }
    }

    /// The stream, or what is decoded of it, has ended.
    pub(crate) fn ended(&mut self) -> Result<(), MoveError> {
        match self.left.take() {
            Some(Left::Bytes(left)) => {
                let all = self.got + left;
                let why = format!(
                    "the server ended the connection after {} of the {all} bytes that it had announced",
                    self.got
                );
                Err(self.failed(why, true))
            }
            Some(Left::Unknown) | None => Ok(()),
        }
    }

    /// A read failed.
    pub(crate) fn broke(&self, cause: Errno) -> MoveError {
        match self.source.inner().failure.take() {
            Some(why) => self.failed(why, true),
            None if cause == Errno::CONNRESET => {
                let why =
                    format!("the server reset the connection after {} bytes of a body", self.got);
                self.failed(why, true)
            }
            None => self.flow.failed("receive", cause),
        }
    }

    /// Until when the body is waited for, on the monotonic clock.
    pub(crate) fn until(&self) -> u64 {
        self.heard_ns.saturating_add(self.patience_ns)
    }

    /// Fails if the body has brought nothing for too long.
    pub(crate) fn check_progress(&self) -> Result<(), MoveError> {
        if now_ns() < self.until() {
            return Ok(());
        }
        let seconds = self.patience_ns as f64 / 1e9;
        let why = format!(
            "the server stalled: after {} bytes of a body nothing came for {seconds:.1} s",
            self.got
        );
        Err(self.failed(why, true))
    }

    fn failed(&self, why: String, by_peer: bool) -> MoveError {
        MoveError::Body { flow: self.flow.config.id, why, by_peer }
    }
}
