//! `TCP_ZEROCOPY_RECEIVE`: the kernel maps the packets' pages into this program instead of copying their payload
//! (net/ipv4/tcp.c, `tcp_zerocopy_receive`; tools/testing/selftests/net/tcp_mmap.c).
//!
//! This works only with payload that fills whole pages. The card must put headers elsewhere (header split), and a
//! segment's payload must be a multiple of 4096 bytes: `--mss 4108` (12 bytes are TCP's timestamps), and a large enough
//! MTU. Everything else is copied, and the flow counts how much was mapped.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::slice;

use goodput_model::{HostWork, Plan, Role};
use rustix::io::{Errno, Result as SysResult};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::net::{AddressFamily, RecvFlags, SocketType, recv, socket};

use super::{Mover, check_kernel, check_stream};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::limits::Needs;
use crate::stream;

/// Most bytes mapped at once, as in tcp_mmap.c.
const MAPPING_BYTES: usize = 512 << 10;

/// Receives by mapping pages. Memory: 512 KiB for payload that must be copied; mapped pages are the packets' own.
pub struct ZerocopyReceive;

impl Mover for ZerocopyReceive {
    fn id(&self) -> &'static str {
        "zerocopy-receive"
    }

    fn summary(&self) -> &'static str {
        "map the pages of packets (TCP_ZEROCOPY_RECEIVE); count what had to be copied"
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Receiver]
    }

    fn work(&self, _role: Role) -> HostWork {
        HostWork::PageReferences
    }

    fn can_run(&self, plan: &Plan) -> Result<(), Unsupported> {
        check_stream(self, plan)?;
        check_kernel(self, "TCP_ZEROCOPY_RECEIVE", "4.18", || {
            let trial = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            Window::of(trial.as_fd()).map(drop)
        })
    }

    fn needs(&self, _plan: &Plan, _role: Role) -> Needs {
        Needs { memory_bytes: MAPPING_BYTES as u64, ..Needs::default() }
    }

    fn receive(&self, flow: &Flow) -> Result<(), MoveError> {
        let mut window = Window::of(flow.socket.as_fd())
            .map_err(|cause| MoveError::from_system(flow.config.id, "map the socket", cause))?;
        let mut buffer = vec![0; MAPPING_BYTES];
        flow.counters.mapped(0);
        stream::receive(flow, MAPPING_BYTES, |want: usize| {
            let Mapped { bytes, unmappable, ended } = window.map(flow, want)?;
            flow.counters.mapped(bytes as u64);
            // If there is no data at all, only this call distinguishes the end of the stream from a pause.
            let copy = if bytes == 0 && unmappable == 0 { want } else { unmappable };
            if copy == 0 || (ended && bytes > 0) {
                return Ok(bytes);
            }
            if bytes > 0 {
                flow.counters.called();
            }
            let room = &mut buffer[..copy.min(want - bytes)];
            match recv(&flow.socket, &mut *room, RecvFlags::empty()) {
                Ok((copied, _)) => {
                    flow.show(&room[..copied]);
                    Ok(bytes + copied)
                }
                // The mapped bytes have left the socket anyway.
                Err(_) if bytes > 0 => Ok(bytes),
                Err(cause) => Err(cause),
            }
        })
    }
}

/// Addresses at which the kernel maps pages of a socket.
struct Window {
    start: *mut std::ffi::c_void,
}

/// The result of one mapping call.
struct Mapped {
    /// Bytes that were taken out of the socket and mapped.
    bytes: usize,
    /// The bytes after them that can only be copied.
    unmappable: usize,
    /// Whether the kernel reports the end of the stream.
    ended: bool,
}

/// `struct tcp_zerocopy_receive` (include/uapi/linux/tcp.h of Linux 6.18). Older kernels know only its first two,
/// three, … fields, and accept a shorter structure.
#[repr(C)]
#[derive(Debug, Default)]
struct ZerocopyReceiveOption {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
}

impl Window {
    /// Fails if the kernel does not map sockets.
    #[expect(unsafe_code, reason = "mapping memory")]
    fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let (access, kind) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other.
        let start = unsafe { mmap(ptr::null_mut(), MAPPING_BYTES, access, kind, socket, 0)? };
        Ok(Self { start })
    }

    /// Takes up to `want` bytes that fill whole pages out of the flow's socket, and maps them.
    fn map(&mut self, flow: &Flow, want: usize) -> SysResult<Mapped> {
        let mut asked = ZerocopyReceiveOption {
            address: self.start.addr() as u64,
            length: want.min(MAPPING_BYTES) as u32,
            recv_skip_hint: 0,
        };
        match ask(&flow.socket, &mut asked) {
            Ok(()) => {}
            // The stream is over and fully read (`SOCK_DONE`).
            Err(Errno::IO) => return Ok(Mapped { bytes: 0, unmappable: 0, ended: true }),
            Err(cause) => return Err(cause),
        }
        let bytes = asked.length as usize;
        if bytes > 0 {
            flow.show(self.content(bytes));
            self.unmap(bytes)?;
        }
        Ok(Mapped { bytes, unmappable: asked.recv_skip_hint as usize, ended: false })
    }

    /// What the kernel has just mapped.
    #[expect(unsafe_code, reason = "memory that the kernel has mapped")]
    fn content(&self, bytes: usize) -> &[u8] {
        // SAFETY: the kernel has put this many bytes of pages there, and they stay until `unmap`.
        unsafe { slice::from_raw_parts(self.start.cast(), bytes.min(MAPPING_BYTES)) }
    }

    /// Returns the pages now, which is cheaper than leaving it to the next call (tcp_mmap.c).
    #[expect(unsafe_code, reason = "pages of the mapping go away")]
    fn unmap(&mut self, bytes: usize) -> SysResult<()> {
        // SAFETY: the mapping is ours, the kernel filled `bytes` of it, and nothing refers to them any more: a slice of
        // it lives no longer than the call that shows it.
        unsafe { madvise(self.start, bytes, Advice::LinuxDontNeed) }
    }
}

/// getsockopt(2) with the option.
#[expect(unsafe_code, reason = "rustix lacks TCP_ZEROCOPY_RECEIVE")]
fn ask(socket: &OwnedFd, asked: &mut ZerocopyReceiveOption) -> SysResult<()> {
    let mut len = mem::size_of::<ZerocopyReceiveOption>() as libc::socklen_t;
    // SAFETY: `asked` is writable for `len` bytes. Its address is that of a mapping of this socket; the kernel may put
    // pages there, and only the kernel fills it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_ZEROCOPY_RECEIVE,
            ptr::from_mut(asked).cast(),
            &raw mut len,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

impl Drop for Window {
    #[expect(unsafe_code, reason = "unmapping memory")]
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing refers to it.
        let _ = unsafe { munmap(self.start, MAPPING_BYTES) };
    }
}
