//! What has come to a socket that nobody reads yet.

use std::io;
use std::os::fd::BorrowedFd;

use goodput_framing::{Datagrams, Read};
use rustix::net::{RecvFlags, recv};

use crate::socket::set_option;

/// Most datagrams that are looked at. The kernel walks over all earlier ones for each; this many take 3 ms, and the usual
/// receive buffer (`net.core.rmem_default`) holds 277 of the smallest.
const MOST_DATAGRAMS: usize = 1024;

/// Longer than any datagram: one that is cut would be looked at twice.
const ROOM_BYTES: usize = 1 << 16;

/// Payload bytes of the datagrams that wait in `socket`. They stay there. Before anyone reads from it.
pub(crate) fn waiting_payload(
    socket: BorrowedFd<'_>,
    datagrams: &mut dyn Datagrams,
) -> io::Result<u64> {
    look_from(socket, 0)?;
    let mut room = vec![0; ROOM_BYTES];
    let mut payload = 0;
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    for _ in 0..MOST_DATAGRAMS {
        let Ok((len, _)) = recv(socket, &mut room[..], flags) else { break };
        payload += payload_bytes(&room[..len], datagrams);
    }
    look_from(socket, -1)?;
    Ok(payload)
}

/// Payload bytes of one datagram.
pub(crate) fn payload_bytes(datagram: &[u8], datagrams: &mut dyn Datagrams) -> u64 {
    match datagrams.read(datagram) {
        Read::Payload { .. } | Read::End { is_payload: true, .. } => datagram.len() as u64,
        Read::Begin | Read::Over | Read::End { .. } | Read::Foreign => 0,
    }
}

/// Lets each look begin behind the one before, first this many bytes behind the first datagram; -1: each at the first
/// datagram again (`SO_PEEK_OFF`, socket(7)).
fn look_from(socket: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_PEEK_OFF, &bytes.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use goodput_framing::Sent;

    use super::*;

    #[test]
    fn payload_that_waits_is_counted_and_stays() {
        let (near, far) = (UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0"));
        let (near, far) = (near.unwrap(), far.unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        let mut own = goodput_framing::goodput().datagrams(1, 100);
        assert_eq!(waiting_payload(far.as_fd(), own.as_mut()).unwrap(), 0);
        for number in 0..3 {
            let mut datagram = [0; 100];
            own.write(&mut datagram, Sent { number, bytes: 0, at_ns: 0 });
            near.send(&datagram).unwrap();
        }
        near.send(&[0; 50]).unwrap();
        let mut look = || waiting_payload(far.as_fd(), own.as_mut()).unwrap();
        goodput_testing::wait_for("the datagrams", || look() == 300);
        assert_eq!(look(), 300, "not the foreign");
        let mut room = [0; 200];
        let lengths: Vec<_> = (0..4).map(|_| far.recv(&mut room).unwrap()).collect();
        assert_eq!(lengths, [100, 100, 100, 50]);
    }
}
