//! The sockets a server listens on: made here, or handed over by systemd.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::error::EngineError;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// What a server listens on.
pub struct Sockets {
    /// Control and data connections.
    pub(super) tcp: TcpListener,
    /// Data flows over UDP.
    pub(super) udp: UdpSocket,
}

impl Sockets {
    /// Opens both sockets on the same port of `bind`; of every address, IPv4 and IPv6, where there
    /// is none. Port 0 lets the system choose.
    pub fn open(bind: Option<IpAddr>, port: u16) -> Result<Self, EngineError> {
        let wildcard = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
        let address = bind.map_or(wildcard, |ip| SocketAddr::new(ip, port));
        let named = |address| format!("listen on {address}; another server there? --port chooses");
        let tcp: TcpListener = match listener(address) {
            // A kernel without IPv6 still has IPv4.
            Err(_) if bind.is_none() => listener(SocketAddr::new([0, 0, 0, 0].into(), port)),
            other => other,
        }
        .map_err(EngineError::io(named(address)))?
        .into();
        let local = tcp.local_addr().map_err(EngineError::io("read the listener's address"))?;
        let udp = datagram_socket(local).map_err(EngineError::io(named(local)))?.into();
        Ok(Self { tcp, udp })
    }

    /// The sockets that systemd hands over (sd_listen_fds(3)): a TCP listener, and the UDP socket
    /// of the same port beside it or opened here. `None` where there are none.
    pub fn from_systemd() -> Result<Option<Self>, EngineError> {
        let mut handed = listenfd::ListenFd::from_env();
        let taking = || EngineError::io("take over the sockets of systemd");
        let Some(tcp) = handed.take_tcp_listener(0).map_err(taking())? else {
            return Ok(None);
        };
        let local = tcp.local_addr().map_err(EngineError::io("read the listener's address"))?;
        let udp = match (handed.len() > 1).then(|| handed.take_udp_socket(1)) {
            Some(socket) => socket.map_err(taking())?,
            None => None,
        };
        let udp = match udp {
            Some(udp) => {
                SockRef::from(&udp).set_reuse_address(true).map_err(taking())?;
                udp
            }
            None => datagram_socket(local)
                .map_err(EngineError::io(format!("open the UDP socket of {local}")))?
                .into(),
        };
        Ok(Some(Self { tcp, udp }))
    }

    /// Where clients connect to.
    pub fn address(&self) -> Result<SocketAddr, EngineError> {
        self.tcp.local_addr().map_err(EngineError::io("read the listener's address"))
    }
}

fn listener(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

fn datagram_socket(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A proven flow gets a connected socket of its own on the same port.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
