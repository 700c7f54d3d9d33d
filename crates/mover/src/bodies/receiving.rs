//! The bodies of a flow while they are read.

use goodput_model::Seconds;
use rustix::io::Errno;

use super::pause::FlowPause;
use super::stall_at_end;
use crate::body_source::{Body, BodyError, BodySource, Extent};
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::low_water::LowWater;

/// The bodies of a flow while they are read.
pub(crate) struct Succession<'a> {
    flow: &'a Flow,
    source: &'a BodySource,
    /// The rest of the current body; `None` between two.
    left: Option<Left>,
    /// Bytes received of the current body.
    got: u64,
    /// Bytes that the flow still wants of all bodies.
    wanted: u64,
    /// When it last brought something.
    heard_ns: u64,
    /// When the flow began.
    began_ns: u64,
}

enum Left {
    Bytes(u64),
    Unknown,
}

impl<'a> Succession<'a> {
    /// For a flow that has bodies.
    pub(crate) fn of(flow: &'a Flow) -> Option<Self> {
        let source = flow.config.bodies.as_deref()?;
        let began_ns = now_ns();
        let wanted = flow.config.limit_bytes.unwrap_or(u64::MAX);
        Some(Self { flow, source, left: None, got: 0, wanted, heard_ns: began_ns, began_ns })
    }

    /// Makes sure that there is a body to read; returns whether there is one, and more of it is wanted.
    pub(crate) fn go_on(&mut self, low_water: &mut LowWater) -> Result<bool, MoveError> {
        if self.wanted == 0 {
            self.source.inner().bodies.read_enough(self.got);
            return Ok(false);
        }
        while self.left.is_none() {
            // An answer is shorter than the low-water mark of a fast stream.
            low_water.lower(self.flow);
            let next = self.source.inner().bodies.next(&FlowPause::of(self.flow));
            let body = match next {
                Ok(Some(body)) => body,
                Ok(None) | Err(BodyError::Stopped) => return Ok(false),
                Err(why) => return Err(self.flow.body_failed(why)),
            };
            self.begin(body)?;
            if self.source.inner().bodies.is_asked_as_read() {
                low_water.never();
            }
        }
        Ok(true)
    }

    fn begin(&mut self, body: Body) -> Result<(), MoveError> {
        self.flow.go_over(self.source, body.socket)?;
        let is_decoded = body.extent == Extent::Decoded;
        if !self.source.inner().take(is_decoded) {
            let why = "the server sends the file in chunks, which only the mover copy can receive: \
                       leave out --receive-mover";
            return Err(self.flow.body_failed(BodyError::Own(why.into())));
        }
        self.left = match body.extent {
            Extent::Bytes(0) => None,
            Extent::Bytes(bytes) => Some(Left::Bytes(bytes)),
            Extent::ToClose | Extent::Decoded => Some(Left::Unknown),
        };
        (self.got, self.heard_ns) = (0, now_ns());
        Ok(())
    }

    /// How much of `want` bytes may be read.
    pub(crate) fn at_most(&self, want: usize) -> usize {
        let left = match self.left {
            Some(Left::Bytes(left)) => left.min(self.wanted),
            _ => self.wanted,
        };
        usize::try_from(left).unwrap_or(usize::MAX).min(want)
    }

    /// `bytes` were read.
    pub(crate) fn took(&mut self, bytes: usize) {
        (self.got, self.heard_ns) = (self.got + bytes as u64, now_ns());
        self.wanted = self.wanted.saturating_sub(bytes as u64);
        if let Some(Left::Bytes(left)) = &mut self.left {
            *left = left.saturating_sub(bytes as u64);
            if *left == 0 {
                self.left = None;
            }
        }
    }

    /// The stream, or its decoded content, has ended.
    pub(crate) fn ended(&mut self) -> Result<(), MoveError> {
        match self.left.take() {
            Some(Left::Bytes(left)) => {
                let all = self.got + left;
                let why = format!(
                    "the server ended the connection after {} of the {all} bytes that it had announced",
                    self.got
                );
                Err(self.failed(why))
            }
            Some(Left::Unknown) | None => Ok(()),
        }
    }

    /// A read failed.
    pub(crate) fn broke(&self, cause: Errno) -> MoveError {
        match self.source.inner().failure.take() {
            Some(why) => self.flow.body_failed(why),
            None if cause == Errno::CONNRESET => {
                let why =
                    format!("the server reset the connection after {} bytes of a body", self.got);
                self.failed(why)
            }
            None => self.flow.failed("receive", cause),
        }
    }

    /// Until when to wait for the body, on the monotonic clock.
    pub(crate) fn until(&self) -> u64 {
        let patient_until = self.patient_until();
        self.source.resumes_at().map_or(patient_until, |at| at.min(patient_until))
    }

    /// The same, if the peer reports nothing.
    fn patient_until(&self) -> u64 {
        self.heard_ns.saturating_add(self.source.patience_ns)
    }

    /// Fails if the body has brought nothing for too long.
    pub(crate) fn check_progress(&mut self) -> Result<(), MoveError> {
        if now_ns() < self.patient_until() {
            return Ok(());
        }
        if self.source.resumes_at().is_some() {
            self.heard_ns = now_ns();
            return Ok(());
        }
        let why = self.stalled(self.source.patience_ns);
        if self.source.inner().bodies.cut(&why) {
            self.left = None;
            return Ok(());
        }
        Err(self.failed(why))
    }

    /// Ends the flow. Fails if nothing had come for most of its time.
    pub(crate) fn end(self) -> Result<(), MoveError> {
        match stall_at_end(self.began_ns, self.heard_ns) {
            Some(still_ns) => {
                let trouble = self.source.inner().bodies.trouble();
                Err(self.failed(trouble.unwrap_or_else(|| self.stalled(still_ns))))
            }
            None => Ok(()),
        }
    }

    fn stalled(&self, still_ns: u64) -> String {
        let (got, time) = (self.got, Seconds(still_ns as f64 / 1e9));
        format!("the server stalled: after {got} bytes of a body nothing came for {time}")
    }

    fn failed(&self, why: String) -> MoveError {
        self.flow.body_failed(BodyError::Peer(why))
    }
}
