//! Datagrams with their ancillary data (cmsg(3)). One item is the destination address, because a host may
//! have many, and a client ignores an answer from another address (ip(7) `IP_PKTINFO`; ipv6(7), RFC 3542
//! section 6). The other is the time at which the kernel received them (socket(7) `SO_TIMESTAMPNS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg,
};
use nix::sys::time::TimeSpec;
use socket2::{Domain, SockRef};

/// Where a datagram came from and went to, and its length in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes.
    pub length: usize,
    /// The sender.
    pub from: SocketAddr,
    /// The address to which it was sent, if the kernel reports it; IPv4 not mapped.
    pub to: Option<IpAddr>,
    /// When the kernel received it, nanoseconds since 1970 by `CLOCK_REALTIME`; only after [`enable_arrival_times`].
    pub wall_ns: Option<u64>,
}

/// Makes the kernel report when each datagram arrived (`SO_TIMESTAMPNS`).
pub fn enable_arrival_times(socket: impl AsFd) -> io::Result<()> {
    crate::udp::stamp_arrivals(socket.as_fd())
}

/// Makes the kernel report the destination address of each datagram.
pub fn enable_destinations(socket: impl AsFd) -> io::Result<()> {
    let (level, name) = match SockRef::from(&socket).domain()? {
        // For IPv4 on a socket that takes both, it reports mapped addresses in the same form.
        Domain::IPV6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        _ => (libc::IPPROTO_IP, libc::IP_PKTINFO),
    };
    super::set_option(socket.as_fd(), level, name, &1_i32.to_ne_bytes())
}

/// Receives a datagram and its destination address.
pub fn receive_with_ancillary(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Received> {
    let mut control = nix::cmsg_space!(libc::in6_pktinfo, libc::timespec);
    let mut parts = [IoSliceMut::new(buffer)];
    let (descriptor, flags) = (socket.as_fd().as_raw_fd(), MsgFlags::empty());
    let message = recvmsg::<SockaddrStorage>(descriptor, &mut parts, Some(&mut control), flags)?;
    let from = message.address.as_ref().and_then(address);
    let from = from.ok_or_else(|| io::Error::other("it came from no IP address"))?;
    let mut received = Received { length: message.bytes, from, to: None, wall_ns: None };
    // A message that did not fit into its room would be incomplete, and is ignored.
    message.cmsgs().into_iter().flatten().for_each(|control| received.note(&control));
    Ok(received)
}

impl Received {
    fn note(&mut self, control: &ControlMessageOwned) {
        match control {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                self.to = Some(IpAddr::from(info.ipi_addr.s_addr.to_ne_bytes()));
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                self.to = Some(IpAddr::from(info.ipi6_addr.s6_addr).to_canonical());
            }
            ControlMessageOwned::ScmTimestampns(time) => self.wall_ns = nanoseconds(*time),
            _ => {}
        }
    }
}

/// Nanoseconds since 1970; no time before that.
fn nanoseconds(time: TimeSpec) -> Option<u64> {
    let whole = u64::try_from(time.tv_sec()).ok()?.checked_mul(1_000_000_000)?;
    whole.checked_add(u64::try_from(time.tv_nsec()).ok()?)
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::from(*v4));
    v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddr::from(*v6)))
}

/// Sends a datagram to `peer` from the address `local` of this host.
pub fn send_from(
    socket: impl AsFd,
    bytes: &[u8],
    peer: SocketAddr,
    local: IpAddr,
) -> io::Result<usize> {
    let (socket, parts) = (socket.as_fd().as_raw_fd(), [IoSlice::new(bytes)]);
    let send = |source| {
        let peer = SockaddrStorage::from(peer);
        Ok(sendmsg(socket, &parts, &[source], MsgFlags::empty(), Some(&peer))?)
    };
    match local {
        // A socket for both IP versions accepts it too.
        IpAddr::V4(ip) => send(ControlMessage::Ipv4PacketInfo(&libc::in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
            ipi_addr: libc::in_addr { s_addr: 0 },
        })),
        IpAddr::V6(ip) => send(ControlMessage::Ipv6PacketInfo(&libc::in6_pktinfo {
            ipi6_addr: libc::in6_addr { s6_addr: ip.octets() },
            ipi6_ifindex: 0,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_datagram_carries_where_it_was_sent_and_is_answered_from_there() {
        for (bind, asked) in
            [("0.0.0.0:0", "127.0.0.9"), ("[::]:0", "127.0.0.9"), ("[::]:0", "::1")]
        {
            let Ok(server) = UdpSocket::bind(bind) else { continue };
            enable_destinations(&server).unwrap();
            enable_arrival_times(&server).unwrap();
            let asked: IpAddr = asked.parse().unwrap();
            let client = UdpSocket::bind((if asked.is_ipv4() { "127.0.0.1" } else { "::1" }, 0));
            let Ok(client) = client else { continue };
            client.connect((asked, server.local_addr().unwrap().port())).unwrap();
            client.send(b"hello").unwrap();
            let mut buffer = [0; 16];
            let received = receive_with_ancillary(&server, &mut buffer).unwrap();
            assert_eq!((received.length, received.to), (5, Some(asked)), "{bind}");
            assert!(received.wall_ns.is_some(), "{bind}");
            assert_eq!(received.from.ip().to_canonical(), client.local_addr().unwrap().ip());
            send_from(&server, b"answer", received.from, asked).unwrap();
            assert_eq!(client.recv(&mut buffer).unwrap(), 6, "{bind}");
        }
    }

    #[test]
    fn only_times_since_1970_are_times() {
        assert_eq!(nanoseconds(TimeSpec::new(5, 7)), Some(5_000_000_007));
        assert_eq!(nanoseconds(TimeSpec::new(-1, 0)), None);
        assert_eq!(nanoseconds(TimeSpec::new(i64::MAX, 0)), None);
    }

    /// No control messages are requested, and none come.
    #[test]
    fn what_the_kernel_was_not_asked_to_report_is_unknown() {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        near.send_to(b"hello", far.local_addr().unwrap()).unwrap();
        let received = receive_with_ancillary(&far, &mut [0; 3]).unwrap();
        let from = near.local_addr().unwrap();
        assert_eq!(received, Received { length: 3, from, to: None, wall_ns: None });
    }
}
