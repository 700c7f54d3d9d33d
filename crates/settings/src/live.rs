//! Which settings take effect on running flows.

use goodput_model::{EndName, SettingRef};

use crate::find_for;
use crate::setting::Scope;

/// What a connection copies from its device, or negotiates, when it begins: how the device sends segments
/// (`sk_setup_caps`, net/core/sock.c), and the largest segment (tcp(7)).
const COPIED_BY_CONNECTIONS: [&str; 9] = [
    "link.mtu",
    "offload.tso",
    "offload.gso",
    "offload.sg",
    "offload.tx-checksum",
    "offload.tx-udp-segmentation",
    "offload.tx-tunnel-segmentation",
    "offload.gso_max_size",
    "offload.gso_max_segs",
];

/// Whether running flows take up a new value. Metrics of routes and kernel parameters are, or may be, read only when a
/// connection begins. A device's setting unknown on this host belongs to a host reached by SSH, and is taken up.
pub fn changes_live_flows(setting: &SettingRef) -> bool {
    let near = SettingRef { end: EndName::Near, ..setting.clone() };
    let of_device = match find_for(&near) {
        Ok(known) => {
            matches!(known.scope, Scope::Device | Scope::Class) || known.id == "cpu.governor"
        }
        Err(_) => setting.scope.is_some(),
    };
    of_device && !COPIED_BY_CONNECTIONS.contains(&setting.name.as_str())
}

/// Whether a change could cut or damage the connection by which it is asked for: of a device, of a route, or of the
/// parameters of devices (`net.ipv4.conf`), such as the reverse path filter. Such a change is confirmed once full packets
/// got through after it.
pub fn may_cut(setting: &SettingRef) -> bool {
    setting.scope.is_some() || setting.name.contains("conf")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ALL;

    #[test]
    fn what_packets_pass_may_cut_the_connection_and_what_tcp_reads_may_not() {
        let cuts = |name: &str| may_cut(&name.parse().unwrap());
        let all =
            ["link.mtu@e", "ring.rx@e", "route.window@default", "sysctl.net.ipv4.conf.e.rp_filter"];
        assert!(all.into_iter().all(cuts));
        assert!(!cuts("sysctl.net.ipv4.tcp_rmem") && !cuts("socket.sndbuf"));
    }

    #[test]
    fn what_a_connection_has_from_its_beginning_is_not_changed_by_a_setting() {
        let live = |name: &str| changes_live_flows(&name.parse().unwrap());
        for setting in ["qdisc.tbf.burst@e", "far:offload.gro@e", "ring.rx@e", "cpu.governor"] {
            assert!(live(setting), "{setting}");
        }
        for setting in
            ["link.mtu@e", "route.window@default", "offload.tso@e", "sysctl.net.x", "chunk"]
        {
            assert!(!live(setting), "{setting}");
        }
        let known = |id: &str| ALL.iter().any(|setting| setting.id == id);
        assert!(COPIED_BY_CONNECTIONS.iter().all(|id| known(id)), "each is a setting");
    }
}
