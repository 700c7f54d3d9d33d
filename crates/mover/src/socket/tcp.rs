//! TCP sockets: listening, connecting, and what an accepted socket still needs.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use goodput_model::SocketOptions;
use rustix::net::sockopt;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use super::error::SocketError;
use super::options::{
    bind_near, check_family, check_scope, from_free_port, new, set_any, set_buffers, set_tcp,
    set_tcp_any_time,
};

/// How long a peer may leave every byte and every probe unanswered (`TCP_USER_TIMEOUT`, tcp(7)). iperf3 waits as long
/// for data (3.12, `--rcv-timeout`): long enough for a path that goes away and comes back, and for a receiver that
/// takes nothing for a while.
const USER_TIMEOUT: Duration = Duration::from_secs(120);

/// Time without a byte until a peer is probed, and between probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// How long after "no route to host" to try once more: while a link flaps or a neighbour is looked up anew, the route is
/// back within a second. A host that stays unreachable is reported one second later.
const FLAP_TIME: Duration = Duration::from_secs(1);

/// Connections that may wait to be accepted; the kernel limits this to net.core.somaxconn.
const LISTEN_BACKLOG_CONNECTIONS: i32 = 1024;

/// Listens at `address` with everything that accepted sockets must inherit: buffers, congestion
/// control, segment size, code point. An IPv6 wildcard takes IPv4 too, unless the family says
/// otherwise. `bind` and `device` are the near end's and not used.
pub fn tcp_listen(address: SocketAddr, options: &SocketOptions) -> Result<OwnedFd, SocketError> {
    check_family("listen at", address, options)?;
    let socket = new(Type::STREAM, address, options)?;
    socket.set_reuse_address(true).map_err(SocketError::of("reuse", address))?;
    if address.is_ipv6() {
        let only = options.family.is_some();
        socket.set_only_v6(only).map_err(SocketError::of("choose the IP version of", address))?;
    }
    prepare(&socket, options, address)?;
    socket.bind(&SockAddr::from(address)).map_err(SocketError::of("listen at", address))?;
    socket.listen(LISTEN_BACKLOG_CONNECTIONS).map_err(SocketError::of("listen at", address))?;
    Ok(socket.into())
}

/// Connects to `address` within `timeout`, with all options set before the first SYN. The connecting end is the near
/// end, so `bind`, `device` and `source_port` apply; if a port is taken, the next one is tried.
pub fn tcp_connect(
    address: SocketAddr,
    options: &SocketOptions,
    timeout: Duration,
) -> Result<OwnedFd, SocketError> {
    let give_up = Instant::now() + timeout;
    let connect = |time: Duration| {
        connect_by(address, options, |socket| {
            socket.connect_timeout(&SockAddr::from(address), time)
        })
    };
    again_if_unreachable(give_up, connect)
}

/// Connects, and once more if the host was unreachable at that moment. Returns the first error: of a host without a route,
/// a second attempt says no more.
fn again_if_unreachable<T>(
    give_up: Instant,
    mut connect: impl FnMut(Duration) -> Result<T, SocketError>,
) -> Result<T, SocketError> {
    let time_left = || give_up.saturating_duration_since(Instant::now());
    match connect(time_left()) {
        Err(error)
            if error.cause.kind() == ErrorKind::HostUnreachable && time_left() > FLAP_TIME =>
        {
            std::thread::sleep(FLAP_TIME);
            connect(time_left()).map_err(|_| error)
        }
        outcome => outcome,
    }
}

