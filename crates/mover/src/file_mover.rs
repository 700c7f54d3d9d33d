//! Payload of a file on a mount: a part of the file is read or written in passes, past this host's page cache.
//!
//! The flow's descriptor is the open file. Only the file system is between the descriptor and the payload, so no mover
//! of the list fits: those move payload through sockets.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use goodput_framing::Framing;
use rustix::fs::fsync;
use rustix::io::Errno;

use crate::aligned::{ALIGNMENT_BYTES, AlignedBuffer};
use crate::cache::drop_part;
use crate::error::{BodyFault, MoveError};
use crate::flow::Flow;
use crate::mounted_file::MountedFile;
use crate::movers::Mover;
use crate::pace::Pacer;
use crate::pages::Pages;

/// Moves the payload of files on mounts.
#[derive(Debug)]
pub struct FileMover;

impl Mover for FileMover {
    fn id(&self) -> &'static str {
        "file"
    }

    fn summary(&self) -> &'static str {
        "read or write a file on a mount, past the page cache"
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let Some(file) = &flow.config.file else { return Err(not_one(flow)) };
        let payload = Pages::payload(&Framing::default(), whole_pages(flow.config.chunk))
            .map_err(|cause| flow.failed("make the buffer to write from", cause))?;
        Passes::of(flow, file).run(
            || flow.may_send(),
            |at, want| rustix::io::pwrite(&flow.socket, &payload[..want], at),
            true,
        )
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        let Some(file) = &flow.config.file else { return Err(not_one(flow)) };
        let mut buffer = AlignedBuffer::new(whole_pages(flow.config.chunk));
        Passes::of(flow, file).run(
            || matches!(flow.may_receive(), Ok(true)),
            |at, want| rustix::io::pread(&flow.socket, &mut buffer.room()[..want], at),
            false,
        )
    }
}

fn not_one(flow: &Flow) -> MoveError {
    flow.failed("move a file that the flow does not have", Errno::BADF)
}

fn whole_pages(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(ALIGNMENT_BYTES)
}

/// The passes of one flow.
struct Passes<'a> {
    flow: &'a Flow,
    file: &'a MountedFile,
    pacer: Pacer,
    /// Bytes written that may still be in the page cache.
    unsynced: u64,
}

impl<'a> Passes<'a> {
    fn of(flow: &'a Flow, file: &'a MountedFile) -> Self {
        let pacer = Pacer::for_stream(flow, whole_pages(flow.config.chunk));
        Self { flow, file, pacer, unsynced: 0 }
    }

    /// Repeats passes until the flow must end; `way` moves up to the given number of bytes at an offset of the file.
    fn run(
        mut self,
        may: impl Fn() -> bool,
        mut way: impl FnMut(u64, usize) -> rustix::io::Result<usize>,
        writes: bool,
    ) -> Result<(), MoveError> {
        let (mut done, mut left) = (0, self.flow.config.limit_bytes.unwrap_or(u64::MAX));
        while may() && left > 0 && self.file.passes.is_none_or(|passes| done < passes) {
            if !self.file.direct && !writes {
                let dropped = drop_part(&self.flow.socket, &self.file.part);
                dropped.map_err(|cause| {
                    self.failed("drop the cached part of", self.file.part.start, cause)
                })?;
            }
            let began = Instant::now();
            let whole = self.pass(&may, &mut way, &mut left, began)?;
            // Bringing written data to the server is part of the pass, even if the stop has cut the pass short.
            let sync = if writes { Some(self.sync()?) } else { None };
            self.confirm();
            if whole {
                self.file.log.ended(self.flow.config.id, began, began.elapsed(), sync);
            }
            done += 1;
        }
        Ok(())
    }

    /// One pass; returns whether it was completed.
    fn pass(
        &mut self,
        may: impl Fn() -> bool,
        way: &mut impl FnMut(u64, usize) -> rustix::io::Result<usize>,
        left: &mut u64,
        began: Instant,
    ) -> Result<bool, MoveError> {
        let Range { start, end } = self.file.part;
        let mut at = start;
        while at < end {
            if !may() || *left == 0 {
                return Ok(false);
            }
            if !self.pacer.wait(self.flow)? {
                continue;
            }
            let want = self.piece(end - at, *left);
            match self.flow.counters.blocked.during(|| way(at, want)) {
                Ok(0) => return Err(self.shrunk(at)),
                Ok(moved) => {
                    let moved = (moved as u64).min(end - at);
                    if at == start {
                        self.file.log.began(self.flow.config.id, began, began.elapsed());
                    }
                    at += moved;
                    *left = left.saturating_sub(moved);
                    self.flow.counters.moved(moved);
                    self.unsynced += moved;
                    if self.file.direct {
                        self.confirm();
                    }
                    self.pacer.sent(self.flow, usize::try_from(moved).unwrap_or(usize::MAX));
                }
                Err(Errno::INTR) => {}
                Err(cause) => return Err(self.failed("go on with", at, cause.into())),
            }
        }
        Ok(true)
    }

    /// Bytes of the next call, given what remains of the part and of the flow: whole pages, because `O_DIRECT` requires
    /// them. The last page may be read beyond the end of the file. Without `O_DIRECT` the flow ends at the exact byte.
    fn piece(&self, of_part: u64, of_flow: u64) -> usize {
        let bytes = |left| usize::try_from(left).unwrap_or(usize::MAX);
        let most = self.flow.config.chunk.max(1).min(bytes(of_part)).min(bytes(of_flow));
        let pages = whole_pages(self.pacer.piece.min(most));
        if self.file.direct { pages } else { pages.min(bytes(of_flow)) }
    }

    /// The written data has left the page cache.
    fn confirm(&mut self) {
        let bytes = std::mem::take(&mut self.unsynced);
        self.file.confirmed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Brings the written data to the server's disk.
    fn sync(&self) -> Result<Duration, MoveError> {
        let began = Instant::now();
        self.flow.counters.blocked.during(|| fsync(&self.flow.socket)).map_err(|cause| {
            self.failed("bring to the disk (fsync)", self.file.part.start, cause.into())
        })?;
        Ok(began.elapsed())
    }

    fn shrunk(&self, at: u64) -> MoveError {
        let why = format!(
            "{} ends after {at} bytes, and had {} when the test began: name a file that nobody writes to",
            self.file.name, self.file.part.end
        );
        MoveError::Body { flow: self.flow.config.id, why, fault: BodyFault::Own }
    }

    fn failed(&self, operation: &str, at: u64, cause: std::io::Error) -> MoveError {
        let advice = match cause.raw_os_error() {
            Some(libc::ESTALE) => "; the server has replaced or removed the file",
            Some(libc::ENOSPC | libc::EDQUOT) => "; the file system or the quota is full",
            Some(libc::EIO | libc::ETIMEDOUT) => {
                "; the server or its disk failed, or a mount with `soft` gave up: see `dmesg`"
            }
            _ => "",
        };
        let fault = match cause.kind() {
            std::io::ErrorKind::PermissionDenied => BodyFault::Forbidden,
            _ => BodyFault::Own,
        };
        let why = format!("can't {operation} {} at byte {at}: {cause}{advice}", self.file.name);
        MoveError::Body { flow: self.flow.config.id, why, fault }
    }
}
