//! The UDP socket of a port, from which a peer's datagrams are moved to a socket of their own.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use goodput_mover::socket::{
    Received, enable_arrival_times, enable_destinations, receive_with_ancillary, send_from,
};
use goodput_mover::{Arrivals, monotonic_ns};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::UdpSocket as AsyncUdpSocket;

use super::sockets::{UDP_RECEIVE_BUFFER_BYTES, datagram_socket_beside};
use crate::serve::address::plain;

/// Longest datagram.
const MAX_DATAGRAM_BYTES: usize = 65_535;

/// Most datagrams that are taken over once the peer's socket is connected. The rest is read from that socket.
const MAX_TAKEN_DATAGRAMS: usize = 1024;

/// Most datagrams that are taken out of the shared socket: more than fit into its buffer, which the kernel doubles
/// (socket(7)) and charges with at least 512 bytes for each.
const MAX_SHARED_DATAGRAMS: usize = 2 * UDP_RECEIVE_BUFFER_BYTES / DATAGRAM_OVERHEAD_BYTES;

/// Charged for each datagram on top of its bytes, here as in the kernel.
const DATAGRAM_OVERHEAD_BYTES: usize = 512;

/// Most bytes of datagrams that wait in this process, overhead included. Datagrams beyond this are dropped, as the
/// kernel drops those beyond its buffer.
const MAX_WAITING_BYTES: usize = 4 << 20;

fn charge(datagram: &[u8]) -> usize {
    datagram.len() + DATAGRAM_OVERHEAD_BYTES
}

/// A datagram and where it came from.
pub type Datagram = (Vec<u8>, SocketAddr);

/// A datagram and what the kernel reported with it.
type Waiting = (Vec<u8>, Received);

/// The shared socket of a port.
pub struct PortSocket {
    socket: AsyncUdpSocket,
    local: SocketAddr,
    /// Other peers' datagrams that were found while a peer got its socket.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// Destination of the datagram that was returned last: if this host has several addresses, peers accept answers
    /// from this one only.
    asked_at: Option<IpAddr>,
    /// When that datagram arrived, by the kernel's wall clock.
    arrived: Option<u64>,
    arrivals: Arrivals,
    buffer: Vec<u8>,
}

/// A peer's own socket, and the peer's earlier datagrams.
pub struct HandedOver {
    /// Connected to the peer, in non-blocking mode.
    pub socket: UdpSocket,
    /// In order of arrival.
    pub early: Vec<Vec<u8>>,
}

