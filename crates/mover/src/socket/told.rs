//! Datagrams with the address that they were sent to: a host may have many, and an answer from another
//! one than was asked is nobody's (ip(7) `IP_PKTINFO`; ipv6(7), RFC 3542 section 6). And with the time
//! at which the kernel had them (socket(7) `SO_TIMESTAMPNS`).

use std::io::{self, IoSlice};
use std::mem::{self, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use socket2::{Domain, MsgHdr, SockAddr, SockRef};

/// Room for a destination of either kind and a time: 40 and 32 bytes (`CMSG_SPACE`, cmsg(3)), and a little more.
const CONTROL: usize = 96;

/// A control message's header: its length, level and type (`struct cmsghdr`, cmsg(3)). The next message
/// begins at a multiple of a word.
const HEADER: usize = size_of::<usize>() + 2 * size_of::<i32>();

/// Where a datagram came from and went to, and its length in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Bytes.
    pub length: usize,
    /// The sender.
    pub from: SocketAddr,
    /// The address that it was sent to, as far as the kernel tells; IPv4 plain.
    pub to: Option<IpAddr>,
    /// When the kernel had it, nanoseconds since 1970 by `CLOCK_REALTIME`; only after [`tell_arrival`].
    pub wall_ns: Option<u64>,
}

/// Has the kernel tell of each datagram when it came (`SO_TIMESTAMPNS`).
pub fn tell_arrival(socket: impl AsFd) -> io::Result<()> {
    crate::udp::stamp_arrivals(socket.as_fd())
}

/// Has the kernel tell of each datagram where it was sent to.
pub fn tell_destination(socket: impl AsFd) -> io::Result<()> {
    let (level, name) = match SockRef::from(&socket).domain()? {
        // Of IPv4 on a socket that takes both, it tells mapped addresses in the same words.
        Domain::IPV6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        _ => (libc::IPPROTO_IP, libc::IP_PKTINFO),
    };
    super::set_option(socket.as_fd(), level, name, &1_i32.to_ne_bytes())
}

/// Receives a datagram, and where it was sent to.
#[expect(unsafe_code, reason = "no library gives both the datagram and these control messages")]
pub fn receive_told(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Told> {
    let mut control = [0_usize; CONTROL / size_of::<usize>()];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let receive = |storage: *mut _, room: *mut libc::socklen_t| {
        // SAFETY: plain data for which all zeros are valid.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_name = storage as *mut libc::c_void;
        // SAFETY: `try_init` gives the length of the storage beside it.
        header.msg_namelen = unsafe { *room };
        (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = CONTROL as _;
        // SAFETY: all that the header points to lives and is writable for the lengths beside it.
        let length = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, 0) };
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above; the kernel has written so many bytes of the storage.
        unsafe { *room = header.msg_namelen };
        Ok((length as usize, header.msg_controllen as usize))
    };
    // SAFETY: on success the storage holds an address of the length that was written.
    let ((length, told), from) = unsafe { SockAddr::try_init(receive) }?;
    let from = from.as_socket().ok_or_else(|| io::Error::other("it came from no IP address"))?;
    let bytes: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).take(told).collect();
    let to = messages(&bytes).find_map(destination).map(|ip| ip.to_canonical());
    Ok(Told { length, from, to, wall_ns: messages(&bytes).find_map(arrival) })
}

/// Sends a datagram to `peer` from the address `local` of this host.
pub fn send_from(
    socket: impl AsFd,
    bytes: &[u8],
    peer: SocketAddr,
    local: IpAddr,
) -> io::Result<usize> {
    let (peer, parts, control) = (SockAddr::from(peer), [IoSlice::new(bytes)], source(local));
    let message = MsgHdr::new().with_addr(&peer).with_buffers(&parts).with_control(&control);
    SockRef::from(&socket).sendmsg(&message, 0)
}

/// A control message: its level, its type and its content.
type Message<'a> = (i32, i32, &'a [u8]);

fn messages(mut control: &[u8]) -> impl Iterator<Item = Message<'_>> {
    const WORD: usize = size_of::<usize>();
    std::iter::from_fn(move || {
        let length = usize::from_ne_bytes(*control.first_chunk()?);
        let number = |at: usize| Some(i32::from_ne_bytes(*control.get(at..)?.first_chunk()?));
        let message = (number(WORD)?, number(WORD + 4)?, control.get(HEADER..length)?);
        control = control.get(length.next_multiple_of(WORD)..).unwrap_or_default();
        Some(message)
    })
}

/// The destination in a control message: `struct in6_pktinfo` begins with it (linux/ipv6.h), `struct
/// in_pktinfo` has it after the number of the device and the address that answers come from (linux/in.h).
fn destination((level, kind, body): Message) -> Option<IpAddr> {
    match (level, kind) {
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            Some(Ipv6Addr::from(*body.first_chunk::<16>()?).into())
        }
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            Some(Ipv4Addr::from(*body.get(8..)?.first_chunk::<4>()?).into())
        }
        _ => None,
    }
}

/// The time in a control message.
fn arrival((level, kind, body): Message) -> Option<u64> {
    let is_time = (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
    is_time.then(|| crate::udp::time(body)).flatten()
}

/// The control message that says which address a datagram leaves from; IPv4's is taken by a socket of
/// both IP versions too.
fn source(local: IpAddr) -> Vec<u8> {
    let (level, kind, body) = match local {
        IpAddr::V6(ip) => {
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, [&ip.octets()[..], &[0; 4]].concat())
        }
        IpAddr::V4(ip) => {
            (libc::IPPROTO_IP, libc::IP_PKTINFO, [&[0; 4], &ip.octets()[..], &[0; 4]].concat())
        }
    };
    let length = HEADER + body.len();
    let mut message = Vec::with_capacity(CONTROL);
    message.extend(length.to_ne_bytes());
    message.extend(level.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(body);
    message.resize(length.next_multiple_of(size_of::<usize>()), 0);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::UdpSocket;

    #[test]
    fn a_datagram_tells_where_it_was_sent_and_is_answered_from_there() {
        for (bind, asked) in
            [("0.0.0.0:0", "127.0.0.9"), ("[::]:0", "127.0.0.9"), ("[::]:0", "::1")]
        {
            let Ok(server) = UdpSocket::bind(bind) else { continue };
            tell_destination(&server).unwrap();
            tell_arrival(&server).unwrap();
            let asked: IpAddr = asked.parse().unwrap();
            let client = UdpSocket::bind((if asked.is_ipv4() { "127.0.0.1" } else { "::1" }, 0));
            let Ok(client) = client else { continue };
            client.connect((asked, server.local_addr().unwrap().port())).unwrap();
            client.send(b"hello").unwrap();
            let mut buffer = [0; 16];
            let told = receive_told(&server, &mut buffer).unwrap();
            assert_eq!((told.length, told.to), (5, Some(asked)), "{bind}");
            assert!(told.wall_ns.is_some(), "{bind}");
            assert_eq!(told.from.ip().to_canonical(), client.local_addr().unwrap().ip());
            send_from(&server, b"answer", told.from, asked).unwrap();
            assert_eq!(client.recv(&mut buffer).unwrap(), 6, "{bind}");
        }
    }

    #[test]
    fn what_is_sent_reads_like_what_is_received() {
        let v6: IpAddr = "2001:db8::7".parse().unwrap();
        assert_eq!(messages(&source(v6)).find_map(destination), Some(v6));
        assert_eq!(messages(&[]).next(), None);
    }

    proptest! {
        #[test]
        fn no_control_messages_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = messages(&bytes).find_map(destination);
            let _ = messages(&bytes).find_map(arrival);
        }
    }
}
