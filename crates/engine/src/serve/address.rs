//! Addresses as people write them.

use std::net::{IpAddr, SocketAddr};

/// An address of a dual-stack socket, with IPv4 as people write it. An IPv6 address keeps its scope,
/// which is part of a link-local address (RFC 4007 section 6).
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}
