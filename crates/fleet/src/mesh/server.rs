//! A server that is no goodput, as the mesh file names it.

use serde::Deserialize;

use super::by_ssh::host_and_port;
use super::place::no_place;

/// Protocols whose servers agree to a test before payload moves, and stay for the next one. iperf 2 and ttcp are not
/// among them: without a control connection, payload would go to whatever listens there.
pub const FOREIGN_PROTOCOLS: [&str; 2] = ["iperf3", "nuttcp"];

/// `iperf3://HOST[:PORT]`, as the target of a test.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Server(pub String);

impl TryFrom<String> for Server {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (protocol, rest) = text.split_once("://").unwrap_or_default();
        let why = match FOREIGN_PROTOCOLS.contains(&protocol) {
            true => no_place(rest),
            false => Some("its protocol is none of those".into()),
        };
        let Some(why) = why else { return Ok(Self(text)) };
        let all = FOREIGN_PROTOCOLS.map(|protocol| format!("{protocol}://HOST:PORT"));
        Err(format!(
            "{text:?} is no server that agents can test with: {why}; write it like {}, or call a site that runs goodput by \
             target",
            all.join(" or ")
        ))
    }
}

/// A server as it is called, however its address is written: with the usual port if it names none, and the name of its host in
/// small letters.
pub(super) fn called(target: &str) -> String {
    let (protocol, rest) = target.split_once("://").unwrap_or(("", target));
    let (user, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (host, port) = host_and_port(place);
    let usual = match protocol {
        "iperf3" => 5201,
        "nuttcp" => 5000,
        _ => 22,
    };
    format!("{protocol}://{user}@{}:{}", host.to_lowercase(), port.unwrap_or(usual))
}

/// The host of a target as typed: without scheme, user, port and file.
pub(crate) fn host_of(target: &str) -> &str {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let rest = rest.split('/').next().unwrap_or_default();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    if let Some((address, _)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match rest.rsplit_once(':') {
        // More than one colon is an IPv6 address alone.
        Some((host, _)) if !host.contains(':') => host,
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_server_has_a_protocol_that_asks_before_payload_moves() {
        let read = |text: &str| Server::try_from(text.to_string());
        for good in ["iperf3://h", "nuttcp://h:5000", "iperf3://[fe80::1]:7", "iperf3://192.0.2.1"]
        {
            assert_eq!(read(good), Ok(Server(good.into())));
        }
        for wrong in
            ["h", "h:5201", "iperf2://h", "goodput://h", "iperf3://", "iperf3://:7", "nuttcp://a b"]
        {
            let why = read(wrong).unwrap_err();
            assert!(why.contains("iperf3://HOST:PORT") && why.contains(wrong), "{why}");
        }
        let why = read("iperf3://x:99999").unwrap_err();
        assert!(why.contains("\"99999\" is no port (1 to 65535)"), "{why}");
    }

    #[test]
    fn a_server_is_the_same_however_its_address_is_written() {
        for (one, other, are_same) in [
            ("iperf3://H", "iperf3://h:5201", true),
            ("iperf3://[fe80::1]", "iperf3://[fe80::1]:5201", true),
            ("iperf3://h:1", "iperf3://h:2", false),
            ("iperf3://h", "nuttcp://h", false),
            ("nuttcp://h:5000", "nuttcp://h", true),
            ("ssh://me@h", "ssh://me@h:22", true),
            ("ssh://me@h", "ssh://you@h", false),
        ] {
            assert_eq!(called(one) == called(other), are_same, "{one} {other}");
        }
    }

    #[test]
    fn a_target_has_a_host() {
        for (target, host) in [
            ("nas", "nas"),
            ("[fe80::1]:7", "fe80::1"),
            ("fe80::1", "fe80::1"),
            ("http://a/b", "a"),
            ("iperf3://10.0.0.7:5201", "10.0.0.7"),
            ("ssh://me@[fe80::1]:22", "fe80::1"),
            ("http://a/me@b", "a"),
        ] {
            assert_eq!(host_of(target), host);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_server_or_an_error(text in ".{0,24}") {
            let _ = Server::try_from(text);
        }
    }
}
