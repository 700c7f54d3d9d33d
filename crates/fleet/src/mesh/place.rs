//! Where a site is called, as the mesh file names it: host and port.

use std::net::Ipv6Addr;

use serde::Deserialize;

/// How the URL of a host with goodput begins; it may be left out.
const OWN: &str = "goodput://";
/// Most characters of a host's name (RFC 1035, section 2.3.4: 255 octets).
const MAX_HOST_CHARS: usize = 255;

/// A host that runs goodput: `HOST`, `HOST:PORT`, `[IPV6]:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Target(pub String);

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let place = text.strip_prefix(OWN).unwrap_or(&text).trim_end_matches('/');
        match no_place(place) {
            None => Ok(Self(text)),
            Some(why) => Err(format!(
                "{text:?} names no host that runs goodput: {why}; write it like HOST, HOST:PORT or [IPV6]:PORT, and a server \
                 that is no goodput as `server`"
            )),
        }
    }
}

/// The name of a host, as its records have it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Host(pub String);

impl TryFrom<String> for Host {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let length = text.chars().count();
        if (1..=MAX_HOST_CHARS).contains(&length) && text.chars().all(goodput_model::is_plain) {
            return Ok(Self(text));
        }
        Err(format!("a host's name has 1 to {MAX_HOST_CHARS} visible characters"))
    }
}

/// Why this is not a host with or without a port, if it is none.
pub(super) fn no_place(text: &str) -> Option<String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if is_v6(address) => (address, port),
            _ => return Some("there is no IPv6 address in the brackets".into()),
        },
        // More than one colon is an IPv6 address alone.
        None if text.matches(':').count() > 1 => {
            let why = "an IPv6 address with a port has brackets, and this is no address alone";
            return (!is_v6(text)).then(|| why.into());
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    no_host(host).or_else(|| no_port(port))
}

fn no_host(host: &str) -> Option<String> {
    let fits = |c: char| goodput_model::is_plain(c) && !c.is_whitespace() && !"/@?#[]".contains(c);
    match host.chars().count() {
        0 => Some("the host is missing".into()),
        1..=MAX_HOST_CHARS if host.chars().all(fits) => None,
        1..=MAX_HOST_CHARS => Some("a host has no blanks and none of / @ ? # [ ]".into()),
        _ => Some(format!("a host has at most {MAX_HOST_CHARS} characters")),
    }
}

/// `after` is what follows the host: nothing, or a colon and the port.
fn no_port(after: &str) -> Option<String> {
    let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
    let typed = after.strip_prefix(':').unwrap_or(after);
    let fits = after.is_empty() || (after.starts_with(':') && is_port(typed));
    (!fits).then(|| format!("{typed:?} is no port (1 to 65535)"))
}

/// `fe80::1`, `fe80::1%eth0`
fn is_v6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "x"));
    address.parse::<Ipv6Addr>().is_ok() && no_host(zone).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_place_has_a_host_and_perhaps_a_port_that_can_be() {
        for good in [
            "h",
            "h:1",
            "h:65535",
            "192.0.2.1:7",
            "fe80::1",
            "fe80::1%eth0",
            "[fe80::1]",
            "[::1]:7",
        ] {
            assert_eq!(no_place(good), None, "{good}");
        }
        for (wrong, words) in [
            ("h:0", "\"0\" is no port (1 to 65535)"),
            ("h:99999", "\"99999\" is no port (1 to 65535)"),
            ("h:", "\"\" is no port"),
            ("h:-1", "\"-1\" is no port"),
            ("h:http", "\"http\" is no port"),
            ("[::1]7", "\"7\" is no port"),
            ("[::1]:0", "\"0\" is no port"),
            ("[h]:7", "no IPv6 address"),
            ("[::1", "no IPv6 address"),
            ("::1:x:7", "brackets"),
            ("", "the host is missing"),
            (":7", "the host is missing"),
            ("a b", "no blanks"),
            ("me@h", "no blanks and none of / @"),
        ] {
            let why = no_place(wrong).unwrap_or_else(|| panic!("{wrong}"));
            assert!(why.contains(words), "{wrong}: {why}");
        }
        assert!(no_place(&"a".repeat(256)).unwrap().contains("255"));
    }

    #[test]
    fn a_target_is_a_host_with_goodput() {
        let read = |text: &str| Target::try_from(text.to_string());
        for good in ["nas", "nas:7487", "goodput://nas/", "goodput://[::1]:7487"] {
            assert_eq!(read(good), Ok(Target(good.into())));
        }
        for wrong in ["", "iperf3://h", "/srv/file", "file:///x", "./x", "http://h/file", "h:70000"]
        {
            let why = read(wrong).unwrap_err();
            assert!(why.contains("HOST:PORT") && why.contains(wrong), "{why}");
        }
    }

    #[test]
    fn a_host_has_a_name_that_can_be_seen() {
        assert!(Host::try_from("c-lab".to_string()).is_ok());
        for wrong in ["".to_string(), "a\u{7}".into(), "a".repeat(256)] {
            assert!(Host::try_from(wrong).unwrap_err().contains("255"));
        }
    }

    proptest! {
        #[test]
        fn any_port_but_0_can_be(port in any::<u32>()) {
            let fits = (1..=65535).contains(&port);
            prop_assert_eq!(no_place(&format!("h:{port}")).is_none(), fits);
        }

        #[test]
        fn any_text_is_a_place_or_has_a_reason(text in ".{0,24}") {
            let _ = (Target::try_from(text.clone()), Host::try_from(text));
        }
    }
}
