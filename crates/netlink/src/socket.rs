//! The netlink socket: one request, all its answers, and the kernel's verdict on it.

use std::io;
use std::time::Duration;

use netlink_packet_core::{
    ErrorMessage, NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer,
    NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
    NlasIterator,
};
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::NetlinkError;

/// Longest datagram the kernel builds for a dump (`netlink_dump` in net/netlink/af_netlink.c caps
/// it at 32 KiB; single replies are smaller still).
const DATAGRAM_BYTES: usize = 64 * 1024;
/// The kernel answers within send(2); this only guards against the impossible.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Most attempts at a dump that concurrent changes interrupt.
const DUMP_ATTEMPTS: u32 = 8;
/// `NLMSGERR_ATTR_MSG` of include/uapi/linux/netlink.h: the kernel's explanation.
const EXPLANATION: u16 = 1;
/// `struct nlmsghdr`, which precedes the attributes of an error.
const MESSAGE_HEADER_BYTES: usize = 16;

/// A message that can be sent and received: the library handles the routing family, other messages stay
/// as they are ([`crate::raw::RawMessage`]).
pub(crate) trait Body: NetlinkSerializable + NetlinkDeserializable + Clone {}

impl<T: NetlinkSerializable + NetlinkDeserializable + Clone> Body for T {}

/// One socket of one netlink family. It stays with the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct NetlinkSocket {
    socket: Socket,
    sequence: u32,
}

impl NetlinkSocket {
    /// Opens a socket of `family` (`NETLINK_*`) in the calling thread's network namespace.
    pub(crate) fn open(family: isize) -> Result<Self, NetlinkError> {
        Self::connect(family).map_err(|cause| NetlinkError::refused("open a netlink socket", cause))
    }

    fn connect(family: isize) -> io::Result<Self> {
        let mut socket = Socket::new(family)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Errors then come with an explanation and without a copy of the request. Kernels before 4.12
        // support neither; then there is no explanation.
        let _ = socket.set_cap_ack(true);
        let _ = socket.set_ext_ack(true);
        set_socket_timeout(&socket, Timeout::Recv, Some(REPLY_TIMEOUT))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Requests all objects of a kind.
    pub(crate) fn dump<M: Body>(
        &mut self,
        operation: &str,
        message: M,
    ) -> Result<Vec<M>, NetlinkError> {
        for _ in 0..DUMP_ATTEMPTS {
            let replies = self.exchange(operation, message.clone(), NLM_F_DUMP)?;
            if let Some(replies) = replies.if_consistent() {
                return Ok(replies);
            }
        }
        Err(NetlinkError::malformed(operation, "the list kept changing while it was read"))
    }

    /// Requests one object or a change; answers come before the acknowledgement.
    pub(crate) fn request<M: Body>(
        &mut self,
        operation: &str,
        message: M,
        flags: u16,
    ) -> Result<Vec<M>, NetlinkError> {
        self.exchange(operation, message, flags | NLM_F_ACK).map(|replies| replies.messages)
    }

    fn exchange<M: Body>(
        &mut self,
        operation: &str,
        message: M,
        flags: u16,
    ) -> Result<Replies<M>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut packet =
            NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
        packet.header.flags = NLM_F_REQUEST | flags;
        packet.header.sequence_number = self.sequence;
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(|cause| NetlinkError::refused(operation, cause))?;
        self.collect(operation)
    }

    fn collect<M: Body>(&self, operation: &str) -> Result<Replies<M>, NetlinkError> {
        let mut replies = Replies::<M>::default();
        let mut datagram = Vec::with_capacity(DATAGRAM_BYTES);
        loop {
            datagram.clear();
            let length = match self.socket.recv(&mut datagram, libc::MSG_TRUNC) {
                // The kernel doesn't restart a wait with a timeout (signal(7), `EINTR`).
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                received => received.map_err(|cause| NetlinkError::refused(operation, cause))?,
            };
            if length > datagram.len() {
                return Err(NetlinkError::malformed(operation, format!("{length} bytes at once")));
            }
            if replies.take(operation, &datagram, self.sequence)? {
                return Ok(replies);
            }
        }
    }
}

/// The answers so far.
#[derive(Debug)]
struct Replies<M> {
    messages: Vec<M>,
    interrupted: bool,
}

impl<M> Default for Replies<M> {
    fn default() -> Self {
        Self { messages: Vec::new(), interrupted: false }
    }
}

