//! The capture helper: a process that keeps CAP_NET_RAW, which a server gives up, and uses it for one thing only: it opens
//! rings for that server.
//!
//! The server gets the ring's socket, whose filter it can't replace: it sees at most [`SNAP_BYTES`](crate::SNAP_BYTES)
//! of each packet of one other host at one device. The helper doesn't trust the server and reads each request strictly.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recv, recvmsg, send,
    sendmsg, shutdown, socketpair,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use socket2::Socket;

use crate::error::CaptureError;
use crate::filter;
use crate::flows::OpenedCapture;
use crate::ring::{Blocks, open};

/// How long the helper may take, on a machine under full load.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a device's name with the zero at its end (`IFNAMSIZ`, linux/if.h).
const DEVICE_BYTES: usize = 16;
/// A request: a device's name, filled up with zeros, and the address of the other host as one of IPv6.
const REQUEST_BYTES: usize = DEVICE_BYTES + 16;
/// Longest answer: its kind, and a reason.
const LONGEST_ANSWER_BYTES: usize = 1 + 512;

// Kinds of answers.
const READY: u8 = 0;
const OPENED: u8 = 1;
const NOT_PERMITTED: u8 = 2;
const REFUSED: u8 = 3;

/// A running helper. Dropping it closes the connection, and the helper ends.
#[derive(Debug)]
pub struct CaptureHelper {
    /// One request at a time.
    socket: Mutex<OwnedFd>,
    child: Child,
}

impl CaptureHelper {
    /// Starts a program that is to call [`helper_main`], and waits until it is ready. It keeps the privileges that this
    /// process has now.
    ///
    /// # Errors
    /// If it can't be started, or does not report that it is ready.
    pub fn start(mut program: Command) -> Result<Self, CaptureError> {
        let failed = |cause: io::Error| CaptureError::Helper(format!("can't start it: {cause}"));
        let pair =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, its) = pair.map_err(|cause| failed(cause.into()))?;
        set_socket_timeout(&ours, Timeout::Recv, Some(ANSWER_TIMEOUT))
            .map_err(|cause| failed(cause.into()))?;
        program.stdin(Stdio::from(its)).stdout(Stdio::null()).stderr(Stdio::inherit());
        // Signals from the terminal are for the server.
        program.current_dir("/").process_group(0);
        let mut child = program.spawn().map_err(failed)?;
        // Also drops this process's copy of the helper's end, so that the helper's death ends the connection.
        drop(program);
        let mut answer = [0; LONGEST_ANSWER_BYTES];
        match recv(&ours, answer.as_mut_slice(), RecvFlags::empty()) {
            Ok((1, _)) if answer[0] == READY => Ok(Self { socket: Mutex::new(ours), child }),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                Err(CaptureError::Helper("it did not report that it is ready".into()))
            }
        }
    }

    /// Begins to capture what passes `device` from and to `peer`. Blocks until the helper has answered.
    ///
    /// # Errors
    /// If a privilege is missing, the kernel refuses, or the helper is gone.
    pub fn open(&self, device: &str, peer: IpAddr) -> Result<OpenedCapture, CaptureError> {
        let gone = |why: String| CaptureError::Helper(format!("it has ended: {why}"));
        let request = request(device, peer)
            .ok_or_else(|| CaptureError::Helper(format!("{device:?} is no name of a device")))?;
        // A panic in between leaves an unread answer.
        let socket = self.socket.lock().map_err(|_| gone("a request was cut short".into()))?;
        let (answer, ring) = ask(&socket, &request).map_err(|cause| {
            // Anything that comes later would be taken for the answer to another request.
            let _ = shutdown(&*socket, Shutdown::Both);
            gone(cause.to_string())
        })?;
        drop(socket);
        match (heard(device, &answer), ring) {
            (Ok(()), Some(ring)) => OpenedCapture::of(Socket::from(ring))
                .map_err(|cause| CaptureError::Helper(format!("can't map its ring: {cause}"))),
            (Ok(()), None) => Err(gone("it sent no ring".into())),
            (Err(why), _) => Err(why),
        }
    }
}

