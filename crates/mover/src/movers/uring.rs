//! io_uring(7): many writes, or many reads, in one system call.
//!
//! Every write is asked for without waiting (`MSG_DONTWAIT`), so the kernel does it, or refuses it,
//! within the one call that hands all of them over: nothing is left under way between two calls.
//! Small chunks gain most, as each would otherwise be a system call of its own. To receive, one request
//! stands for all reads to come ([`crate::multishot`]); where the kernel lacks that, each is asked for
//! by itself, as the writes are.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use goodput_model::{Plan, Role, Source, Transport};
use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::{Errno, Result as SysResult};
use rustix::process::{Resource, getrlimit};

use super::{Mover, check_chunk, check_transport};
use crate::asleep::Asleep;
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::multishot::{self, Multishot};
use crate::pages::Pages;
use crate::rooms::{ROOM, Room};
use crate::storage::FileSource;
use crate::stream;
use crate::transfer::{self, Sent, Trouble, Way};

/// Writes of one call at most.
const DEPTH: usize = 64;
/// Bytes of one call at most, unless a chunk is larger: what a full socket would refuse costs time
/// too.
const AT_ONCE: usize = 256 << 10;

/// Writes and reads chunks, several in one call. Memory: one chunk for all sending flows; to receive
/// 256 KiB for each flow that is within a call, 8 MiB at most; and a few KiB for each that are shared with
/// the kernel.
pub struct Uring;

impl Mover for Uring {
    fn id(&self) -> &'static str {
        "uring"
    }

    fn summary(&self) -> &'static str {
        "send and receive many chunks in one system call (io_uring)"
    }

    fn transports(&self) -> &'static [Transport] {
        &[Transport::Tcp]
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_transport(self, plan)?;
        check_chunk(self, plan)?;
        ring_can_be_had(self)
    }

    fn needs(&self, plan: &Plan, role: Role) -> Needs {
        let needs = Needs { descriptors: 1, ..Needs::chunk(plan, role) };
        match role {
            Role::Sender => needs,
            Role::Receiver => Needs { memory_bytes: multishot::HELD, ..needs },
        }
    }

    fn form(&self, role: Role) -> Option<String> {
        (role == Role::Receiver).then(|| match multishot() {
            Ok(()) => "one request receives into a ring of buffers (multishot)".into(),
            Err(why) => format!("each receive is a request of its own, as {why}"),
        })
    }

    fn takes(&self, source: &Source) -> bool {
        *source != Source::Input
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let chunk = flow.config.chunk;
        if let Some(source) = flow.config.storage.source.as_deref() {
            let ring = new_ring(flow)?;
            let (buffer, asleep) = (vec![0; chunk], Asleep::new(flow));
            let way = FromFile { ring, buffer, source, waiting: 0..0, asleep };
            return transfer::send(flow, source, way);
        }
        let pages = Pages::payload(&flow.config.framing, chunk)
            .map_err(|cause| flow.failed("make the buffer to send from", cause))?;
        let ring = new_ring(flow)?;
        let mut writer = Writer { ring, pages, socket: &flow.socket };
        let depth = (AT_ONCE / chunk).clamp(1, DEPTH);
        stream::send_pieces(flow, chunk * depth, |want: usize| writer.write(want))
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        let socket = types::Fd(flow.socket.as_raw_fd());
        if multishot().is_err() {
            return receive_singly(flow, socket);
        }
        let mut ring = Multishot::new(flow.config.chunk).map_err(|cause| no_ring(flow, &cause))?;
        let room = multishot::room(flow.config.chunk);
        stream::receive(flow, room, |_| {
            let read = ring.read(socket);
            flow.counters.exhausted(ring.exhausted());
            read
        })
    }
}

/// Whether this kernel can receive many times by one request; if not, why. What it said is kept, unless
/// another time it may say something else.
fn multishot() -> Result<(), String> {
    static SAID: OnceLock<Result<(), String>> = OnceLock::new();
    if let Some(said) = SAID.get() {
        return said.clone();
    }
    let said = multishot::trial().map_err(|cause| {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        format!("the kernel refuses more ({cause}; it takes Linux 6.0, this is {release})")
    });
    SAID.get_or_init(|| said).clone()
}

/// Receives by one request after the other.
fn receive_singly(flow: &Flow, socket: types::Fd) -> Result<(), MoveError> {
    let mut ring = new_ring(flow)?;
    let mut room = Room::of(flow.config.chunk.max(ROOM));
    stream::receive(flow, room.len(), |want| room.lend(want, |room| read(&mut ring, socket, room)))
}

