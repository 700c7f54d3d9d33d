//! The connection on which both ends talk while payload fills the path between them.

use std::os::fd::AsFd;

use goodput_model::SocketOptions;
use socket2::SockRef;

use super::error::SocketError;
use super::options::set_dscp;

/// Code point of operations, administration and management: CS2 (RFC 4594 section 3.3). Queues that respect code points
/// let these few packets pass the many packets of payload.
const CODE_POINT: u8 = 16;

/// `TC_PRIO_INTERACTIVE` (include/uapi/linux/pkt_sched.h): the first band of pfifo_fast and of fq. Anyone may request
/// it (`SO_PRIORITY`, socket(7)).
const SOCKET_PRIORITY: u32 = 6;

/// Unsent bytes that the kernel accepts (`TCP_NOTSENT_LOWAT`, tcp(7)). Anything more waits in this program, which sees
/// that the path is slow and sends less.
const NOTSENT_LOWAT_BYTES: u32 = 16 * 1024;

/// Gives a control connection priority over payload, and keeps its queue short.
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
    ))
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
