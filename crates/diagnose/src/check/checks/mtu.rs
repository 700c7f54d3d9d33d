//! A device that carries only small packets.

use goodput_model::Confidence;

use super::super::{Answer, Check, HostView, Scope};
use crate::names::LINK_MTU;

/// Least MTU of every IPv6 link, bytes (RFC 8200 section 5): tunnels carry this and more.
const MIN_IPV6_MTU_BYTES: f64 = 1280.0;
/// Headers of IPv4 (RFC 791) and TCP (RFC 9293), 20 bytes each, and TCP's timestamps, 12 (RFC 7323).
const TCP_IPV4_HEADERS_BYTES: f64 = 52.0;

/// A small MTU.
pub(super) const SMALL_MTU: Check = Check {
    id: "small-mss",
    title: "a device that carries only small packets",
    scope: Scope::Device,
    ask: &small_mtu,
};

fn small_mtu(check: &Check, host: &HostView) -> Answer {
    let mtu = host.count(LINK_MTU)?;
    if mtu >= MIN_IPV6_MTU_BYTES {
        return Ok(None);
    }
    let summary = format!(
        "the MTU is {mtu:.0} bytes, {:.0} of them payload with TCP over IPv4; IPv6 needs {MIN_IPV6_MTU_BYTES:.0} (RFC 8200)",
        mtu - TCP_IPV4_HEADERS_BYTES
    );
    check
        .draft(Confidence::Possible, LINK_MTU, mtu, &summary)
        .changes([host.change("link.mtu", Some(format!("{mtu:.0}")), "1500", "as Ethernet")])
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Snapshot;

    #[test]
    fn only_what_no_tunnel_needs_is_small() {
        let found = |mtu: u64| {
            let mut facts = Snapshot::default();
            facts.put(LINK_MTU, mtu);
            SMALL_MTU.check(&HostView { device: Some("eth0"), now: &facts, before: None }).unwrap()
        };
        assert!(found(600).unwrap().summary.contains("548"));
        assert_eq!((found(1280), found(1500)), (None, None));
    }
}
