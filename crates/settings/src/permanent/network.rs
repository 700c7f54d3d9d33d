//! Files of systemd-networkd (systemd.network(5)), and scripts of networkd-dispatcher for what it
//! has no key.

use goodput_model::{Permanent, SettingRef};

use super::{device, entry};

/// A section of the `.network` file of the setting's device. The file is the user's: of several
/// that match only the first is applied, so that one of ours would replace it.
pub(crate) fn network_file(setting: &SettingRef, section: &str) -> Permanent {
    let device = device(setting);
    let file = format!(
        "/etc/systemd/network/*.network, the one of {device} (`networkctl status {device}` names it)"
    );
    entry(file, section)
}

/// A script that changes a route once the device of it is routable; `metrics` as ip-route(8) has
/// them.
pub(crate) fn dispatcher(destination: &str, metrics: &str) -> Permanent {
    entry(
        "/etc/networkd-dispatcher/routable.d/90-goodput (executable)",
        format!("#!/bin/sh\nip route change $(ip route show {destination} | head -n 1) {metrics}"),
    )
}