#[expect(unsafe_code, reason = "the kernel is given an address")]
fn read(ring: &mut IoUring, socket: types::Fd, room: &mut [u8]) -> SysResult<usize> {
    let request = opcode::Recv::new(socket, room.as_mut_ptr(), room.len() as u32)
        .flags(libc::MSG_DONTWAIT)
        .build();
    // SAFETY: as the request does not wait, it is over when the call that hands it over returns.
    unsafe { ring.submission().push(&request) }.map_err(|_| Errno::BUSY)?;
    loop {
        match ring.submit_and_wait(1).map_err(errno) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(cause) => return Err(cause),
        }
        if let Some(entry) = ring.completion().next() {
            let result = entry.result();
            return usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
        }
    }
}

pub(super) fn new_ring(flow: &Flow) -> Result<IoUring, MoveError> {
    IoUring::new(DEPTH as u32).map_err(|cause| no_ring(flow, &cause))
}

/// Whether a mover that needs a ring gets one here.
pub(super) fn ring_can_be_had(mover: &dyn Mover) -> Result<(), Unsupported> {
    IoUring::new(DEPTH as u32).map(drop).map_err(|cause| Unsupported {
        mover: mover.id().into(),
        why: format!("no io_uring can be had: {cause}"),
        needs: needs(&cause),
    })
}

fn no_ring(flow: &Flow, cause: &io::Error) -> MoveError {
    let cause = io::Error::new(cause.kind(), format!("{cause}; {}", needs(cause)));
    MoveError::from_system(flow.config.id, "make an io_uring", cause)
}

/// What io_uring takes, by the cause of its refusal (io_uring_setup(2)).
fn needs(cause: &io::Error) -> String {
    let words = match cause.raw_os_error() {
        Some(libc::ENOSYS) => "it needs Linux 5.6 or later, built with io_uring",
        Some(libc::EPERM | libc::EACCES) => {
            "allow it: sysctl kernel.io_uring_disabled, or the system call filter of the container"
        }
        // Pages of its queues and of its ring of buffers (io_uring/memmap.c of Linux 6.18,
        // `io_create_region`).
        Some(libc::ENOMEM) => {
            let has = getrlimit(Resource::Memlock).current.map_or(0, |bytes| bytes / 1024);
            return format!(
                "raise the limit on locked memory, {has} KiB by now (ulimit -l): each flow takes at least \
                 8 KiB of it to send, and 12 KiB to receive"
            );
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "use fewer flows or raise ulimit -n: it takes one more"
        }
        _ => "choose another mover",
    };
    words.into()
}

/// Writes one buffer again and again.
struct Writer<'a> {
    // Dropped before the pages, of which it knows the addresses.
    ring: IoUring,
    pages: Arc<Pages>,
    socket: &'a OwnedFd,
}

impl Writer<'_> {
    /// Writes up to `want` bytes, a chunk at a time, in one system call. The order does not matter,
    /// as all chunks are the same.
    fn write(&mut self, want: usize) -> SysResult<usize> {
        let mut asked = 0;
        for at in (0..want).step_by(self.pages.len()) {
            let len = self.pages.len().min(want - at);
            self.ask(len)?;
            asked += 1;
        }
        self.enter(asked)?;
        self.collect(asked)
    }

    /// Notes one write of `len` bytes for the next call.
    #[expect(unsafe_code, reason = "the kernel is given an address")]
    fn ask(&mut self, len: usize) -> SysResult<()> {
        let socket = types::Fd(self.socket.as_raw_fd());
        let write: squeue::Entry = opcode::Send::new(socket, self.pages.as_ptr(), len as u32)
            .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            .build();
        // SAFETY: the pages and the socket outlive the ring, and nobody writes to the pages.
        unsafe { self.ring.submission().push(&write) }.map_err(|_| Errno::BUSY)
    }

    /// Hands over what was noted, until `count` results are there.
    fn enter(&self, count: usize) -> SysResult<()> {
        loop {
            match self.ring.submit_and_wait(count).map_err(errno) {
                Err(Errno::INTR) => {}
                other => return other.map(drop),
            }
        }
    }

    /// Takes the results of `asked` writes: their sum, or the first error where nothing was written.
    fn collect(&mut self, asked: usize) -> SysResult<usize> {
        let (mut written, mut refused, mut taken) = (0, None, 0);
        while taken < asked {
            for result in self.ring.completion().map(|entry| entry.result()) {
                taken += 1;
                match usize::try_from(result) {
                    Ok(bytes) => written += bytes,
                    Err(_) => {
                        refused.get_or_insert(Errno::from_raw_os_error(-result));
                    }
                }
            }
            if taken < asked {
                self.enter(asked - taken)?;
            }
        }
        match refused {
            Some(cause) if written == 0 => Err(cause),
            _ => Ok(written),
        }
    }
}