impl<M: Body> Replies<M> {
    fn if_consistent(self) -> Option<Vec<M>> {
        (!self.interrupted).then_some(self.messages)
    }

    /// Processes one datagram; true if it ends the answer. Messages with other sequence numbers
    /// answer a request that was given up.
    fn take(
        &mut self,
        operation: &str,
        mut datagram: &[u8],
        sequence: u32,
    ) -> Result<bool, NetlinkError> {
        while !datagram.is_empty() {
            let (bytes, rest) = split_message(operation, datagram)?;
            datagram = rest;
            let header = NetlinkBuffer::new(bytes);
            if header.sequence_number() != sequence {
                continue;
            }
            self.interrupted |= header.flags() & NLM_F_DUMP_INTR != 0;
            let message = NetlinkMessage::<M>::deserialize(bytes)
                .map_err(|why| NetlinkError::malformed(operation, why))?;
            match message.payload {
                NetlinkPayload::InnerMessage(inner) => self.messages.push(inner),
                NetlinkPayload::Error(error) => return acknowledged(operation, &error),
                NetlinkPayload::Done(done) => return completed(operation, done.code),
                _ => {}
            }
        }
        Ok(false)
    }
}

/// The first message of a datagram, and the bytes after its padding.
fn split_message<'a>(
    operation: &str,
    datagram: &'a [u8],
) -> Result<(&'a [u8], &'a [u8]), NetlinkError> {
    let length = NetlinkBuffer::new_checked(datagram)
        .map_err(|why| NetlinkError::malformed(operation, why))?
        .length() as usize;
    let next = length.next_multiple_of(4).min(datagram.len());
    Ok((&datagram[..length], &datagram[next..]))
}

fn acknowledged(operation: &str, error: &ErrorMessage) -> Result<bool, NetlinkError> {
    match error.code {
        None => Ok(true),
        Some(_) => Err(NetlinkError::Refused {
            operation: operation.into(),
            cause: error.to_io(),
            explanation: explanation(&error.header),
        }),
    }
}

fn completed(operation: &str, code: i32) -> Result<bool, NetlinkError> {
    if code < 0 {
        let cause = io::Error::from_raw_os_error(code.saturating_neg());
        return Err(NetlinkError::refused(operation, cause));
    }
    Ok(true)
}

fn explanation(header_and_attributes: &[u8]) -> Option<String> {
    let attributes = header_and_attributes.get(MESSAGE_HEADER_BYTES..)?;
    NlasIterator::new(attributes)
        .flatten()
        .find(|nla| nla.kind() == EXPLANATION)
        .map(|nla| String::from_utf8_lossy(nla.value()).trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::RouteNetlinkMessage;

    use super::*;
    use crate::raw::RawMessage;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Replies::<RouteNetlinkMessage>::default().take("try", &bytes, 0);
            let _ = Replies::<RawMessage>::default().take("try", &bytes, 0);
        }

        #[test]
        fn no_body_of_a_known_message_makes_it_panic(
            kind in prop::sample::select(vec![2u8, 3, 16, 20, 24, 36, 40]),
            body in prop::collection::vec(0u8..40, 0..120),
        ) {
            let length = (16 + body.len()) as u8;
            let mut bytes = vec![length, 0, 0, 0, kind, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
            bytes.extend(body);
            let _ = Replies::<RouteNetlinkMessage>::default().take("try", &bytes, 7);
        }
    }

    #[test]
    fn a_reply_cut_anywhere_is_an_error_and_never_a_panic() {
        let mut ack = vec![36, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        ack.resize(36, 0);
        assert!(Replies::<RouteNetlinkMessage>::default().take("try", &ack, 7).unwrap());
        for length in 1..ack.len() {
            assert!(
                Replies::<RouteNetlinkMessage>::default().take("try", &ack[..length], 7).is_err(),
                "{length}"
            );
        }
    }

    #[test]
    fn an_answer_to_an_older_question_is_passed_over() {
        let mut stale = vec![20, 0, 0, 0, 2, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0];
        stale.resize(20, 0);
        assert!(!Replies::<RouteNetlinkMessage>::default().take("try", &stale, 7).unwrap());
    }

    #[test]
    fn an_interrupted_dump_is_not_consistent() {
        let mut done = vec![20, 0, 0, 0, 3, 0, 0x12, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        done.resize(20, 0);
        let mut replies = Replies::<RouteNetlinkMessage>::default();
        assert!(replies.take("try", &done, 7).unwrap());
        assert!(replies.if_consistent().is_none());
    }
}