impl Drop for CaptureHelper {
    fn drop(&mut self) {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = shutdown(&*socket, Shutdown::Both);
        drop(socket);
        let _ = self.child.wait();
    }
}

/// The helper's whole life: opens rings for the server at the other end of standard input, until that is closed. Returns
/// the exit code: 2 if standard input is no such connection.
pub fn helper_main() -> i32 {
    keep_one_capability();
    let stdin = io::stdin();
    let server = stdin.as_fd();
    if send(server, &[READY], SendFlags::NOSIGNAL).is_err() {
        return 2;
    }
    let mut packet = [0; REQUEST_BYTES + 1];
    loop {
        let received =
            rustix::io::retry_on_intr(|| recv(server, packet.as_mut_slice(), RecvFlags::empty()));
        let opened = match received {
            Ok((0, _)) | Err(_) => return 0,
            Ok((length, _)) => carry_out(&packet[..length]),
        };
        if answer(server, opened).is_err() {
            return 0;
        }
    }
}

/// Gives up all capabilities but the one that a packet socket takes. Without it, each request gets the reason.
fn keep_one_capability() {
    let wanted = CapabilitySet::NET_RAW;
    let Ok(now) = capabilities(None) else { return };
    let kept = now.permitted & wanted;
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable };
    // A process may always give up capabilities.
    let _ = set_capabilities(None, sets);
}

fn carry_out(packet: &[u8]) -> Result<Socket, CaptureError> {
    let (device, peer) =
        parse(packet).ok_or_else(|| CaptureError::Helper("that is no request".into()))?;
    open(device, &filter::of(peer), Blocks::SERVED)
}

fn answer(server: BorrowedFd<'_>, opened: Result<Socket, CaptureError>) -> io::Result<()> {
    let (kind, why) = match &opened {
        Ok(_) => (OPENED, String::new()),
        Err(CaptureError::NotPermitted { .. }) => (NOT_PERMITTED, String::new()),
        Err(why) => (REFUSED, why.to_string()),
    };
    let mut words = vec![kind];
    words.extend(why.bytes().take(LONGEST_ANSWER_BYTES - 1));
    let rings: Vec<_> = opened.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !rings.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&rings));
    }
    sendmsg(server, &[IoSlice::new(&words)], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The helper's answer to a request, and the socket that came with it.
fn ask(socket: &OwnedFd, request: &[u8]) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    send(socket, request, SendFlags::NOSIGNAL)?;
    let mut words = vec![0; LONGEST_ANSWER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut words)], &mut beside, RecvFlags::CMSG_CLOEXEC)
    })?;
    if got.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    words.truncate(got.bytes);
    let mut rings = beside.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rings) => rings.collect(),
        _ => Vec::new(),
    });
    let ring = rings.next();
    Ok((words, ring))
}

/// What an answer means.
fn heard(device: &str, answer: &[u8]) -> Result<(), CaptureError> {
    match answer.split_first() {
        Some((&OPENED, [])) => Ok(()),
        Some((&NOT_PERMITTED, [])) => Err(CaptureError::NotPermitted { device: device.to_owned() }),
        Some((&REFUSED, why)) => {
            Err(CaptureError::Helper(String::from_utf8_lossy(why).into_owned()))
        }
        _ => Err(CaptureError::Helper("its answer makes no sense".into())),
    }
}

/// A request; `None` if no device can have this name.
fn request(device: &str, peer: IpAddr) -> Option<[u8; REQUEST_BYTES]> {
    let mut packet = [0; REQUEST_BYTES];
    let is_name = !device.is_empty() && !device.contains('\0');
    packet[..DEVICE_BYTES - 1]
        .get_mut(..device.len())
        .filter(|_| is_name)?
        .copy_from_slice(device.as_bytes());
    let address = match peer {
        IpAddr::V4(peer) => peer.to_ipv6_mapped(),
        IpAddr::V6(peer) => peer,
    };
    packet[DEVICE_BYTES..].copy_from_slice(&address.octets());
    Some(packet)
}

