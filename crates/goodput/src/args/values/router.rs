//! A router that shapes, and how it is asked: `ssh://[USER@]HOST[:PORT]`, or `HOST[:PORT]` of a goodput server.

use std::str::FromStr;

use goodput_engine::Target;
use goodput_remote::Address;
use goodput_wire::protocols::goodput::PROTOCOL;

use super::unfit;

/// A router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouterAddress {
    /// It is asked by a login.
    Ssh(Address),
    /// It has a goodput server, a target in these words.
    Goodput(String),
}

impl FromStr for RouterAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("ssh://") {
            return text
                .parse()
                .map(Self::Ssh)
                .map_err(|why: goodput_remote::BadAddress| why.to_string());
        }
        let like = "it like router, router:7487 or ssh://root@router";
        let target: Target = text.parse().map_err(|_| unfit(text, "a router", like))?;
        match target.protocol.id == PROTOCOL.id && is_plain(&target.host) {
            true => Ok(Self::Goodput(text.into())),
            false => Err(unfit(text, "a router with a goodput server", like)),
        }
    }
}

/// Whether it can be the name or the address of a host.
fn is_plain(host: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".:-_%".contains(c);
    !host.is_empty() && !host.starts_with('-') && host.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_has_a_login_or_a_goodput_server() {
        let read = |text: &str| text.parse::<RouterAddress>();
        for name in ["router", "router:9000", "goodput://router", "[fe80::1%eth0]:7487"] {
            assert_eq!(read(name), Ok(RouterAddress::Goodput(name.into())));
        }
        assert!(matches!(read("ssh://root@router"), Ok(RouterAddress::Ssh(_))));
        for wrong in ["", "ssh://", "iperf3://router", "http://router/f", "/mnt/file", "router:x"] {
            let why = read(wrong).unwrap_err();
            assert!(why.contains("ssh://"), "{wrong:?}: {why}");
        }
    }
}