impl PortSocket {
    /// Takes over a bound socket. The socket shares its port only while a peer gets its own socket.
    pub fn new(socket: UdpSocket) -> std::io::Result<Self> {
        let local = socket.local_addr()?;
        enable_destinations(&socket)?;
        // Without arrival times, an echo only reports its request as later than it came.
        let _ = enable_arrival_times(&socket);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: AsyncUdpSocket::from_std(socket)?,
            local,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            asked_at: None,
            arrived: None,
            arrivals: Arrivals::default(),
            buffer: vec![0; MAX_DATAGRAM_BYTES],
        })
    }

    /// Its local address.
    #[cfg(test)]
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// The next datagram of a peer without a socket of its own. Cancelling loses nothing.
    pub async fn next(&mut self) -> Datagram {
        loop {
            if let Some((datagram, received)) = self.waiting.pop_front() {
                self.waiting_bytes -= charge(&datagram);
                self.given_out(&received);
                return (datagram, plain(received.from));
            }
            let (socket, buffer) = (&self.socket, &mut self.buffer);
            let receive = || receive_with_ancillary(socket, buffer);
            // An error here belongs to an earlier reply that nobody received; it concerns no one else.
            if let Ok(received) = socket.async_io(Interest::READABLE, receive).await {
                self.given_out(&received);
                return (self.buffer[..received.length].to_vec(), plain(received.from));
            }
        }
    }

    fn given_out(&mut self, received: &Received) {
        (self.asked_at, self.arrived) = (received.to, received.wall_ns);
    }

    /// When the datagram that was returned last came, nanoseconds of this end's monotonic clock; never too early.
    /// `None` if the wall clock was set meanwhile.
    pub fn arrived_ns(&mut self) -> Option<u64> {
        match self.arrived {
            Some(arrived) => self.arrivals.monotonic_ns(arrived),
            None => Some(monotonic_ns()),
        }
    }

    /// Answers `peer`, whose datagram was returned last. Never waits for space in the send buffer: forged addresses of
    /// this network fill the buffer until their neighbours turn out not to exist, and everyone else's datagrams would
    /// wait behind them. Datagrams may be lost anyway.
    pub fn reply(&self, bytes: &[u8], peer: SocketAddr) {
        // A socket for both IP versions accepts IPv4 addresses only in mapped form.
        let peer = spelled_for(self.local, peer);
        let _ = match self.asked_at {
            Some(local) => send_from(&self.socket, bytes, peer, local),
            None => SockRef::from(&self.socket).send_to(bytes, &peer.into()),
        };
    }

    /// Gives `peer`, whose datagram was returned last, a socket of its own on this port and at the address that it
    /// asked, with everything that it has sent here, in order.
    ///
    /// Until the new socket is connected, other peers' datagrams reach it too. They are taken out of it again, just as
    /// the peer's are taken out of the shared socket.
    pub fn hand_over(&mut self, peer: SocketAddr) -> std::io::Result<HandedOver> {
        let socket = self.own_socket(peer)?;
        let mut early = self.take_waiting(peer);
        let shared = self.socket.as_fd().try_clone_to_owned()?;
        self.drain(&UdpSocket::from(shared), Some(peer), MAX_SHARED_DATAGRAMS, &mut early);
        self.drain(&socket, Some(peer), MAX_TAKEN_DATAGRAMS, &mut early);
        Ok(HandedOver { socket, early })
    }

    /// Gives `peer`, whose datagram was returned last, a socket of its own for what it sends from now on. Earlier
    /// datagrams are still returned here: their order does not matter, and nobody waits while the shared socket is
    /// searched for them.
    pub fn split_off(&mut self, peer: SocketAddr) -> std::io::Result<UdpSocket> {
        let socket = self.own_socket(peer)?;
        self.drain(&socket, None, MAX_TAKEN_DATAGRAMS, &mut Vec::new());
        Ok(socket)
    }

    /// A socket that receives only from `peer` from now on.
    fn own_socket(&self, peer: SocketAddr) -> std::io::Result<UdpSocket> {
        let own = self.own_address(peer);
        let socket: UdpSocket = datagram_socket_beside(&self.socket, own)?.into();
        socket.set_nonblocking(true)?;
        enable_destinations(&socket)?;
        SockRef::from(&socket).connect(&spelled_for(self.local, peer).into())?;
        Ok(socket)
    }

    /// Where the peer's own socket is bound: the address that `peer` asked, with the peer's scope if the address is
    /// link-local.
    fn own_address(&self, peer: SocketAddr) -> SocketAddr {
        let Some(asked) = self.asked_at else { return self.local };
        match spelled_for(self.local, SocketAddr::new(asked, self.local.port())) {
            SocketAddr::V6(mut own) if own.ip().is_unicast_link_local() => {
                own.set_scope_id(match peer {
                    SocketAddr::V6(peer) => peer.scope_id(),
                    SocketAddr::V4(_) => 0,
                });
                own.into()
            }
            own => own,
        }
    }

    fn take_waiting(&mut self, peer: SocketAddr) -> Vec<Vec<u8>> {
        let waiting = std::mem::take(&mut self.waiting);
        let (its, others): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(_, received)| plain(received.from) == peer);
        self.waiting = others.into();
        self.waiting_bytes -= its.iter().map(|(datagram, ..)| charge(datagram)).sum::<usize>();
        its.into_iter().map(|(datagram, ..)| datagram).collect()
    }

    /// Takes at most this many datagrams out of a socket: those of `peer` into `early`, the others to wait.
    fn drain(
        &mut self,
        socket: &UdpSocket,
        peer: Option<SocketAddr>,
        most: usize,
        early: &mut Vec<Vec<u8>>,
    ) {
        for _ in 0..most {
            match receive_with_ancillary(socket, &mut self.buffer) {
                Ok(received) => {
                    let datagram = self.buffer[..received.length].to_vec();
                    if Some(plain(received.from)) == peer {
                        early.push(datagram);
                    } else if self.waiting_bytes + charge(&datagram) <= MAX_WAITING_BYTES {
                        self.waiting_bytes += charge(&datagram);
                        self.waiting.push_back((datagram, received));
                    }
                }
                Err(cause) if cause.kind() == std::io::ErrorKind::WouldBlock => return,
                // An earlier reply that nobody received.
                Err(_) => {}
            }
        }
    }
}

