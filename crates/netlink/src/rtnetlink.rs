//! Requests about links, addresses, routes and queueing disciplines (rtnetlink).

use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::NetlinkError;
use crate::raw::RawMessage;
use crate::socket::NetlinkSocket;

/// A connection to the kernel of the network namespace in which it was opened. Not shared
/// between threads; each opens its own.
#[derive(Debug)]
pub struct Netlink {
    socket: NetlinkSocket,
}

impl Netlink {
    /// Opens a connection to the calling thread's network namespace. It stays with that
    /// namespace even if the thread moves on.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { socket: NetlinkSocket::open(NETLINK_ROUTE)? })
    }

    /// Requests all objects of a kind.
    pub(crate) fn dump(
        &mut self,
        operation: &str,
        message: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        self.socket.dump(operation, message)
    }

    /// Requests all objects of a kind that the library does not parse safely.
    pub(crate) fn dump_raw(
        &mut self,
        operation: &str,
        message: RawMessage,
    ) -> Result<Vec<RawMessage>, NetlinkError> {
        self.socket.dump(operation, message)
    }

    /// Requests a change that the library does not support.
    pub(crate) fn request_raw(
        &mut self,
        operation: &str,
        message: RawMessage,
        flags: u16,
    ) -> Result<(), NetlinkError> {
        self.socket.request(operation, message, flags).map(drop)
    }

    /// Requests one object or a change; answers come before the acknowledgement.
    pub(crate) fn request(
        &mut self,
        operation: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        self.socket.request(operation, message, flags)
    }
}
