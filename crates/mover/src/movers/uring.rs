//! io_uring(7): many writes, or many reads, in one system call.
//!
//! Every write is requested without waiting (`MSG_DONTWAIT`), so the kernel does it, or refuses it, within the one call
//! that submits all of them: nothing is in flight between two calls. Small chunks gain most, because each would
//! otherwise be its own system call. To receive, one request stands for all reads to come ([`crate::multishot`]); if
//! the kernel does not support this, each read is requested on its own, like the writes.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use goodput_model::{Plan, Role, Source};
use io_uring::{opcode, squeue, types};
use rustix::io::{Errno, Result as SysResult};

use super::{Mover, check_stream};
use crate::asleep::SleepMeter;
use crate::buffer_pool::{BUFFER_BYTES, PooledBuffer};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::multishot::{self, Multishot};
use crate::pages::Pages;
use crate::ring::{Answer, QUEUE_DEPTH, Refusal, Ring, no_ring, outcome, ring_can_be_had};
use crate::storage::FileSource;
use crate::stream;
use crate::transfer::{self, FileSender, SendFailure, Sent};

/// Most bytes of one call, unless a chunk is larger: attempts that a full socket would refuse cost time too.
const BYTES_PER_CALL: usize = 256 << 10;

/// Writes and reads chunks, several in one call. Memory: one chunk shared by all sending flows; to receive, 256 KiB for
/// each flow inside a call, 8 MiB at most; and for each flow a few KiB that are shared with the kernel.
pub struct Uring;

impl Mover for Uring {
    fn id(&self) -> &'static str {
        "uring"
    }

    fn summary(&self) -> &'static str {
        "send and receive many chunks in one system call (io_uring)"
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_stream(self, plan)?;
        ring_can_be_had(self)
    }

    fn needs(&self, plan: &Plan, role: Role) -> Needs {
        let needs = Needs { descriptors: 1, ..Needs::chunk(plan, role) };
        match role {
            Role::Sender => needs,
            Role::Receiver => Needs { memory_bytes: multishot::HELD_BYTES, ..needs },
        }
    }

    fn form(&self, role: Role) -> Option<String> {
        (role == Role::Receiver).then(|| match multishot() {
            Ok(()) => "one request receives into a ring of buffers (multishot)".into(),
            Err(Refusal::Lacks(cause)) => {
                let release = rustix::system::uname().release().to_string_lossy().into_owned();
                format!(
                    "each receive is a separate request, because the kernel refuses multishot ({cause}; it needs Linux 6.0, this is {release})"
                )
            }
            Err(Refusal::Now(cause)) => format!("the kernel's io_uring features could not be read: {cause}"),
        })
    }

    /// The writes of one call don't wait for each other.
    fn continues(&self, chunk: usize) -> bool {
        depth(chunk) == 1
    }

    fn takes(&self, source: &Source) -> bool {
        *source != Source::Input
    }

    fn send(&self, flow: &Flow) -> Result<(), MoveError> {
        let chunk = flow.config.chunk;
        if let Some(source) = flow.config.storage.source.as_deref() {
            let ring =
                Ring::with(QUEUE_DEPTH, vec![0; chunk]).map_err(|cause| no_ring(flow, &cause))?;
            let way = FromFile { ring, source, waiting: 0..0, asleep: SleepMeter::new(flow) };
            return transfer::send(flow, source, way);
        }
        let pages = Pages::payload(&flow.config.framing, chunk)
            .map_err(|cause| flow.failed("make the buffer to send from", cause))?;
        let ring = Ring::with(QUEUE_DEPTH, pages).map_err(|cause| no_ring(flow, &cause))?;
        let mut writer = Writer { ring, len: chunk, socket: &flow.socket };
        stream::send_pieces(flow, chunk * depth(chunk), |at, want| writer.write(at, want))
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        match multishot() {
            // A multishot request knows no end of a body.
            Ok(()) if flow.config.bodies.is_some() => return receive_singly(flow),
            Ok(()) => {}
            Err(Refusal::Lacks(_)) => return receive_singly(flow),
            Err(Refusal::Now(cause)) => return Err(no_ring(flow, &cause)),
        }
        let mut ring = Multishot::new(flow.config.chunk).map_err(|cause| no_ring(flow, &cause))?;
        let room = multishot::room(flow.config.chunk);
        stream::receive(flow, room, |_| {
            let read = ring.read(&flow.socket, |payload| flow.show(payload));
            flow.counters.exhausted(ring.exhausted());
            read
        })
    }
}

/// Writes of one call.
fn depth(chunk: usize) -> usize {
    (BYTES_PER_CALL / chunk).clamp(1, QUEUE_DEPTH)
}

/// Whether this kernel supports multishot receive.
fn multishot() -> Result<(), Refusal> {
    static ANSWER: Answer = Answer::unknown();
    ANSWER.get(multishot::trial)
}

