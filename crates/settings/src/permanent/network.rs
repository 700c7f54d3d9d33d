//! Files of systemd-networkd (systemd.network(5)), and scripts of networkd-dispatcher for settings
//! without a key there.

use goodput_model::{Permanent, SettingRef};

use super::{device, entry};
use crate::value;

/// The beginning of what these files are called: only networkd knows the path of a device's file.
pub(crate) const NETWORK_FILES: &str = "the .network file";

/// A section of the `.network` file of the setting's device. The file is the user's: only the first
/// matching file is applied, so one of ours would replace it.
pub(crate) fn network_file(setting: &SettingRef, section: &str) -> Permanent {
    let device = device(setting);
    let file = format!("{NETWORK_FILES} of {device} (see `networkctl status {device}`)");
    entry(file, section)
}

/// A section for the setting's htb class with one more key; the rest of the section is the user's.
pub(crate) fn class_section(setting: &SettingRef, key: &str) -> String {
    let scope = setting.scope.as_deref().unwrap_or_default();
    let class = scope.split_once(':').map(|(_, class)| super::plain_class(class));
    format!("[HierarchyTokenBucketClass]\nClassId={}\n{key}", class.unwrap_or_default())
}

/// A key of the section that makes the setting's route, in the file of its device.
pub(crate) fn route_section(setting: &SettingRef, key: &str, value: &str) -> Vec<Permanent> {
    let destination = super::route(setting);
    // Without its key, a section creates the route as if the metric had never been set.
    let line =
        if value == value::DEFAULT { format!("# no {key}=") } else { format!("{key}={value}") };
    let file =
        format!("{NETWORK_FILES} that makes the route to {destination} (see `networkctl status`)");
    vec![entry(file, format!("[Route]\n# its Destination= and Gateway=\n{line}"))]
}

/// A script that changes a route once its device is routable; `metrics` in the words of
/// ip-route(8).
pub(crate) fn dispatcher(setting: &SettingRef, metrics: &str) -> Permanent {
    let destination = super::route(setting);
    entry(
        "/etc/networkd-dispatcher/routable.d/90-goodput (executable)",
        format!("#!/bin/sh\nip route change $(ip route show {destination} | head -n 1) {metrics}"),
    )
}