/// Reads a chunk of a file and sends it, both in one system call.
struct FromFile<'a> {
    // Dropped before the buffer, of which it knows the address.
    ring: IoUring,
    buffer: Vec<u8>,
    source: &'a FileSource,
    /// What of the buffer is not sent yet.
    waiting: Range<usize>,
    asleep: Asleep,
}

/// Marks of the two requests.
const READ: u64 = 1;
const SEND: u64 = 2;

impl FromFile<'_> {
    /// Notes the sending of a part of the buffer.
    fn send_request(&self, flow: &Flow, part: Range<usize>) -> squeue::Entry {
        let start = self.buffer[part.clone()].as_ptr();
        opcode::Send::new(types::Fd(flow.socket.as_raw_fd()), start, part.len() as u32)
            .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            .build()
            .user_data(SEND)
    }

    /// Hands the requests over and waits for their results, which come back in the order of
    /// [`READ`] and [`SEND`]; what was not asked for is a success of nothing.
    #[expect(unsafe_code, reason = "the kernel is given addresses")]
    fn carry_out(&mut self, requests: &[squeue::Entry]) -> SysResult<[i32; 2]> {
        for request in requests {
            // SAFETY: the buffer, the file and the socket outlive the requests, as this waits for
            // all of them, and nobody else uses the buffer meanwhile.
            unsafe { self.ring.submission().push(request) }.map_err(|_| Errno::BUSY)?;
        }
        let (mut results, mut taken) = ([0; 2], 0);
        while taken < requests.len() {
            match self.ring.submit_and_wait(requests.len() - taken).map_err(errno) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(cause) => return Err(cause),
            }
            for entry in self.ring.completion() {
                results[usize::from(entry.user_data() == SEND)] = entry.result();
                taken += 1;
            }
        }
        Ok(results)
    }

    /// Reads `want` bytes and sends them; what the socket took.
    fn read_and_send(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<i32, Trouble> {
        let file = types::Fd(self.source.file.as_raw_fd());
        let read = opcode::Read::new(file, self.buffer.as_mut_ptr(), want as u32)
            .offset(offset)
            .build()
            .user_data(READ)
            .flags(squeue::Flags::IO_LINK);
        let requests = [read, self.send_request(flow, 0..want)];
        let mut asleep = std::mem::take(&mut self.asleep);
        let results = asleep.during(flow, || self.carry_out(&requests));
        self.asleep = asleep;
        let [read, sent] = results.map_err(Trouble::Source)?;
        match usize::try_from(read) {
            Ok(0) => Err(Trouble::Ended),
            Ok(read) => {
                self.waiting = 0..read;
                // A short read takes the send that is linked to it back: it is worth another one.
                let canceled = sent == -Errno::CANCELED.raw_os_error();
                Ok(if canceled { -Errno::INTR.raw_os_error() } else { sent })
            }
            Err(_) => Err(Trouble::Source(Errno::from_raw_os_error(-read))),
        }
    }
}

impl Way for FromFile<'_> {
    fn send(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<Sent, Trouble> {
        let sent = if self.waiting.is_empty() {
            self.read_and_send(flow, offset, want)?
        } else {
            let send = self.send_request(flow, self.waiting.clone());
            self.carry_out(&[send]).map_err(Trouble::Socket)?[1]
        };
        let bytes =
            usize::try_from(sent).map_err(|_| Trouble::Socket(Errno::from_raw_os_error(-sent)))?;
        self.waiting.start += bytes;
        Ok(Sent { bytes, full: !self.waiting.is_empty() })
    }
}

pub(super) fn errno(cause: io::Error) -> Errno {
    Errno::from_io_error(&cause).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Framing;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn a_call_writes_many_chunks_and_then_says_that_the_socket_is_full() {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let (ring, pages) =
            (IoUring::new(DEPTH as u32).unwrap(), Pages::payload(&Framing::Goodput, 100).unwrap());
        let mut writer = Writer { ring, pages, socket: &near };
        assert_eq!(writer.write(250), Ok(250));
        let mut read = [0; 300];
        assert_eq!(rustix::io::read(&far, &mut read), Ok(250));
        assert_eq!((&read[..100], &read[200..250]), (&writer.pages[..], &writer.pages[..50]));
        while writer.write(DEPTH * 100).is_ok() {}
        assert_eq!(writer.write(100), Err(Errno::AGAIN));
    }
}
