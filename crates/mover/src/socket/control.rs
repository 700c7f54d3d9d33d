//! The connection on which both ends talk while payload fills the path between them.

use std::os::fd::AsFd;

use goodput_model::SocketOptions;
use socket2::SockRef;

use super::error::SocketError;
use super::options::set_dscp;
use super::set_option;

/// Code point of operations, administration and management: CS2 (RFC 4594 section 3.3). Queues that respect code points
/// let these few packets pass the many packets of payload.
const CODE_POINT: u8 = 16;

/// `TC_PRIO_INTERACTIVE` (include/uapi/linux/pkt_sched.h): the first band of pfifo_fast and of fq. Anyone may request
/// it (`SO_PRIORITY`, socket(7)).
const SOCKET_PRIORITY: u32 = 6;

/// Unsent bytes that the kernel accepts (`TCP_NOTSENT_LOWAT`, tcp(7)). Anything more waits in this program, which sees
/// that the path is slow and sends less.
const NOTSENT_LOWAT_BYTES: u32 = 16 * 1024;

/// Longest wait before the same bytes are sent again, milliseconds. Time-outs double, to two minutes: after a few losses
/// the next attempt would come later than an end waits for the other's report.
const MAX_RTO_MS: u32 = 3000;

/// Option that sets it, since Linux 6.15 (include/uapi/linux/tcp.h).
const TCP_RTO_MAX_MS: i32 = 44;

/// Gives a control connection priority over payload, keeps its queue short, and lets it try again soon.
pub fn apply_control(socket: impl AsFd) -> Result<(), SocketError> {
    let socket = SockRef::from(&socket);
    let family = socket.domain().map_err(SocketError::of("ask the IP version of", "a socket"))?;
    let options = SocketOptions { dscp: Some(CODE_POINT), ..SocketOptions::default() };
    set_dscp(&socket, &options, family)?;
    // After the code point, which sets its own priority.
    socket
        .set_priority(SOCKET_PRIORITY)
        .map_err(SocketError::of("use priority", SOCKET_PRIORITY))?;
    socket.set_tcp_notsent_lowat(NOTSENT_LOWAT_BYTES).map_err(SocketError::of(
        "bound what waits unsent to",
        format!("{NOTSENT_LOWAT_BYTES} bytes"),
    ))?;
    set_time_outs(&socket)
}

/// Bounds time-outs, or lets at least the first six of a connection with little in flight not double
/// (`TCP_THIN_LINEAR_TIMEOUTS`, net/ipv4/tcp_timer.c) where the kernel has no bound for one connection.
fn set_time_outs(socket: &SockRef<'_>) -> Result<(), SocketError> {
    let bounded =
        set_option(socket.as_fd(), libc::IPPROTO_TCP, TCP_RTO_MAX_MS, &MAX_RTO_MS.to_ne_bytes());
    match bounded {
        Err(why) if why.raw_os_error() == Some(libc::ENOPROTOOPT) => socket
            .set_tcp_thin_linear_timeouts(true)
            .map_err(SocketError::of("keep short", "time-outs")),
        bounded => {
            bounded.map_err(SocketError::of("bound time-outs to", format!("{MAX_RTO_MS} ms")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_control_connection_goes_first_and_keeps_little_in_the_kernel() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            apply_control(&stream).unwrap();
            let socket = SockRef::from(&stream);
            assert_eq!(socket.tos_v4().unwrap() >> 2, u32::from(CODE_POINT));
            assert_eq!(socket.priority().unwrap(), SOCKET_PRIORITY);
            assert_eq!(socket.tcp_notsent_lowat().unwrap(), NOTSENT_LOWAT_BYTES);
            if address.starts_with('[') {
                assert_eq!(socket.tclass_v6().unwrap() >> 2, u32::from(CODE_POINT));
            }
        }
    }
}
