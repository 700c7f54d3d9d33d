//! Setting the options of a plan on a socket.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::AsFd;

use goodput_model::traffic_class::{ECN_MASK, MAX_DSCP, traffic_class};
use goodput_model::{Bytes, Family, SocketOptions};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::error::SocketError;

/// A new socket for the family of `address`.
pub(super) fn new(
    kind: Type,
    address: SocketAddr,
    options: &SocketOptions,
) -> Result<Socket, SocketError> {
    let family = Domain::for_address(address);
    let (protocol, operation) = match kind == Type::STREAM {
        true if options.mptcp => (Protocol::MPTCP, "make an MPTCP socket for"),
        true => (Protocol::TCP, "make a socket for"),
        false => (Protocol::UDP, "make a socket for"),
    };
    Socket::new(family, kind, Some(protocol)).map_err(SocketError::of(operation, address))
}

/// Refuses addresses of a family that the user did not want.
pub(super) fn check_family(
    operation: &'static str,
    address: SocketAddr,
    options: &SocketOptions,
) -> Result<(), SocketError> {
    let fits = match options.family {
        None => true,
        Some(Family::V4) => address.ip().to_canonical().is_ipv4(),
        Some(Family::V6) => address.ip().to_canonical().is_ipv6(),
    };
    let why = "its IP version is not the requested one";
    if fits { Ok(()) } else { Err(SocketError::invalid(operation, address, why)) }
}

/// Refuses a link-local peer without a known link: the kernel would only call this an invalid argument.
pub(super) fn check_scope(
    operation: &'static str,
    peer: SocketAddr,
    options: &SocketOptions,
) -> Result<(), SocketError> {
    match peer {
        SocketAddr::V6(v6)
            if v6.ip().is_unicast_link_local()
                && v6.scope_id() == 0
                && options.device.is_none() =>
        {
            let why = format!("it is link-local and needs its device; write {}%DEVICE", v6.ip());
            Err(SocketError::invalid(operation, peer, &why))
        }
        _ => Ok(()),
    }
}

/// Device and local address of the near end, for a peer at `peer`.
pub(super) fn bind_near(
    socket: &Socket,
    options: &SocketOptions,
    peer: SocketAddr,
) -> Result<(), SocketError> {
    bind_device(socket, options)?;
    let port = options.source_port.unwrap_or(0);
    let local = match options.bind {
        Some(local) => local,
        None if port == 0 => return Ok(()),
        None => any(peer),
    };
    let why = "its IP version is not the peer's";
    let local = match (local, peer) {
        (IpAddr::V4(_), SocketAddr::V6(_)) | (IpAddr::V6(_), SocketAddr::V4(_)) => {
            return Err(SocketError::invalid("bind to", local, why));
        }
        // A link-local address has the peer's scope, unless a device was named.
        (IpAddr::V6(local), SocketAddr::V6(peer)) if local.is_unicast_link_local() => {
            SocketAddrV6::new(local, port, 0, peer.scope_id()).into()
        }
        (local, _) => SocketAddr::new(local, port),
    };
    let bound = socket.bind(&SockAddr::from(local));
    match port {
        0 => bound.map_err(SocketError::of("bind to", local.ip())),
        _ => bound.map_err(SocketError::of("bind to", local)),
    }
}

/// The wildcard address for a socket that talks to `peer`.
fn any(peer: SocketAddr) -> IpAddr {
    match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Opens a socket with `open`, which gets the options; if they name a local port, uses the first free one from there.
pub(super) fn from_free_port<T>(
    options: &SocketOptions,
    mut open: impl FnMut(&SocketOptions) -> Result<T, SocketError>,
) -> Result<T, SocketError> {
    let mut options = options.clone();
    loop {
        let opened = open(&options);
        let taken = opened.as_ref().is_err_and(SocketError::is_of_a_taken_port);
        match options.source_port.and_then(|port| port.checked_add(1)) {
            Some(next) if taken => options.source_port = Some(next),
            _ => return opened,
        }
    }
}

/// Device of the near end.
pub(super) fn bind_device(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    let Some(device) = &options.device else { return Ok(()) };
    let error = SocketError::of("bind to device", device);
    socket.bind_device(Some(device.as_bytes())).map_err(error)
}

/// Both buffers. Those of TCP must be set before connect and on the listener.
pub(super) fn set_buffers(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    if let Some(bytes) = options.sndbuf_bytes {
        let error = SocketError::of("set the send buffer to", bytes.0);
        socket.set_send_buffer_size(buffer_size(bytes)).map_err(error)?;
    }
    if let Some(bytes) = options.rcvbuf_bytes {
        let error = SocketError::of("set the receive buffer to", bytes.0);
        socket.set_recv_buffer_size(buffer_size(bytes)).map_err(error)?;
    }
    Ok(())
}

/// The kernel takes an int and cuts it to its own limit, which [`super::check_effective`] reports.
fn buffer_size(bytes: Bytes) -> usize {
    usize::try_from(bytes.0).unwrap_or(usize::MAX).min(i32::MAX as usize)
}

/// Options that only TCP has, before connect and on a listener.
pub(super) fn set_tcp(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    if let Some(name) = &options.congestion {
        socket.set_tcp_congestion(name.as_bytes()).map_err(SocketError::of_congestion(name))?;
    }
    if let Some(mss) = options.mss_bytes {
        socket.set_tcp_mss(mss).map_err(SocketError::of("set the segment size to", mss))?;
    }
    set_tcp_any_time(socket, options)
}

/// Options that a TCP socket accepts at any time, so also an accepted one.
pub(super) fn set_tcp_any_time(
    socket: &Socket,
    options: &SocketOptions,
) -> Result<(), SocketError> {
    set_max_pacing(socket, options)?;
    set_notsent_lowat(socket, options)?;
    set_nodelay(socket, options)
}

/// `TCP_NOTSENT_LOWAT`, if requested.
fn set_notsent_lowat(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    let Some(bytes) = options.notsent_lowat_bytes else { return Ok(()) };
    let unsent = u32::try_from(bytes.0).unwrap_or(u32::MAX);
    socket
        .set_tcp_notsent_lowat(unsent)
        .map_err(SocketError::of("bound what waits unsent to", bytes))
}

/// `SO_MAX_PACING_RATE`, if requested.
fn set_max_pacing(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    let Some(rate) = options.max_pacing_bits_per_s else { return Ok(()) };
    let bytes_per_s = (rate.bytes_in(1.0) as u64).to_ne_bytes();
    super::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_s)
        .map_err(SocketError::of("pace at most at", rate))
}

