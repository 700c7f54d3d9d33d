//! Where the frames of a flow go: the device, and the hardware addresses at both ends of the link.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use goodput_netlink::{Link, Neighbour, NeighbourState, Netlink, Route, parameters};
use rustix::net::sockopt;
use socket2::SockRef;

use super::headers::{Addressing, Mac};
use super::refusal::{self, Refusal};
use crate::clock::now_ns;
use crate::error::Unsupported;
use crate::flow::Flow;

/// The port that drops what it gets (RFC 863).
const DISCARD_PORT: u16 = 9;

/// How long to wait for a next hop's hardware address, nanoseconds: three questions, one second apart
/// (`mcast_solicit`, `retrans_time`; arp(7)), and some more.
const RESOLVE_NS: u64 = 4_000_000_000;
/// How often to look for the answer, nanoseconds.
const LOOK_NS: u64 = 5_000_000;

/// `RTN_UNICAST` and `RTN_LOCAL` (include/uapi/linux/rtnetlink.h).
const UNICAST: u8 = 1;
const LOCAL: u8 = 2;

/// The path of a flow's frames.
#[derive(Debug)]
pub(super) struct Path {
    /// Number of the device.
    pub(super) index: u32,
    /// Name of the device.
    pub(super) device: String,
    /// Queues on which the device sends, at least 1.
    pub(super) queues: u32,
    pub(super) addressing: Addressing,
}

/// The two ends of a connected socket.
#[derive(Debug, Clone, Copy)]
struct Ends {
    from: SocketAddr,
    to: SocketAddr,
    /// Number of the device to which the socket is bound, or of a link-local peer; 0: none.
    device: u32,
}

/// The path of datagrams of `size` bytes; `None` if the stop came first.
pub(super) fn find(flow: &Flow, size: usize) -> Result<Option<Path>, Refusal> {
    let mut netlink = Netlink::open().map_err(|cause| refusal::unknown_path(&cause))?;
    let ends = Ends::of(&flow.socket, &mut netlink)?;
    let route = netlink
        .route_from(ends.from.ip(), ends.to.ip(), ends.device)
        .map_err(|cause| refusal::unknown_path(&cause))?;
    let index = device_of(&route, ends.to.ip())?;
    let link = netlink.link_by_index(index).map_err(|cause| refusal::unknown_path(&cause))?;
    let from_mac = check_link(&link, ends.to.ip())?;
    check_size(size, ends.to, path_mtu(&flow.socket, ends.to).unwrap_or(link.mtu))?;
    let next_hop = route.gateway.unwrap_or(ends.to.ip());
    let Some(to_mac) = resolve(flow, &mut netlink, &link, next_hop, ends)? else {
        return Ok(None);
    };
    let (hops, class) = marks(&flow.socket, ends.to);
    let addressing = Addressing { from_mac, to_mac, from: ends.from, to: ends.to, hops, class };
    let queues = queues_of(&link.name);
    Ok(Some(Path { index, device: link.name, queues, addressing }))
}

impl Ends {
    fn of(socket: &OwnedFd, netlink: &mut Netlink) -> Result<Self, Unsupported> {
        let socket = SockRef::from(socket);
        let own = socket.local_addr().map_err(refusal::unknown_ends)?.as_socket();
        let peer = socket.peer_addr().map_err(refusal::unknown_ends)?.as_socket();
        let (Some(from), Some(to)) = (own, peer) else {
            return Err(refusal::unknown_ends("not of IP"));
        };
        let name = socket.device().ok().flatten();
        let name = name.and_then(|name| String::from_utf8(name).ok());
        let bound = name.and_then(|name| netlink.link(&name).ok()).map(|link| link.index);
        let scope = if let SocketAddr::V6(to) = to { to.scope_id() } else { 0 };
        let (from, to) = (canonical(from), canonical(to));
        Ok(Self { from, to, device: bound.unwrap_or(scope) })
    }
}

/// A socket of IPv6 may carry IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => {
            SocketAddr::new(address.ip().to_canonical(), address.port())
        }
        other => other,
    }
}

/// The device of a route to one other host.
fn device_of(route: &Route, peer: IpAddr) -> Result<u32, Unsupported> {
    match route.kind {
        UNICAST => route.device.ok_or_else(|| refusal::no_device(peer)),
        LOCAL => Err(refusal::own_host(peer)),
        _ => Err(refusal::not_unicast(peer)),
    }
}

/// The hardware address of an Ethernet device.
fn check_link(link: &Link, peer: IpAddr) -> Result<Mac, Unsupported> {
    if link.loopback {
        return Err(refusal::own_host(peer));
    }
    Mac::try_from(&link.address[..])
        .ok()
        .filter(|_| link.ethernet)
        .ok_or_else(|| refusal::not_ethernet(peer, &link.name))
}

fn check_size(size: usize, to: SocketAddr, mtu: u32) -> Result<(), Unsupported> {
    let (overhead, mtu) = (Addressing::overhead(to), mtu as usize);
    if size + overhead <= mtu { Ok(()) } else { Err(refusal::too_long(size, overhead, mtu)) }
}

/// What the kernel knows of the path, bytes: never more than the MTU of the device.
fn path_mtu(socket: &OwnedFd, to: SocketAddr) -> Option<u32> {
    let mtu = if to.is_ipv4() { sockopt::ip_mtu(socket) } else { sockopt::ipv6_mtu(socket) };
    mtu.ok().filter(|mtu| *mtu > 0)
}

