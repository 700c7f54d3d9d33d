//! Sockets for payload: created with all options in the right order, and checked afterwards.
//!
//! The order matters. The first SYN fixes the window scale, so a receive buffer must be set before connect
//! and on the listener (tcp(7)). A socket whose congestion control is changed later keeps the pacing of the
//! old one (net/ipv4/tcp_bbr.c sets `sk_pacing_status` and nothing clears it).

mod ancillary;
mod control;
mod effective;
mod error;
mod options;
mod permitted;
mod tcp;
mod udp;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use goodput_model::BitRate;
use socket2::SockRef;

pub use ancillary::{
    Received, enable_arrival_times, enable_destinations, receive_with_ancillary, send_from,
};
pub use control::apply_control;
pub use effective::{Effective, check_effective, cut_buffer, effective};
pub use error::SocketError;
pub use permitted::check_permitted;
pub use tcp::{
    apply_accepted, notice_silence, tcp_begin, tcp_connect, tcp_connect_waiting, tcp_listen,
};
pub use udp::{apply_datagram, udp_listen, udp_socket};

/// How much faster than the rate the kernel may send a paced stream. The kernel's pacing counts in whole packets and
/// must not become the limit; still, what a stall on the path has left in the send buffer must leave hardly faster than
/// the rate.
const KERNEL_MARGIN: f64 = 1.05;

/// Lets the receive queue grow to no more than `most` bytes, by the kernel's count (`sk_rcvbuf`).
pub(crate) fn limit_queue(socket: BorrowedFd<'_>, most: usize) -> io::Result<()> {
    if SockRef::from(&socket).recv_buffer_size()? > most {
        // The kernel doubles the given value (socket(7)).
        set_receive_buffer(socket, most / 2)?;
    }
    Ok(())
}

/// Sets the receive buffer to `bytes`. Without CAP_NET_ADMIN the kernel cuts the size to `net.core.rmem_max`
/// (socket(7)).
pub(crate) fn set_receive_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    // The kernel takes an int.
    let value = i32::try_from(bytes).unwrap_or(i32::MAX).to_ne_bytes();
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &value)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &value))
}

/// Lets the kernel pace what was written within one piece (`SO_MAX_PACING_RATE`, socket(7)).
pub(crate) fn limit_pacing_rate(socket: BorrowedFd<'_>, rate: BitRate) -> io::Result<()> {
    let bytes_per_s = rate.bytes_in(1.0) * KERNEL_MARGIN;
    if bytes_per_s < 1.0 {
        return Ok(());
    }
    let value = (bytes_per_s as u64).to_ne_bytes();
    match set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &value) {
        // MPTCP does not support this option (6.18). The rate is held anyway, only less smoothly.
        Err(cause) if cause.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        done => done,
    }
}

/// `TCP_CORK` (tcp(7)).
pub(crate) fn set_cork(socket: impl AsFd, on: bool) -> rustix::io::Result<()> {
    rustix::net::sockopt::set_tcp_cork(socket, on)
}

/// The smoothed round-trip time of a TCP connection, microseconds (`tcpi_rtt`, linux/tcp.h). At an end that only
/// receives, this is the time of the handshake.
pub(crate) fn rtt_us(socket: BorrowedFd<'_>) -> Option<u32> {
    tcp_info(socket, 68).filter(|rtt| *rtt > 0)
}

/// Segments that a TCP connection has sent, acknowledgements included (`tcpi_segs_out`, linux/tcp.h, since Linux 4.2).
pub(crate) fn segments_out(socket: BorrowedFd<'_>) -> Option<u32> {
    tcp_info(socket, 136)
}

/// Milliseconds since data last came on a TCP connection (`tcpi_last_data_recv`, linux/tcp.h).
pub(crate) fn last_data_received_ms(socket: BorrowedFd<'_>) -> Option<u32> {
    tcp_info(socket, 52)
}

/// Milliseconds since an acknowledgement last came (`tcpi_last_ack_recv`, linux/tcp.h); the answer to a keepalive probe
/// counts as one.
pub(crate) fn last_ack_received_ms(socket: BorrowedFd<'_>) -> Option<u32> {
    tcp_info(socket, 56)
}

/// The 32-bit field of `struct tcp_info` (linux/tcp.h) at offset `at`; `None` if the kernel's structure is shorter. The
/// structure only grows, so a field stays in its place.
#[expect(unsafe_code, reason = "rustix and socket2 lack TCP_INFO")]
fn tcp_info(socket: BorrowedFd<'_>, at: usize) -> Option<u32> {
    let mut info = [0_u8; 144];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: `info` is writable for `len` bytes, and the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let info = info.get(..len as usize).filter(|_| result == 0)?;
    info.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// Current payload of a segment of a TCP connection, bytes (`TCP_MAXSEG`, tcp(7)); zero if unknown.
pub(crate) fn segment_bytes(socket: BorrowedFd<'_>) -> u32 {
    SockRef::from(&socket).tcp_mss().unwrap_or(0)
}

/// A 32-bit number by getsockopt(2), for options that no library supports; `None` if there is none.
#[expect(unsafe_code, reason = "rustix and socket2 lack these options")]
pub(crate) fn get_number(socket: BorrowedFd<'_>, level: i32, name: i32) -> Option<u32> {
    let mut number = 0_u32;
    let mut len = size_of::<u32>() as libc::socklen_t;
    // SAFETY: `number` is writable for `len` bytes, and the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut number).cast(), &raw mut len)
    };
    (result == 0).then_some(number)
}

/// `TCP_QUICKACK` (tcp(7)): whether data received so far is acknowledged at once, which the kernel forgets soon. Turned
/// off before the handshake is over, it would delay the handshake's own acknowledgement
/// (`tcp_rcv_synsent_state_process`, net/ipv4/tcp_input.c).
pub(crate) fn set_quickack(socket: impl AsFd, on: bool) -> rustix::io::Result<()> {
    rustix::net::sockopt::set_tcp_quickack(socket, on)
}

/// setsockopt(2) for options that no library supports.
#[expect(unsafe_code, reason = "rustix and socket2 lack these options")]
pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &[u8],
) -> io::Result<()> {
    let len = value.len() as libc::socklen_t;
    // SAFETY: `value` is readable for `len` bytes during the call, and the kernel copies it.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// With CAP_NET_ADMIN a buffer may exceed `net.core.rmem_max`; without it, both steps are cut to this limit.
    #[test]
    fn a_queue_is_cut_to_what_it_may_hold_and_no_further() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let holds = || SockRef::from(&socket).recv_buffer_size().unwrap();
        set_receive_buffer(socket.as_fd(), 4 << 20).unwrap();
        for most in [64 << 20, 2 << 20, 200_000] {
            let before = holds();
            limit_queue(socket.as_fd(), most).unwrap();
            assert_eq!(holds(), before.min(most));
        }
    }
}