/// What a request asks for; `None` if it is none.
fn parse(packet: &[u8]) -> Option<(&str, IpAddr)> {
    let packet: &[u8; REQUEST_BYTES] = packet.try_into().ok()?;
    let (device, address) = packet.split_at(DEVICE_BYTES);
    let end = device.iter().position(|byte| *byte == 0)?;
    let (name, rest) = device.split_at(end);
    let is_name = !name.is_empty() && rest.iter().all(|byte| *byte == 0);
    let name = std::str::from_utf8(name).ok().filter(|_| is_name)?;
    let address: [u8; 16] = address.try_into().ok()?;
    Some((name, IpAddr::from(Ipv6Addr::from(address)).to_canonical()))
}

/// Takes any bytes, as a request and as an answer.
pub fn any_packet(bytes: &[u8]) {
    if let Some((device, peer)) = parse(bytes) {
        assert_eq!(
            request(device, peer).as_ref().map(<[u8; REQUEST_BYTES]>::as_slice),
            Some(bytes)
        );
    }
    let _ = heard("eth0", bytes);
}

/// Opens a ring in this very process.
#[cfg(test)]
pub(crate) fn open_here(device: &str, peer: IpAddr) -> Result<OpenedCapture, CaptureError> {
    let socket = open(device, &filter::of(peer), Blocks::SERVED)?;
    OpenedCapture::of(socket)
        .map_err(|cause| CaptureError::Helper(format!("can't map its ring: {cause}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    /// A helper in a thread of this process, as far as its messages are concerned.
    fn asked(packet: &[u8]) -> (Vec<u8>, Option<OwnedFd>) {
        let pair =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, its) = pair.unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut heard = [0; REQUEST_BYTES + 1];
                let (length, _) = recv(&its, heard.as_mut_slice(), RecvFlags::empty()).unwrap();
                // The namespace belongs to the thread that made it.
                let opened = parse(&heard[..length])
                    .ok_or_else(|| CaptureError::Helper("that is no request".into()))
                    .and_then(|_| {
                        Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)
                            .map_err(|cause| CaptureError::Helper(cause.to_string()))
                    });
                answer(its.as_fd(), opened).unwrap();
            });
            ask(&ours, packet).unwrap()
        })
    }

    #[test]
    fn an_answer_brings_a_socket_or_the_reason() {
        let (words, ring) = asked(&request("eth0", [10, 0, 0, 1].into()).unwrap());
        assert!(heard("eth0", &words).is_ok() && ring.is_some());
        let (words, ring) = asked(b"nonsense");
        let why = heard("eth0", &words).unwrap_err().to_string();
        assert!(why.contains("that is no request") && ring.is_none(), "{why}");
    }

    #[test]
    fn the_filter_of_a_ring_stays() {
        in_namespace(|| {
            let done = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
            assert!(done.unwrap().success());
            let socket = open("lo", &filter::of([127, 0, 0, 1].into()), Blocks::SERVED).unwrap();
            let all = socket.attach_filter(&[socket2::SockFilter::new(6, 0, 0, u32::MAX)]);
            assert_eq!(all.unwrap_err().raw_os_error(), Some(libc::EPERM));
            assert!(socket.detach_filter().is_err());
        });
    }

    #[test]
    fn a_device_without_a_name_is_not_asked_for() {
        for device in ["", "a\0b", "a-name-that-is-too-long"] {
            assert_eq!(request(device, [10, 0, 0, 1].into()), None, "{device:?}");
        }
        let packet = request("eth0", [10, 0, 0, 1].into()).unwrap();
        assert_eq!(parse(&packet), Some(("eth0", [10, 0, 0, 1].into())));
        assert_eq!(parse(&packet[1..]), None);
    }

    proptest! {
        #[test]
        fn a_request_is_read_as_it_was_written(device in "[a-z0-9.@-]{1,15}", v6: [u8; 16]) {
            let peer = IpAddr::from(v6).to_canonical();
            let packet = request(&device, peer).unwrap();
            prop_assert_eq!(parse(&packet), Some((&*device, peer)));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            any_packet(&bytes);
        }

        #[test]
        fn no_changed_request_makes_it_panic(at in 0usize..REQUEST_BYTES, to: u8) {
            let mut packet = request("eth0", [10, 0, 0, 1].into()).unwrap();
            packet[at] = to;
            any_packet(&packet);
        }
    }
}
