//! `HOST:PORT:ADDRESS`: where a name is, for those who know better than the resolver.

use std::net::IpAddr;
use std::str::FromStr;

use super::unfit;

/// An address of a host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    host: String,
    port: u16,
    /// The address.
    pub address: IpAddr,
}

impl Resolve {
    /// Whether it is for this host and port.
    pub fn is_for(&self, host: &str, port: u16) -> bool {
        self.host.eq_ignore_ascii_case(host) && self.port == port
    }
}

impl FromStr for Resolve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || unfit(text, "HOST:PORT:ADDRESS", "it like nas:443:192.0.2.7");
        let mut parts = text.splitn(3, ':');
        let (Some(host), Some(port), Some(address)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let address = address.trim_start_matches('[').trim_end_matches(']');
        match (port.parse(), address.parse()) {
            (Ok(port), Ok(address)) if !host.is_empty() => {
                Ok(Self { host: host.into(), port, address })
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_an_address_at_a_port() {
        let resolve: Resolve = "nas:443:[2001:db8::7]".parse().unwrap();
        assert!(resolve.is_for("NAS", 443) && !resolve.is_for("nas", 80));
        assert_eq!(resolve.address.to_string(), "2001:db8::7");
        for text in ["", "nas", "nas:443", "nas:x:1.2.3.4", "nas:443:host", ":443:1.2.3.4"] {
            assert!(text.parse::<Resolve>().unwrap_err().contains("HOST:PORT:ADDRESS"), "{text}");
        }
    }
}