/// `TCP_NODELAY`, if requested.
fn set_nodelay(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    if !options.nodelay {
        return Ok(());
    }
    socket.set_tcp_nodelay(true).map_err(SocketError::of("set", "TCP_NODELAY"))
}

/// Options that only UDP has, before the first datagram.
pub(super) fn set_udp(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    set_dont_fragment(socket, options)
}

/// "Don't fragment" on every datagram over IPv4, if requested; over IPv6 nobody on the path fragments (RFC 8200). On an
/// IPv6 socket this applies to the IPv4 traffic that it may carry.
fn set_dont_fragment(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    if !options.dont_fragment {
        return Ok(());
    }
    let value = libc::IP_PMTUDISC_DO.to_ne_bytes();
    super::set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &value)
        .map_err(SocketError::of("set", "IP_MTU_DISCOVER"))
}

/// Options that any socket accepts at any time.
pub(super) fn set_any(
    socket: &Socket,
    options: &SocketOptions,
    family: Domain,
) -> Result<(), SocketError> {
    set_dscp(socket, options, family)?;
    // After the code point, which sets its own priority (`rt_tos2priority`, net/ipv4/ip_sockglue.c).
    set_priority(socket, options)?;
    set_busy_poll(socket, options)
}

/// `SO_PRIORITY`, if requested. Anyone may choose up to 6 (`sk_set_prio_allowed`, net/core/sock.c).
fn set_priority(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    let Some(priority) = options.priority else { return Ok(()) };
    let needs =
        "a priority above 6 needs CAP_NET_ADMIN or CAP_NET_RAW; run as root or choose 0 to 6";
    socket.set_priority(priority).map_err(SocketError::of_privilege(
        "use the socket priority",
        priority,
        needs,
    ))
}

/// `SO_BUSY_POLL`, if requested. Linux 6.18 lets anyone choose; older kernels let ordinary users only lower the value
/// of sysctl net.core.busy_read (`SO_BUSY_POLL`, net/core/sock.c).
fn set_busy_poll(socket: &Socket, options: &SocketOptions) -> Result<(), SocketError> {
    let Some(us) = options.busy_poll_us else { return Ok(()) };
    // A new socket has the value of that sysctl.
    let most = super::get_number(socket.as_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL);
    let most = most.map_or_else(|| "the value".into(), |most| format!("{most} us, the value"));
    let needs = format!(
        "without CAP_NET_ADMIN this kernel takes at most {most} of sysctl net.core.busy_read; run as root, or raise that \
         sysctl"
    );
    super::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL, &us.to_ne_bytes())
        .map_err(SocketError::of_privilege("busy-poll for", format!("{us} us"), needs))
}

/// The code point of every packet, for the IP version of `local` and, if an IPv6 socket carries
/// IPv4 too, for both.
pub(super) fn set_dscp(
    socket: &Socket,
    options: &SocketOptions,
    family: Domain,
) -> Result<(), SocketError> {
    let Some(dscp) = options.dscp else { return Ok(()) };
    if dscp > MAX_DSCP {
        return Err(SocketError::invalid("use code point", dscp, "it is not within 0 to 63"));
    }
    // The congestion marks are not ours to set.
    let class = |old: u32| u32::from(traffic_class(dscp)) | (old & u32::from(ECN_MASK));
    let set = || {
        if family == Domain::IPV6 {
            socket.set_tclass_v6(class(socket.tclass_v6()?))?;
        }
        // On an IPv6 socket this applies to the IPv4 traffic that it may carry (ip(7)).
        socket.set_tos_v4(class(socket.tos_v4()?))
    };
    set().map_err(SocketError::of("use code point", dscp))
}