/// Receives with one request after the other.
fn receive_singly(flow: &Flow) -> Result<(), MoveError> {
    let mut ring = Ring::new(1).map_err(|cause| no_ring(flow, &cause))?;
    stream::receive(flow, BUFFER_BYTES, |want| {
        let read = read(&mut ring, &flow.socket, want);
        if let (Some(room), Ok(taken)) = (ring.release(), read) {
            flow.show(&room[..taken]);
        }
        read
    })
}

/// Reads up to `want` bytes without waiting, into a buffer that the ring holds during the call.
#[expect(unsafe_code, reason = "the kernel is given an address")]
fn read(ring: &mut Ring<PooledBuffer>, socket: &OwnedFd, want: usize) -> SysResult<usize> {
    let (start, want) = (ring.hold(PooledBuffer::take())?, want.min(BUFFER_BYTES));
    let request = opcode::Recv::new(types::Fd(socket.as_raw_fd()), start, want as u32)
        .flags(libc::MSG_DONTWAIT)
        .build();
    // SAFETY: the ring owns the buffer, and the flow keeps the socket for longer.
    unsafe { ring.note(&request) }?;
    let mut result = Err(Errno::IO);
    ring.carry_out(|entry| result = outcome(entry.result()))?;
    result
}

/// Writes one buffer repeatedly.
struct Writer<'a> {
    ring: Ring<Arc<Pages>>,
    /// Bytes of the buffer.
    len: usize,
    socket: &'a OwnedFd,
}

impl Writer<'_> {
    /// Writes up to `want` bytes from offset `at` of the buffer, a chunk at a time, in one system call. If the socket
    /// is full for a moment during the call, a chunk before the last may be cut.
    fn write(&mut self, at: usize, want: usize) -> SysResult<usize> {
        for from in (0..want).step_by(self.len) {
            self.ask(at, self.len.min(want - from))?;
        }
        let (mut written, mut refused) = (0, None);
        self.ring.carry_out(|entry| match outcome(entry.result()) {
            Ok(bytes) => written += bytes,
            Err(cause) => drop(refused.get_or_insert(cause)),
        })?;
        match refused {
            Some(cause) if written == 0 => Err(cause),
            _ => Ok(written),
        }
    }

    /// Queues one write of `len` bytes for the next call.
    #[expect(unsafe_code, reason = "the kernel is given an address")]
    fn ask(&mut self, at: usize, len: usize) -> SysResult<()> {
        let start = self.ring.start()?.wrapping_add(at);
        let socket = types::Fd(self.socket.as_raw_fd());
        let write: squeue::Entry = opcode::Send::new(socket, start, len as u32)
            .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            .build();
        // SAFETY: the ring owns the pages, and nobody writes to them; the flow keeps the socket for longer.
        unsafe { self.ring.note(&write) }
    }
}

/// Reads a chunk of a file and sends it, both in one system call.
struct FromFile<'a> {
    /// With a buffer of one chunk.
    ring: Ring<Vec<u8>>,
    source: &'a FileSource,
    /// The part of the buffer that is not sent yet.
    waiting: Range<usize>,
    asleep: SleepMeter,
}

/// Tags of the two requests.
const READ_TAG: u64 = 1;
const SEND_TAG: u64 = 2;

/// The results of a read and a send; `None` for a request that was not made.
type Results = [Option<SysResult<usize>>; 2];

impl FromFile<'_> {
    /// Queues the send of a part of the buffer.
    fn note_send(&mut self, socket: &OwnedFd, part: Range<usize>) -> SysResult<()> {
        let start = self.ring.start()?.wrapping_add(part.start);
        let send = opcode::Send::new(types::Fd(socket.as_raw_fd()), start, part.len() as u32)
            .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            .build()
            .user_data(SEND_TAG);
        self.note(&send)
    }

    /// Queues the read of a part of the source. Unless the read is whole, the request queued next is canceled.
    fn note_read(&mut self, offset: u64, want: usize) -> SysResult<()> {
        let file = types::Fd(self.source.file.as_raw_fd());
        let read = opcode::Read::new(file, self.ring.start()?, want as u32)
            .offset(offset)
            .build()
            .user_data(READ_TAG)
            .flags(squeue::Flags::IO_LINK);
        self.note(&read)
    }

    #[expect(unsafe_code, reason = "the kernel is given an address")]
    fn note(&mut self, request: &squeue::Entry) -> SysResult<()> {
        // SAFETY: the ring owns the buffer, and nobody else reads or writes it; the flow keeps the file and the socket
        // for longer.
        unsafe { self.ring.note(request) }
    }

    fn carry_out(&mut self) -> SysResult<Results> {
        let mut results = [None; 2];
        self.ring.carry_out(|entry| {
            results[usize::from(entry.user_data() == SEND_TAG)] = Some(outcome(entry.result()));
        })?;
        Ok(results)
    }

    /// Reads `want` bytes and sends them; returns how many bytes the socket took.
    fn read_and_send(
        &mut self,
        flow: &Flow,
        offset: u64,
        want: usize,
    ) -> Result<usize, SendFailure> {
        let mut asleep = std::mem::take(&mut self.asleep);
        let results = asleep.during(flow, || {
            self.note_read(offset, want)?;
            self.note_send(&flow.socket, 0..want)?;
            self.carry_out()
        });
        self.asleep = asleep;
        let [read, sent] = results.map_err(SendFailure::Source)?;
        match read.unwrap_or(Err(Errno::IO)).map_err(SendFailure::Source)? {
            0 => Err(SendFailure::Ended),
            read => {
                self.waiting = 0..read;
                // A short read cancels the send that is linked to it: worth another try.
                let again = |cause| if cause == Errno::CANCELED { Errno::INTR } else { cause };
                sent.unwrap_or(Err(Errno::IO)).map_err(|cause| SendFailure::Socket(again(cause)))
            }
        }
    }

    /// Sends the rest of the buffer; returns how many bytes the socket took.
    fn send_on(&mut self, flow: &Flow) -> SysResult<usize> {
        self.note_send(&flow.socket, self.waiting.clone())?;
        self.carry_out()?[1].unwrap_or(Err(Errno::IO))
    }
}

