//! What tunnels put around each packet: a row each.

use goodput_model::Missing;

/// IPv6 headers are longer than those of IPv4 by this, bytes (RFC 8200, RFC 791).
const IPV6_EXTRA_BYTES: u64 = 20;
/// Behind the id of a tunnel: its outer packets are IPv6.
const OVER_IPV6: char = '6';

/// One kind of tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunnel {
    /// What users type.
    pub id: &'static str,
    /// What it adds, over IPv4 if it has an outer IP header, bytes.
    pub bytes: u64,
    /// What that is made of.
    pub parts: &'static str,
    /// Whether it has an outer IP header, so that it can be over IPv6 too.
    pub over_ip: bool,
    /// What the kernel calls such a device (`IFLA_INFO_KIND`).
    pub kinds: &'static [&'static str],
}

const fn over_ip(
    id: &'static str,
    bytes: u64,
    parts: &'static str,
    kinds: &'static [&'static str],
) -> Tunnel {
    Tunnel { id, bytes, parts, over_ip: true, kinds }
}

/// All of them. Sources: RFC 2003 (IPIP), RFC 4213 (6in4), RFC 2784 and 2890 (GRE), RFC 7348 (VXLAN), RFC
/// 8926 (Geneve without options), the WireGuard paper section 5.4.6 (16 bytes of header, 16 of tag), RFC 2516
/// (PPPoE: 6 bytes of header, 2 of PPP), 3GPP TS 29.281 (GTP-U).
pub const ALL: &[Tunnel] = &[
    over_ip("ipip", 20, "IP 20", &["ipip", "ip6tnl"]),
    over_ip("6in4", 20, "IP 20", &["sit"]),
    over_ip("gre", 24, "IP 20, GRE 4", &["gre", "ip6gre"]),
    over_ip("gre-key", 28, "IP 20, GRE 8", &[]),
    over_ip("gretap", 38, "IP 20, GRE 4, Ethernet 14", &["gretap", "ip6gretap"]),
    over_ip("vxlan", 50, "IP 20, UDP 8, VXLAN 8, Ethernet 14", &["vxlan"]),
    over_ip("geneve", 50, "IP 20, UDP 8, Geneve 8, Ethernet 14", &["geneve"]),
    over_ip("wireguard", 60, "IP 20, UDP 8, WireGuard 32", &["wireguard"]),
    over_ip("gtp-u", 36, "IP 20, UDP 8, GTP 8", &["gtp"]),
    Tunnel { id: "pppoe", bytes: 8, parts: "PPPoE 6, PPP 2", over_ip: false, kinds: &["ppp"] },
];

/// A tunnel as it was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Its row.
    pub tunnel: &'static Tunnel,
    /// Whether its outer packets are IPv6.
    pub over_ipv6: bool,
}

impl Used {
    /// What it adds to each packet, bytes.
    pub fn bytes(self) -> f64 {
        (self.tunnel.bytes + if self.over_ipv6 { IPV6_EXTRA_BYTES } else { 0 }) as f64
    }

    /// What that is made of, for a person.
    pub fn parts(self) -> String {
        match self.over_ipv6 {
            true => self.tunnel.parts.replace("IP 20", "IPv6 40"),
            false => self.tunnel.parts.into(),
        }
    }
}

/// Reads `vxlan`, or `vxlan6` for one over IPv6.
pub fn find(text: &str) -> Result<Used, Missing> {
    let row = |id: &str| ALL.iter().find(|tunnel| tunnel.id == id);
    if let Some(tunnel) = row(text) {
        return Ok(Used { tunnel, over_ipv6: false });
    }
    let over_ipv6 = text.strip_suffix(OVER_IPV6).and_then(row).filter(|tunnel| tunnel.over_ip);
    over_ipv6.map(|tunnel| Used { tunnel, over_ipv6: true }).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|tunnel| tunnel.id).collect();
        Missing::because(format!(
            "{text:?} is not a tunnel; write {}, and a 6 behind the name of one over IPv6",
            known.join(", ")
        ))
    })
}

/// The id of the tunnel that a device of this kind is the end of.
pub fn of_device(kind: &str) -> Option<&'static str> {
    ALL.iter().find(|tunnel| tunnel.kinds.contains(&kind)).map(|tunnel| tunnel.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_parts_add_up() {
        for (number, tunnel) in ALL.iter().enumerate() {
            assert!(ALL[..number].iter().all(|other| other.id != tunnel.id), "{}", tunnel.id);
            assert!(!tunnel.id.ends_with(OVER_IPV6), "{}", tunnel.id);
            let sum = |parts: &str| -> u64 {
                parts.split(", ").filter_map(|p| p.rsplit(' ').next()?.parse::<u64>().ok()).sum()
            };
            assert_eq!(sum(tunnel.parts), tunnel.bytes, "{}", tunnel.id);
            if tunnel.over_ip {
                let over_ipv6 = find(&format!("{}6", tunnel.id)).unwrap();
                assert_eq!(sum(&over_ipv6.parts()) as f64, over_ipv6.bytes(), "{}", tunnel.id);
            }
        }
    }

    #[test]
    fn an_unknown_tunnel_names_those_that_there_are() {
        assert!(find("pppoe6").is_err(), "PPPoE has no IP header");
        let why = find("vpn").unwrap_err().to_string();
        assert!(why.contains("wireguard") && why.contains("over IPv6"), "{why}");
    }

    #[test]
    fn devices_are_recognised_by_the_kernel_s_word() {
        assert_eq!([of_device("vxlan"), of_device("veth")], [Some("vxlan"), None]);
    }
}
