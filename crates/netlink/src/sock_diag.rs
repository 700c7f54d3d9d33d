//! Other programs' TCP sockets, as the kernel lists them to anyone (`SOCK_DIAG_BY_FAMILY`;
//! include/uapi/linux/sock_diag.h, inet_diag.h; sock_diag(7)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::NetlinkError;
use crate::raw::RawMessage;
use crate::socket::NetlinkSocket;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Attributes of a reply; the request asks for each by the next lower bit.
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// `struct inet_diag_req_v2`.
const QUESTION_BYTES: usize = 56;
/// `struct inet_diag_msg`.
const REPLY_BYTES: usize = 72;
/// States in which a socket has a peer and can hold data: established, FIN_WAIT1, FIN_WAIT2,
/// CLOSE_WAIT, LAST_ACK, CLOSING (include/net/tcp_states.h).
const CONNECTED_STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// One connected TCP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagSocket {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// State, `TCP_*` of include/net/tcp_states.h.
    pub state: u8,
    /// Inode number by which processes hold the socket; 0 if none does any more.
    pub inode: u32,
    /// User who created it.
    pub uid: u32,
    /// Bytes that wait for the reader.
    pub receive_queue_bytes: u32,
    /// Bytes that wait to be sent or acknowledged.
    pub send_queue_bytes: u32,
    /// `struct tcp_info`, as long as this kernel's.
    pub tcp_info: Option<Vec<u8>>,
    /// Words of memory, as in `SO_MEMINFO`.
    pub memory: Option<Vec<u32>>,
    /// Name of its congestion control.
    pub congestion: Option<String>,
}

/// Connected TCP sockets of this network namespace, IPv4 and IPv6; only those with `local_port` and
/// `peer_port` if these are given.
pub fn tcp_sockets(
    local_port: Option<u16>,
    peer_port: Option<u16>,
) -> Result<Vec<DiagSocket>, NetlinkError> {
    let operation = "list the TCP sockets";
    let mut netlink = NetlinkSocket::open(NETLINK_SOCK_DIAG)?;
    let mut sockets = Vec::new();
    for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
        let replies = netlink.dump(operation, question(family, local_port, peer_port))?;
        sockets.extend(replies.iter().filter_map(socket));
    }
    Ok(sockets)
}

/// Family, protocol, extensions, a gap, states, then ports in network order; zeros for addresses, device and
/// cookie match all.
fn question(family: u8, local_port: Option<u16>, peer_port: Option<u16>) -> RawMessage {
    let mut body = vec![0u8; QUESTION_BYTES];
    let extensions = [INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO];
    let extensions = extensions.iter().fold(0, |bits, kind| bits | 1u8 << (kind - 1));
    body[..3].copy_from_slice(&[family, libc::IPPROTO_TCP as u8, extensions]);
    body[4..8].copy_from_slice(&CONNECTED_STATES.to_ne_bytes());
    body[8..10].copy_from_slice(&local_port.unwrap_or(0).to_be_bytes());
    body[10..12].copy_from_slice(&peer_port.unwrap_or(0).to_be_bytes());
    RawMessage { kind: SOCK_DIAG_BY_FAMILY, body }
}

/// Parses one reply; `None` if it is not one of ours.
pub(crate) fn socket(message: &RawMessage) -> Option<DiagSocket> {
    let fixed: &[u8; REPLY_BYTES] = message.body.first_chunk()?;
    if message.kind != SOCK_DIAG_BY_FAMILY {
        return None;
    }
    let family = i32::from(fixed[0]);
    let word =
        |at: usize| u32::from_ne_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let mut socket = DiagSocket {
        local: SocketAddr::new(address(family, &fixed[8..24])?, port(4)),
        peer: SocketAddr::new(address(family, &fixed[24..40])?, port(6)),
        state: fixed[1],
        receive_queue_bytes: word(56),
        send_queue_bytes: word(60),
        uid: word(64),
        inode: word(68),
        tcp_info: None,
        memory: None,
        congestion: None,
    };
    for (kind, value) in message.attributes(REPLY_BYTES) {
        match kind {
            INET_DIAG_INFO => socket.tcp_info = Some(value.to_vec()),
            INET_DIAG_CONG => socket.congestion = Some(crate::ethtool::c_text(value)),
            INET_DIAG_SKMEMINFO => socket.memory = Some(words(value)),
            _ => {}
        }
    }
    Some(socket)
}

/// The address in the first bytes of its field. An IPv6 socket that speaks IPv4 is shown as IPv4.
fn address(family: i32, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        libc::AF_INET => bytes.first_chunk::<4>().map(|b| IpAddr::V4(Ipv4Addr::from(*b))),
        libc::AF_INET6 => {
            bytes.first_chunk::<16>().map(|b| IpAddr::V6(Ipv6Addr::from(*b)).to_canonical())
        }
        _ => None,
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).filter_map(|w| w.first_chunk()).map(|w| u32::from_ne_bytes(*w)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use proptest::prelude::*;

    /// Listens, connects, and finds both ends of the connection.
    fn both_ends(listen: &str) {
        let listener = TcpListener::bind(listen).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        client.write_all(&[7; 1000]).unwrap();
        server.peek(&mut [0]).unwrap();
        let served = tcp_sockets(Some(port), None).unwrap();
        assert_eq!(served.len(), 1, "{served:?}");
        let found = &served[0];
        assert_eq!(
            (found.local, found.peer),
            (server.local_addr().unwrap(), client.local_addr().unwrap())
        );
        assert_eq!((found.state, found.receive_queue_bytes), (1, 1000));
        assert!(found.tcp_info.as_ref().is_some_and(|info| info.len() >= 104));
        assert!(found.memory.as_ref().is_some_and(|words| words.len() >= 9 && words[0] >= 1000));
        assert!(found.congestion.as_ref().is_some_and(|name| !name.is_empty()));
        let clients = tcp_sockets(None, Some(port)).unwrap();
        assert_eq!(clients.len(), 1);
        assert_eq!(clients[0].local, client.local_addr().unwrap());
        assert!(tcp_sockets(Some(port), Some(port)).unwrap().is_empty());
    }

    #[test]
    fn both_ends_of_a_connection_are_found_by_port() {
        both_ends("127.0.0.1:0");
    }

    #[test]
    fn the_same_over_ipv6() {
        if TcpListener::bind("[::1]:0").is_err() {
            return goodput_testing::skip("IPv6 on the loopback device");
        }
        both_ends("[::1]:0");
    }

    #[test]
    fn another_kind_of_reply_or_family_is_passed_over() {
        let mut body = vec![0u8; REPLY_BYTES];
        assert_eq!(socket(&RawMessage { kind: SOCK_DIAG_BY_FAMILY, body: body.clone() }), None);
        body[0] = libc::AF_INET as u8;
        assert!(socket(&RawMessage { kind: SOCK_DIAG_BY_FAMILY, body: body.clone() }).is_some());
        assert_eq!(socket(&RawMessage { kind: 21, body }), None);
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(body in prop::collection::vec(0u8..20, 0..140)) {
            let _ = socket(&RawMessage { kind: SOCK_DIAG_BY_FAMILY, body });
        }
    }
}