/// The same, with the caller's wait: it returns once the socket is writable, or fails with the reason for giving up.
/// The socket is then in non-blocking mode.
pub fn tcp_connect_waiting(
    address: SocketAddr,
    options: &SocketOptions,
    mut wait: impl FnMut(BorrowedFd<'_>) -> io::Result<()>,
) -> Result<OwnedFd, SocketError> {
    connect_by(address, options, |socket| {
        socket.set_nonblocking(true)?;
        match socket.connect(&SockAddr::from(address)) {
            Err(cause) if cause.raw_os_error() != Some(libc::EINPROGRESS) => return Err(cause),
            _ => wait(socket.as_fd())?,
        }
        socket.take_error()?.map_or(Ok(()), Err)
    })
}

fn connect_by(
    address: SocketAddr,
    options: &SocketOptions,
    mut connect: impl FnMut(&Socket) -> io::Result<()>,
) -> Result<OwnedFd, SocketError> {
    check_family("connect to", address, options)?;
    check_scope("connect to", address, options)?;
    from_free_port(options, |options| {
        let socket = new(Type::STREAM, address, options)?;
        prepare(&socket, options, address)?;
        // A port that an earlier test used is free at once for another peer.
        let reuse = options.source_port.is_some();
        socket.set_reuse_address(reuse).map_err(SocketError::of("reuse a port for", address))?;
        bind_near(&socket, options, address)?;
        connect(&socket).map_err(SocketError::of("connect to", address))?;
        Ok(socket.into())
    })
}

/// Starts to connect like [`tcp_connect`], and returns at once: the socket, in non-blocking mode, becomes writable when
/// the connection is established or has failed (connect(2), `EINPROGRESS`).
pub fn tcp_begin(address: SocketAddr, options: &SocketOptions) -> Result<OwnedFd, SocketError> {
    check_family("connect to", address, options)?;
    let socket = new(Type::STREAM, address, options)?;
    prepare(&socket, options, address)?;
    bind_near(&socket, options, address)?;
    socket.set_nonblocking(true).map_err(SocketError::of("make non-blocking", address))?;
    match socket.connect(&SockAddr::from(address)) {
        Err(cause) if cause.raw_os_error() != Some(libc::EINPROGRESS) => {
            Err(SocketError::of("connect to", address)(cause))
        }
        _ => Ok(socket.into()),
    }
}

/// Breaks off a connection whose peer has vanished silently. Otherwise an end that only reads waits for ever, and one
/// that writes for 15 minutes (tcp(7), `tcp_retries2`). Accepted sockets inherit it.
pub fn notice_silence(socket: impl AsFd) -> io::Result<()> {
    let gone_ms = USER_TIMEOUT.as_millis() as u32;
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL)?;
    match sockopt::set_tcp_user_timeout(&socket, gone_ms) {
        // MPTCP has probes, but no such option (net/mptcp/sockopt.c `mptcp_setsockopt_sol_tcp`).
        Err(rustix::io::Errno::NOPROTOOPT) => Ok(()),
        done => Ok(done?),
    }
}

pub(super) fn prepare(
    socket: &Socket,
    options: &SocketOptions,
    address: SocketAddr,
) -> Result<(), SocketError> {
    notice_silence(socket).map_err(SocketError::of("set a silence time-out for", address))?;
    set_buffers(socket, options)?;
    set_tcp(socket, options)?;
    set_any(socket, options, Domain::for_address(address))
}

/// Sets on an accepted socket what its shared listener did not have, and returns doubts in words: what the handshake
/// has fixed can only be changed in part.
pub fn apply_accepted(
    socket: impl AsFd,
    options: &SocketOptions,
) -> Result<Vec<String>, SocketError> {
    let socket = SockRef::from(&socket);
    let family = socket.domain().map_err(SocketError::of("ask the IP version of", "a socket"))?;
    let mut doubts = late_congestion(&socket, options)?;
    if let Some(bytes) = options.rcvbuf_bytes.filter(|_| !has_buffers(&socket, options)) {
        doubts.push(format!(
            "the receive buffer of {} bytes was set after the handshake had fixed the window scale",
            bytes.0
        ));
    }
    set_buffers(&socket, options)?;
    set_tcp_any_time(&socket, options)?;
    set_any(&socket, options, family)?;
    Ok(doubts)
}

/// Whether the listener already gave the socket its receive buffer, as doubled by the kernel.
fn has_buffers(socket: &Socket, options: &SocketOptions) -> bool {
    let has = socket.recv_buffer_size().ok();
    has.zip(options.rcvbuf_bytes).is_some_and(|(has, asked)| has as u64 >= asked.0)
}

