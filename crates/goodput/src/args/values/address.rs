//! An IP address.

use std::net::{IpAddr, SocketAddr};

use super::unfit;

/// An IPv4 or IPv6 address.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn ip(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| unfit(text, "an IP address", "it like 192.0.2.1 or 2001:db8::1"))
}

/// An address with a port.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn with_port(text: &str) -> Result<SocketAddr, String> {
    let like = "it like 127.0.0.1:7489 or [2001:db8::1]:7489";
    text.parse().map_err(|_| unfit(text, "an address with a port", like))
}