/// An address in the form that a socket bound to `local` needs: a socket for both IP versions takes IPv4
/// addresses as mapped ones (RFC 4291 section 2.5.5.2).
fn spelled_for(local: SocketAddr, peer: SocketAddr) -> SocketAddr {
    match (local, peer.ip()) {
        (SocketAddr::V6(_), IpAddr::V4(ip)) => {
            SocketAddr::new(ip.to_ipv6_mapped().into(), peer.port())
        }
        _ => peer,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sockets::datagram_socket;
    use super::*;

    /// Another program on the same port, perhaps of another user.
    fn intruder(address: SocketAddr) -> std::io::Result<()> {
        use socket2::{Domain, Socket, Type};
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())
    }

    #[tokio::test]
    async fn nobody_else_gets_the_port_before_or_after_a_peer_has_its_own_socket() {
        for bind in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let Ok(socket) = datagram_socket(bind.parse().unwrap()) else { continue };
            let mut port_socket = PortSocket::new(socket.into()).unwrap();
            let refused = |address: &str| {
                let address = format!("{address}:{}", port_socket.local.port()).parse().unwrap();
                let cause = intruder(address).unwrap_err().kind();
                assert_eq!(cause, std::io::ErrorKind::AddrInUse, "{address} beside {bind}");
            };
            refused("127.0.0.1");
            refused("0.0.0.0");
            let client = client(&port_socket);
            client.send(b"hello").unwrap();
            let (_, peer) = port_socket.next().await;
            let _handed = port_socket.hand_over(peer).unwrap();
            let refused = |address: &str| {
                let address = format!("{address}:{}", port_socket.local.port()).parse().unwrap();
                assert!(intruder(address).is_err(), "{address} beside {bind} and a flow");
            };
            refused("127.0.0.1");
            refused("0.0.0.0");
        }
    }

    fn client(port_socket: &PortSocket) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port_socket.local.port())).unwrap();
        socket
    }

    #[tokio::test]
    async fn nothing_is_lost_reordered_or_given_to_another() {
        for bind in ["127.0.0.1:0", "[::]:0"] {
            // A kernel without IPv6 has only the first.
            let Ok(socket) = datagram_socket(bind.parse().unwrap()) else { continue };
            let usual = socket.recv_buffer_size().unwrap();
            let mut port_socket = PortSocket::new(socket.into()).unwrap();
            let (one, other) = (client(&port_socket), client(&port_socket));
            for number in 0..4_u8 {
                one.send(&[1, number]).unwrap();
                other.send(&[2, number]).unwrap();
            }
            let (first, peer) = port_socket.next().await;
            assert_eq!((first, peer), (vec![1, 0], one.local_addr().unwrap()));
            let handed = port_socket.hand_over(peer).unwrap();
            assert_eq!(handed.early, [[1, 1], [1, 2], [1, 3]]);
            assert_eq!(SockRef::from(&handed.socket).recv_buffer_size().unwrap(), usual);
            one.send(&[1, 4]).unwrap();
            other.send(&[2, 4]).unwrap();
            let mut buffer = [0; 8];
            assert_eq!(handed.socket.recv(&mut buffer).unwrap(), 2);
            assert_eq!(buffer[..2], [1, 4]);
            let (first, peer) = port_socket.next().await;
            assert_eq!((first, peer), (vec![2, 0], other.local_addr().unwrap()));
            let handed = port_socket.hand_over(peer).unwrap();
            assert_eq!(handed.early, [[2, 1], [2, 2], [2, 3], [2, 4]]);
        }
    }
}