fn late_congestion(socket: &Socket, options: &SocketOptions) -> Result<Vec<String>, SocketError> {
    let Some(name) = &options.congestion else { return Ok(Vec::new()) };
    let old = super::effective::congestion(socket).unwrap_or_default();
    if old == *name {
        return Ok(Vec::new());
    }
    socket.set_tcp_congestion(name.as_bytes()).map_err(SocketError::of_congestion(name))?;
    Ok(vec![format!(
        "congestion control {name} was set after the handshake: the connection began with {old} and may keep its pacing"
    )])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::Arc;

    use goodput_model::{Role, Transport};

    use crate::{FlowConfig, Gate, Stop};

    /// Connects with these outcomes one after the other; how often, and with which outcome.
    fn attempts(outcomes: &[Option<ErrorKind>], timeout: Duration) -> (usize, Option<ErrorKind>) {
        let mut tried = 0;
        let outcome = again_if_unreachable(Instant::now() + timeout, |_| {
            tried += 1;
            let address = SocketAddr::from(([192, 0, 2, 1], 1));
            let failed = |kind| Err(SocketError::of("connect to", address)(io::Error::from(kind)));
            outcomes[tried - 1].map_or(Ok(()), failed)
        });
        (tried, outcome.err().map(|error| error.cause.kind()))
    }

    #[test]
    fn a_host_that_is_unreachable_for_a_moment_is_tried_once_more() {
        use ErrorKind::{ConnectionRefused, HostUnreachable, TimedOut};
        let long = Duration::from_secs(3600);
        assert_eq!(attempts(&[Some(HostUnreachable), None], long), (2, None));
        let still = [Some(HostUnreachable), Some(TimedOut)];
        assert_eq!(attempts(&still, long), (2, Some(HostUnreachable)));
        assert_eq!(attempts(&still, Duration::from_millis(500)), (1, Some(HostUnreachable)));
        assert_eq!(attempts(&[Some(ConnectionRefused)], long), (1, Some(ConnectionRefused)));
    }

    #[test]
    fn a_receiver_delays_acknowledgements_or_asks_for_them_after_a_read() {
        let options = SocketOptions::default();
        let listener = tcp_listen(SocketAddr::from(([127, 0, 0, 1], 0)), &options).unwrap();
        let listener = std::net::TcpListener::from(listener);
        let address = listener.local_addr().unwrap();
        for on in [false, true] {
            let near = tcp_connect(address, &options, Duration::from_secs(60)).unwrap();
            let mut far = listener.accept().unwrap().0;
            let is_quick = near.try_clone().unwrap();
            let is_quick = || sockopt::tcp_quickack(&is_quick).unwrap();
            sockopt::set_tcp_quickack(&near, !on).unwrap();
            assert_eq!(is_quick(), !on);
            let config = FlowConfig::new(Role::Receiver, Transport::Tcp, 1000);
            let config = FlowConfig { quickack: Some(on), ..config };
            let (gate, stop) = (Arc::new(Gate::default()), Arc::new(Stop::new().unwrap()));
            let mover = crate::movers::find("copy").unwrap();
            let flow = crate::start(mover, config, near, Arc::clone(&gate), stop).unwrap();
            gate.open();
            far.write_all(b"!").unwrap();
            goodput_testing::wait_for("the wish", || is_quick() == on);
            drop(far);
            flow.join().unwrap();
        }
    }

    #[test]
    fn both_ends_notice_a_peer_that_is_gone() {
        let options = SocketOptions::default();
        let listener = tcp_listen(SocketAddr::from(([127, 0, 0, 1], 0)), &options).unwrap();
        let listener = std::net::TcpListener::from(listener);
        let address = listener.local_addr().unwrap();
        let near = tcp_connect(address, &options, Duration::from_secs(5)).unwrap();
        let (far, _) = listener.accept().unwrap();
        for end in [near, far.into()] {
            assert!(sockopt::socket_keepalive(&end).unwrap());
            assert_eq!(sockopt::tcp_keepidle(&end).unwrap(), KEEPALIVE_INTERVAL);
            assert_eq!(
                u128::from(sockopt::tcp_user_timeout(&end).unwrap()),
                USER_TIMEOUT.as_millis()
            );
        }
    }
}
