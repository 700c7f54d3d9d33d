//! An IP address, or several.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::unfit;

/// An address, which is a network of one, or a network by its prefix.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn network(text: &str) -> Result<IpNet, String> {
    let like = "it like 192.0.2.1, 2001:db8::1 or 192.0.2.0/24";
    let one = text.parse().map(|address: IpAddr| IpNet::from(address.to_canonical()));
    one.or_else(|_| text.parse()).map_err(|_| unfit(text, "an address or a network", like))
}

/// An address with a port.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn with_port(text: &str) -> Result<SocketAddr, String> {
    let like = "it like 127.0.0.1:7489 or [2001:db8::1]:7489";
    text.parse().map_err(|_| unfit(text, "an IP address with a port", like))
}
