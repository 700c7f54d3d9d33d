//! The sockets a server listens on: made here, or handed over by systemd.

use std::io::ErrorKind;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;

use goodput_mover::socket::notice_silence;
use goodput_wire::{protocols, session as wire};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::error::EngineError;
use crate::run::observe::keep_peak_memory;

/// Connections that may wait to be accepted.
const LISTEN_BACKLOG_CONNECTIONS: i32 = 4096;

/// Number of ports to try if the system chooses: it chooses a port that is free for TCP, but another program may have
/// the same port for UDP.
const MAX_PORT_ATTEMPTS: u32 = 20;

/// Receive buffer to request for a port's UDP socket, bytes: hundreds of clients may begin at once, and each takes a
/// moment. Without CAP_NET_ADMIN the kernel cuts it to net.core.rmem_max.
pub const UDP_RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// What a server listens on: its own port first, then the usual ports of other protocols.
pub struct Sockets {
    pub(in crate::serve) pairs: Vec<Pair>,
}

/// Both sockets of one port.
pub struct Pair {
    /// Control and data connections.
    pub tcp: TcpListener,
    /// Data flows over UDP.
    pub udp: UdpSocket,
    /// The protocols whose usual port it is; these may accept what no other protocol knows.
    pub usual_for: Vec<&'static wire::Protocol>,
}

impl Sockets {
    /// Opens both sockets on the same port of `bind`, whose own port is not used; without `bind`, on every address,
    /// IPv4 and IPv6. Port 0 lets the system choose.
    pub fn open(bind: Option<SocketAddr>, port: u16) -> Result<Self, EngineError> {
        Ok(Self::of(vec![Pair::open(bind, port, Vec::new())?]))
    }

    /// Also opens the usual port of `protocols`, or adds them to that port if it is already open.
    /// Returns its address.
    pub fn open_usual(
        &mut self,
        bind: Option<SocketAddr>,
        port: u16,
        protocols: Vec<&'static wire::Protocol>,
    ) -> Result<SocketAddr, EngineError> {
        for pair in &mut self.pairs {
            let address = pair.address()?;
            if address.port() == port {
                pair.usual_for.extend(protocols);
                return Ok(address);
            }
        }
        let pair = Pair::open(bind, port, protocols)?;
        pair.widen();
        let address = pair.address()?;
        self.pairs.push(pair);
        Ok(address)
    }

    /// The sockets that systemd hands over (sd_listen_fds(3)): the TCP listener of goodput's own port first, then the
    /// other listeners, in any order with the UDP sockets of the same ports. A missing UDP socket is opened here.
    /// `None` if systemd hands over none.
    pub fn from_systemd() -> Result<Option<Self>, EngineError> {
        let mut handed = listenfd::ListenFd::from_env();
        let taking = || EngineError::io("take over the sockets of systemd");
        let (mut listeners, mut datagrams) = (Vec::new(), Vec::new());
        for index in 0..handed.len() {
            match handed.take_tcp_listener(index) {
                Ok(tcp) => listeners.extend(tcp),
                Err(_) => datagrams.extend(handed.take_udp_socket(index).map_err(taking())?),
            }
        }
        let pairs = listeners.into_iter().map(|tcp| Pair::handed_over(tcp, &mut datagrams));
        let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
        Ok((!pairs.is_empty()).then(|| Self::of(pairs)))
    }

    /// The sockets as they are served. Does everything that takes a privilege: the server has none later.
    fn of(pairs: Vec<Pair>) -> Self {
        pairs.iter().for_each(Pair::widen);
        keep_peak_memory();
        Self { pairs }
    }

    /// Where goodput's own clients connect.
    pub fn address(&self) -> Result<SocketAddr, EngineError> {
        self.pairs[0].address()
    }
}

/// The error that nothing can listen at `address`, with advice for its cause; `option` chooses another port.
fn unheard(address: SocketAddr, option: &str) -> impl FnOnce(std::io::Error) -> EngineError {
    move |cause| {
        let advice = match cause.kind() {
            ErrorKind::AddrInUse => {
                format!("another program uses this port; {option} chooses another")
            }
            ErrorKind::AddrNotAvailable => {
                "no device of this host has this address; --bind chooses another".into()
            }
            ErrorKind::PermissionDenied => format!(
                "a port this low needs root or CAP_NET_BIND_SERVICE (sysctl \
                 net.ipv4.ip_unprivileged_port_start); {option} chooses another"
            ),
            _ => return EngineError::Io { operation: format!("listen on {address}"), cause },
        };
        let cause = std::io::Error::new(cause.kind(), format!("{cause}; {advice}"));
        EngineError::Io { operation: format!("listen on {address}"), cause }
    }
}

/// What was tried.
fn silent(listener: SocketAddr) -> String {
    format!("set a time-out for silent clients of {listener}")
}

