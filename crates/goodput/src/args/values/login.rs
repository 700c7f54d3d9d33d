//! A host to log in to by SSH, with or without the scheme.

use std::net::Ipv6Addr;

use goodput_remote::{Address, BadAddress};

const SCHEME: &str = "ssh://";

/// `[USER@]HOST[:PORT]`. An IPv6 address alone needs no brackets, as in a mesh file.
pub fn login(text: &str) -> Result<Address, BadAddress> {
    let rest = text.strip_prefix(SCHEME).unwrap_or(text);
    let at = rest.rfind('@').map_or(0, |at| at + 1);
    let (user, place) = rest.split_at(at);
    match place.parse::<Ipv6Addr>() {
        Ok(_) => format!("{SCHEME}{user}[{place}]").parse(),
        Err(_) => format!("{SCHEME}{rest}").parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_be_written_with_or_without_its_scheme() {
        assert_eq!(login("me@h:22"), login("ssh://me@h:22"));
        for wrong in ["-oProxyCommand=x", "iperf3://h", "", "me@"] {
            assert!(login(wrong).is_err(), "{wrong}");
        }
    }

    /// An agent logs in where its own option and the mesh file name the same host.
    #[test]
    fn a_host_is_the_same_as_in_a_mesh_file() {
        let brackets = ["me@[2001:db8::7]", "[2001:db8::7]:22"];
        let alone = ["me@2001:db8::7", "ssh://2001:db8::7", "::1:22"];
        for text in brackets.into_iter().chain(alone).chain(["h", "me@h:022"]) {
            let mesh = format!("[site.a]\n[site.x]\nssh = \"{text}\"\n");
            let mesh = goodput_fleet::Mesh::parse("x", &mesh).unwrap();
            let login = login(text).unwrap().to_string();
            assert_eq!(mesh.sites[1].target.as_deref(), Some(&*login), "{text}");
        }
    }
}
