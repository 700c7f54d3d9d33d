//! Which settings take effect on flows that are under way.

use goodput_model::{EndName, SettingRef};

use crate::find_for;
use crate::setting::Scope;

/// What a connection copies from its device when it begins, or was agreed on then: the device's way to send segments
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

/// Whether flows that are under way take up a new value. Metrics of routes and parameters of the kernel are read when a
/// connection begins, or may be. A device's setting that this host does not know belongs to a host reached by SSH, and does.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ALL;

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
