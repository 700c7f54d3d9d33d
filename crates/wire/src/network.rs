//! Networks by address, in the notation of `--allow`, `--deny` and the options of a key.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// Addresses with the same first bits, in CIDR notation (RFC 4632); a single address is a network of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Whether an address is in this network. An IPv4 address may be written as IPv6 (RFC 4291 section 2.5.5.2).
    pub fn holds(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// How many bits its addresses share.
    pub fn bits(&self) -> u8 {
        self.0.prefix_len()
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let alone = || text.parse().map(|address: IpAddr| IpNet::from(address.to_canonical()));
        let network = text.parse().or_else(|_| alone()).map_err(|_| {
            let like = "192.0.2.0/24, 2001:db8::/32 or 192.0.2.1";
            format!("{text:?} is not a network; write it like {like}")
        })?;
        Ok(Self(IpNet::trunc(&network)))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "192.0.2.0/33", "example.org", "192.0.2.0/x", "::/129", "192.0.2"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        assert_eq!("192.0.2.77/24".parse::<Network>(), "192.0.2.0/24".parse());
    }
}