impl FileSender for FromFile<'_> {
    fn send(&mut self, flow: &Flow, offset: u64, want: usize) -> Result<Sent, SendFailure> {
        let bytes = if self.waiting.is_empty() {
            self.read_and_send(flow, offset, want)?
        } else {
            self.send_on(flow).map_err(SendFailure::Socket)?
        };
        self.waiting.start += bytes;
        Ok(Sent { bytes, full: !self.waiting.is_empty() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::faults::{Fault, plant, plant_lasting};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    }

    fn writer(socket: &OwnedFd) -> (Writer<'_>, Arc<Pages>) {
        let pages = Pages::payload(&goodput_framing::goodput(), 100).unwrap();
        let ring = Ring::with(QUEUE_DEPTH, Arc::clone(&pages)).unwrap();
        (Writer { ring, len: 100, socket }, pages)
    }

    #[test]
    fn a_call_writes_many_chunks_and_then_says_that_the_socket_is_full() {
        let (near, far) = pair();
        let (mut writer, pages) = writer(&near);
        assert_eq!(writer.write(0, 250), Ok(250));
        assert_eq!(writer.write(50, 50), Ok(50));
        let mut read = [0; 400];
        assert_eq!(rustix::io::read(&far, &mut read), Ok(300));
        assert_eq!((&read[..100], &read[200..300]), (&pages[..], &pages[..]));
        while writer.write(0, QUEUE_DEPTH * 100).is_ok() {}
        assert_eq!(writer.write(0, 100), Err(Errno::AGAIN));
    }

    #[test]
    fn a_call_that_fails_for_a_moment_writes_nothing_twice() {
        let (near, far) = pair();
        let (mut writer, pages) = writer(&near);
        plant([Fault::Error(Errno::AGAIN), Fault::Error(Errno::INTR)]);
        assert_eq!((writer.write(0, 100), writer.write(0, 100)), (Ok(100), Ok(100)));
        let mut read = [0; 300];
        assert_eq!(rustix::io::read(&far, &mut read), Ok(200));
        assert_eq!((&read[..100], &read[100..200]), (&pages[..], &pages[..]));
    }

    #[test]
    fn a_call_that_fails_for_good_writes_nothing_ever() {
        let (near, far) = pair();
        let (mut writer, _pages) = writer(&near);
        plant_lasting(Errno::AGAIN);
        assert_eq!([writer.write(0, 250), writer.write(0, 100)], [Err(Errno::NOMEM); 2]);
        drop(writer);
        assert_eq!(rustix::io::read(&far, &mut [0; 1]), Err(Errno::AGAIN));
    }

    #[test]
    fn a_read_that_fails_leaves_no_room_to_the_kernel() {
        let (near, far) = pair();
        rustix::io::write(&far, b"seven b").unwrap();
        let mut ring = Ring::new(1).unwrap();
        plant([Fault::Error(Errno::AGAIN), Fault::NoWait]);
        assert_eq!(read(&mut ring, &near, 100), Ok(7));
        assert!(ring.release().unwrap().starts_with(b"seven b"));
        assert_eq!(read(&mut ring, &near, 100), Err(Errno::AGAIN), "it is empty");
        drop(ring.release());
        rustix::io::write(&far, b"more").unwrap();
        plant_lasting(Errno::AGAIN);
        assert_eq!(read(&mut ring, &near, 100), Err(Errno::NOMEM));
        assert!(ring.release().is_some());
        assert_eq!(read(&mut ring, &near, 100), Err(Errno::NOMEM), "no room is taken for it");
        assert!(ring.release().is_none());
        assert_eq!(rustix::io::read(&near, &mut [0; 9]), Ok(4));
    }
}
