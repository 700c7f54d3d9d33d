//! An IP address.

use std::net::IpAddr;

use super::unfit;

/// An IPv4 or IPv6 address.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn ip(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| unfit(text, "an IP address", "it like 192.0.2.1 or 2001:db8::1"))
}