/// Hop limit and traffic class of the flow's socket, so that frames look like the datagrams that it would send.
fn marks(socket: &OwnedFd, to: SocketAddr) -> (u8, u8) {
    // The recommended default (RFC 1700), which is Linux's.
    const HOPS: u8 = 64;
    let byte = |value: u32| u8::try_from(value).ok();
    if to.is_ipv4() {
        let hops = sockopt::ip_ttl(socket).ok().and_then(byte);
        (hops.unwrap_or(HOPS), sockopt::ip_tos(socket).unwrap_or(0))
    } else {
        let class = sockopt::ipv6_tclass(socket).ok().and_then(byte);
        (sockopt::ipv6_unicast_hops(socket).unwrap_or(HOPS), class.unwrap_or(0))
    }
}

/// Queues on which a device sends. A driver that does not report channels has one queue, or more that are not known.
fn queues_of(device: &str) -> u32 {
    let channels = parameters::channels(device).unwrap_or_default();
    (channels.combined + channels.tx).max(1)
}

/// The hardware address of the next hop; `None` if the stop came first. If the kernel does not know it, it is made to
/// ask.
fn resolve(
    flow: &Flow,
    netlink: &mut Netlink,
    link: &Link,
    next_hop: IpAddr,
    ends: Ends,
) -> Result<Option<Mac>, Refusal> {
    let (until, mut asked) = (now_ns() + RESOLVE_NS, false);
    while flow.may_send() {
        let state = match netlink.neighbour(link.index, next_hop) {
            Ok(found) => match usable(&found) {
                Some(mac) => return Ok(Some(mac)),
                None => found.state,
            },
            Err(cause) if cause.not_found() => NeighbourState::None,
            Err(cause) => return Err(refusal::unknown_path(&cause).into()),
        };
        if asked && (state == NeighbourState::Failed || now_ns() >= until) {
            return Err(refusal::no_neighbour(next_hop, &link.name, state.name()).into());
        }
        if !asked {
            ask(ends, &link.name);
            asked = true;
        }
        flow.park(None, Some(now_ns() + LOOK_NS))?;
    }
    Ok(None)
}

/// The address of a neighbour that the kernel would send to.
fn usable(neighbour: &Neighbour) -> Option<Mac> {
    use NeighbourState::{Failed, Incomplete, None as Nothing};
    let known = !matches!(neighbour.state, Failed | Incomplete | Nothing);
    Mac::try_from(&neighbour.hardware_address[..]).ok().filter(|_| known)
}

/// Makes the kernel ask for the next hop's hardware address, by an empty datagram to a port of the peer that drops it.
/// If that fails, so will the wait for the answer, in words.
fn ask(ends: Ends, device: &str) {
    let own = match ends.from {
        SocketAddr::V4(from) => SocketAddr::from((*from.ip(), 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let Ok(socket) = UdpSocket::bind(own) else { return };
    if ends.device > 0 {
        let _ = SockRef::from(&socket).bind_device(Some(device.as_bytes()));
    }
    let mut to = ends.to;
    to.set_port(DISCARD_PORT);
    let _ = socket.send_to(&[], to);
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_netlink::routes::Family;

    fn peer() -> IpAddr {
        "192.0.2.2".parse().unwrap()
    }

    #[test]
    fn only_a_route_to_one_other_host_is_taken() {
        let route = |kind| {
            let mut route = Route::new(Family::V4, None);
            (route.kind, route.device) = (kind, Some(7));
            route
        };
        assert_eq!(device_of(&route(UNICAST), peer()), Ok(7));
        let why = |kind| device_of(&route(kind), peer()).unwrap_err().to_string();
        assert!(why(LOCAL).contains("this host itself"));
        assert!(why(5).contains("does not lead to one host"));
    }

    #[test]
    fn a_device_without_an_ethernet_header_is_refused() {
        let ethernet = Link {
            name: "eth0".into(),
            address: vec![2, 0, 0, 0, 0, 1],
            ethernet: true,
            ..Link::default()
        };
        assert_eq!(check_link(&ethernet, peer()), Ok([2, 0, 0, 0, 0, 1]));
        let tunnel = Link { name: "tun0".into(), ..Link::default() };
        let gre = Link { ethernet: false, ..ethernet };
        for link in [tunnel, gre] {
            let why = check_link(&link, peer()).unwrap_err().to_string();
            assert!(why.contains(&link.name) && why.contains("tunnel"), "{why}");
        }
    }

    #[test]
    fn the_longest_datagram_fits_exactly() {
        for (to, most) in [("192.0.2.2:9", 1472), ("[2001:db8::2]:9", 1452)] {
            let to = to.parse().unwrap();
            assert_eq!(check_size(most, to, 1500), Ok(()));
            let why = check_size(most + 1, to, 1500).unwrap_err().to_string();
            assert!(why.ends_with(&format!("at most {most}")), "{why}");
        }
    }

    #[test]
    fn only_a_neighbour_that_is_known_is_sent_to() {
        let with = |state| {
            usable(&Neighbour { state, hardware_address: vec![1, 2, 3, 4, 5, 6] }).is_some()
        };
        assert!(with(NeighbourState::Reachable) && with(NeighbourState::Stale));
        assert!(!with(NeighbourState::Failed) && !with(NeighbourState::Incomplete));
        let nothing = Neighbour { state: NeighbourState::Reachable, hardware_address: Vec::new() };
        assert_eq!(usable(&nothing), None);
    }

    #[test]
    fn ipv4_within_a_socket_of_ipv6_is_ipv4() {
        let mapped = "[::ffff:192.0.2.2]:5".parse().unwrap();
        assert_eq!(canonical(mapped), "192.0.2.2:5".parse().unwrap());
        let own: SocketAddr = "[2001:db8::1]:5".parse().unwrap();
        assert_eq!(canonical(own), own);
    }
}