impl Pair {
    fn open(
        bind: Option<SocketAddr>,
        port: u16,
        usual_for: Vec<&'static wire::Protocol>,
    ) -> Result<Self, EngineError> {
        let mut address = bind.unwrap_or(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0));
        address.set_port(port);
        let option = if usual_for.is_empty() { "--port" } else { "--protocols" };
        let mut tries = if port == 0 { MAX_PORT_ATTEMPTS } else { 1 };
        loop {
            let tcp: TcpListener = match listener(address) {
                // A kernel without IPv6 still has IPv4.
                Err(_) if bind.is_none() => listener(SocketAddr::new([0, 0, 0, 0].into(), port)),
                other => other,
            }
            .map_err(unheard(address, option))?
            .into();
            let local = tcp.local_addr().map_err(EngineError::io("read the listener's address"))?;
            notice_silence(&tcp).map_err(EngineError::io(silent(local)))?;
            tries -= 1;
            match datagram_socket(local) {
                Err(cause) if tries > 0 && cause.kind() == ErrorKind::AddrInUse => {}
                udp => {
                    let udp = udp.map_err(unheard(local, option))?.into();
                    return Ok(Self { tcp, udp, usual_for });
                }
            }
        }
    }

    /// A listener that was handed over, with its UDP socket if that was handed over too.
    fn handed_over(tcp: TcpListener, datagrams: &mut Vec<UdpSocket>) -> Result<Self, EngineError> {
        let local = tcp.local_addr().map_err(EngineError::io("read the listener's address"))?;
        notice_silence(&tcp).map_err(EngineError::io(silent(local)))?;
        let same = |udp: &UdpSocket| udp.local_addr().is_ok_and(|a| a.port() == local.port());
        let udp = match datagrams.iter().position(same) {
            Some(index) => {
                let udp = datagrams.swap_remove(index);
                let keeping = SockRef::from(&udp).set_reuse_address(false);
                keeping.map_err(EngineError::io(format!("keep the UDP port of {local}")))?;
                udp
            }
            None => datagram_socket(local)
                .map_err(EngineError::io(format!("open the UDP socket of {local}")))?
                .into(),
        };
        let usual = protocols::ALL.iter().copied().filter(|p| p.port == local.port());
        Ok(Self { tcp, udp, usual_for: usual.collect() })
    }

    /// Enlarges the receive buffer for the first datagrams of many clients.
    fn widen(&self) {
        if set_socket_recv_buffer_size_force(&self.udp, UDP_RECEIVE_BUFFER_BYTES).is_err() {
            // The kernel cuts the size instead of refusing it.
            let _ = SockRef::from(&self.udp).set_recv_buffer_size(UDP_RECEIVE_BUFFER_BYTES);
        }
    }

    /// Its address.
    pub fn address(&self) -> Result<SocketAddr, EngineError> {
        self.tcp.local_addr().map_err(EngineError::io("read the listener's address"))
    }
}

/// A TCP listener.
pub fn listener(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(LISTEN_BACKLOG_CONNECTIONS)?;
    Ok(socket)
}

/// A UDP socket that has its port to itself, now and later.
pub fn datagram_socket(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = unbound(address)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// A UDP socket on a port that earlier clients' flows may still use. Nobody else can take the port from now on.
pub fn reopened_datagram_socket(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = unbound(address)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.set_reuse_address(false)?;
    Ok(socket)
}

/// Another UDP socket on the port of `own`, which shares the port for this moment only. If the port stayed shared, any
/// user of this host could bind to it and take what comes there (`SO_REUSEADDR`, socket(7)).
pub fn datagram_socket_beside(own: impl AsFd, address: SocketAddr) -> std::io::Result<Socket> {
    let (own, socket) = (SockRef::from(&own), unbound(address)?);
    socket.set_reuse_address(true)?;
    own.set_reuse_address(true)?;
    let bound = socket.bind(&address.into());
    own.set_reuse_address(false)?;
    bound.map(|()| socket)
}

fn unbound(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_of_a_deaf_port_has_its_own_advice() {
        let said = |kind: ErrorKind| {
            unheard(([192, 0, 2, 1], 81).into(), "--port")(kind.into()).to_string()
        };
        let taken = said(ErrorKind::AddrInUse);
        assert!(taken.starts_with("can't listen on 192.0.2.1:81: "), "{taken}");
        assert!(taken.contains("another program") && taken.contains("--port"), "{taken}");
        let elsewhere = said(ErrorKind::AddrNotAvailable);
        assert!(elsewhere.contains("--bind") && !elsewhere.contains("--port"), "{elsewhere}");
        let low = said(ErrorKind::PermissionDenied);
        assert!(low.contains("CAP_NET_BIND_SERVICE") && !low.contains("program"), "{low}");
        assert!(!said(ErrorKind::OutOfMemory).contains(';'), "{}", said(ErrorKind::OutOfMemory));
    }

    #[test]
    fn a_port_that_nobody_may_have_is_not_permitted() {
        let error =
            unheard(([0, 0, 0, 0], 81).into(), "--port")(ErrorKind::PermissionDenied.into());
        assert!(error.not_permitted());
    }
}
