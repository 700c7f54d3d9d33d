//! The kernel's facts about one socket beside tcp_info: memory, queues, and values in effect.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use goodput_model::{Known, SocketMemory};
use rustix::net::sockopt;

/// Words of `SO_MEMINFO` (`SK_MEMINFO_VARS`, include/uapi/linux/sock_diag.h).
const MEMORY_WORDS: usize = 9;

/// Memory of a socket against its limits (`SO_MEMINFO`, Linux 4.12 and later).
pub fn socket_memory(socket: BorrowedFd<'_>) -> Known<SocketMemory> {
    let mut words = [0u32; MEMORY_WORDS];
    match read_memory(socket, &mut words) {
        Ok(length) if length >= size_of_val(&words) => Known::Value(memory(&words)),
        Ok(length) => Known::missing(format!("SO_MEMINFO of this kernel has only {length} bytes")),
        Err(error) => Known::missing(format!("no SO_MEMINFO: {error}")),
    }
}

/// Bytes that wait for the reader (`SIOCINQ`); for a UDP socket the size of the next datagram.
pub fn queued_input(socket: BorrowedFd<'_>) -> Known<u64> {
    let queued = rustix::io::ioctl_fionread(socket);
    known("the receive queue can't be read", queued)
}

/// Bytes that wait to be sent or acknowledged (`SIOCOUTQ`).
#[expect(unsafe_code, reason = "no library covers SIOCOUTQ")]
pub fn queued_output(socket: BorrowedFd<'_>) -> Known<u64> {
    let mut queued: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which has the number of TIOCOUTQ, writes one int, and `queued` lives
    // through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ as _, &mut queued) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return Known::missing(format!("the send queue can't be read: {error}"));
    }
    match u64::try_from(queued) {
        Ok(bytes) => Known::Value(bytes),
        Err(_) => Known::missing(format!("the kernel says {queued} bytes are in the send queue")),
    }
}

/// Name of the congestion control in force.
pub fn effective_congestion(socket: BorrowedFd<'_>) -> Known<String> {
    known("the congestion control can't be read", sockopt::tcp_congestion(socket))
}

/// Send memory limit, bytes as the kernel charges them: twice the requested value (socket(7)).
pub fn effective_sndbuf(socket: BorrowedFd<'_>) -> Known<u64> {
    let size = sockopt::socket_send_buffer_size(socket);
    known("the send buffer can't be read", size.map(|bytes| bytes as u64))
}

/// Receive memory limit, bytes as the kernel charges them: twice the requested value (socket(7)).
pub fn effective_rcvbuf(socket: BorrowedFd<'_>) -> Known<u64> {
    let size = sockopt::socket_recv_buffer_size(socket);
    known("the receive buffer can't be read", size.map(|bytes| bytes as u64))
}

fn known<T>(what: &str, result: rustix::io::Result<T>) -> Known<T> {
    match result {
        Ok(value) => Known::Value(value),
        Err(error) => Known::missing(format!("{what}: {error}")),
    }
}

pub(crate) fn memory(words: &[u32; MEMORY_WORDS]) -> SocketMemory {
    let [rmem_alloc, rcvbuf, wmem_alloc, sndbuf, _forward, wmem_queued, _options, backlog, drops] =
        words.map(u64::from);
    SocketMemory {
        rmem_alloc_bytes: rmem_alloc,
        rcvbuf_bytes: rcvbuf,
        wmem_alloc_bytes: wmem_alloc,
        sndbuf_bytes: sndbuf,
        wmem_queued_bytes: wmem_queued,
        backlog_bytes: backlog,
        drops,
    }
}

#[expect(unsafe_code, reason = "no library covers SO_MEMINFO")]
fn read_memory(socket: BorrowedFd<'_>, words: &mut [u32; MEMORY_WORDS]) -> io::Result<usize> {
    let mut length = size_of_val(words) as libc::socklen_t;
    // SAFETY: `words` and `length` live through the call, and `length` is the size of `words`,
    // beyond which the kernel writes nothing.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(length as usize) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn bytes_that_nobody_read_are_in_the_queue_and_in_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 1000]).unwrap();
        assert_eq!(receiver.peek(&mut [0]).unwrap(), 1);
        assert_eq!(queued_input(receiver.as_fd()), Known::Value(1000));
        let memory = socket_memory(receiver.as_fd());
        let memory = memory.get().unwrap();
        assert!(memory.rmem_alloc_bytes >= 1000 && memory.drops == 0);
        assert_eq!(effective_rcvbuf(receiver.as_fd()), Known::Value(memory.rcvbuf_bytes));
        assert_eq!(effective_sndbuf(receiver.as_fd()), Known::Value(memory.sndbuf_bytes));
        receiver.read_exact(&mut [0; 1000]).unwrap();
        assert_eq!(queued_input(receiver.as_fd()), Known::Value(0));
        assert!(matches!(queued_output(sender.as_fd()), Known::Value(bytes) if bytes <= 1000));
        assert!(!effective_congestion(sender.as_fd()).get().unwrap().is_empty());
    }

    #[test]
    fn what_is_no_socket_has_none_of_it() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(socket_memory(file.as_fd()).get().is_err());
        assert!(queued_output(file.as_fd()).get().is_err());
        assert!(effective_congestion(file.as_fd()).get().is_err());
        assert!(effective_sndbuf(file.as_fd()).get().is_err());
    }
}
