//! Files of systemd-udevd for one link (systemd.link(5)).

use goodput_model::{EndName, Permanent, SettingRef};
use goodput_netlink::Netlink;

use super::{device, entry};

/// Only the first matching file is applied, so ours must repeat the lines of
/// `99-default.link` (systemd.link(5), "Link files").
const DEFAULTS: &str = "[Link]\n\
    NamePolicy=keep kernel database onboard slot path\n\
    MACAddressPolicy=persistent";

/// A `.link` file with `keys` for the setting's device.
pub(crate) fn link_file(setting: &SettingRef, keys: &str) -> Permanent {
    let device = device(setting);
    let found = match address(setting, &device) {
        Some(address) => format!("MACAddress={address}"),
        None => {
            format!("# The MAC address would be safer: the name may change.\nOriginalName={device}")
        }
    };
    entry(
        format!("/etc/systemd/network/10-goodput-{device}.link"),
        format!("[Match]\n{found}\n{DEFAULTS}\n{keys}"),
    )
}

/// A `.link` file with one switch.
pub(crate) fn link_switch(setting: &SettingRef, key: &str, value: &str) -> Permanent {
    link_file(setting, &format!("{key}={}", if value == "on" { "yes" } else { "no" }))
}

/// The file that keeps an offload on or off by `keys` of systemd.link(5).
pub(crate) fn offload(setting: &SettingRef, value: &str, keys: &[&str]) -> Vec<Permanent> {
    let yes_no = if value == "on" { "yes" } else { "no" };
    let lines: Vec<String> = keys.iter().map(|key| format!("{key}={yes_no}")).collect();
    vec![link_file(setting, &lines.join("\n"))]
}

/// The device's hardware address, if the device is on this host and the address has Ethernet's length.
fn address(setting: &SettingRef, device: &str) -> Option<String> {
    if setting.end == EndName::Far {
        return None;
    }
    let link = Netlink::open().ok()?.link(device).ok()?;
    if link.address.len() != 6 || link.loopback {
        return None;
    }
    let bytes: Vec<String> = link.address.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(bytes.join(":"))
}
