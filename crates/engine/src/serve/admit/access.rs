//! Which clients the server talks to at all: networks that are allowed, and networks that are denied.

use std::net::IpAddr;

use goodput_wire::network::Network;

/// Which addresses are let in. The longest matching network decides; if two are the same, denial wins. An address that
/// no network contains is let in only if no network is allowed by name.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Networks that are let in.
    pub allow: Vec<Network>,
    /// Networks that are kept out.
    pub deny: Vec<Network>,
}

impl Access {
    /// Whether an address is let in.
    pub fn allows(&self, address: IpAddr) -> bool {
        let closest = |networks: &[Network]| {
            let holding = networks.iter().filter(|network| network.holds(address));
            holding.map(|network| network.bits()).max()
        };
        match (closest(&self.allow), closest(&self.deny)) {
            (Some(allowed), Some(denied)) => allowed > denied,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => self.allow.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(list: &[&str]) -> Vec<Network> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn allows(allow: &[&str], deny: &[&str], address: &str) -> bool {
        let access = Access { allow: networks(allow), deny: networks(deny) };
        access.allows(address.parse().unwrap())
    }

    #[test]
    fn without_a_word_everybody_is_let_in() {
        assert!(allows(&[], &[], "192.0.2.1") && allows(&[], &[], "::1"));
    }

    #[test]
    fn the_closest_network_decides_and_denial_if_both_are_as_close() {
        let (allow, deny) = (["192.0.2.0/24", "10.0.0.0/8"], ["192.0.0.0/16", "10.0.0.0/8"]);
        assert!(allows(&allow, &deny, "192.0.2.1"));
        assert!(!allows(&allow, &deny, "192.0.3.1"));
        assert!(!allows(&allow, &deny, "10.1.2.3"));
        assert!(!allows(&allow, &deny, "203.0.113.1"), "nobody has named it");
        assert!(allows(&[], &deny, "203.0.113.1"));
    }

    #[test]
    fn an_ipv4_address_is_the_same_however_it_came() {
        assert!(!allows(&[], &["192.0.2.1"], "::ffff:192.0.2.1"));
        assert!(!allows(&[], &["::ffff:192.0.2.1"], "192.0.2.1"));
        assert!(!allows(&["2001:db8::/32"], &[], "192.0.2.1"));
        assert!(allows(&["2001:db8::/32"], &[], "2001:db8:1::7"));
        assert!(!allows(&[], &["::/0"], "2001:db8::1") && allows(&[], &["::/0"], "192.0.2.1"));
    }
}
