//! Addresses as people write them.

use std::net::{IpAddr, SocketAddr};

/// An address of a dual-stack socket, IPv4 as people write it. An IPv6 address keeps its scope: of a
/// link-local one it is a part (RFC 4007 section 6).
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}
