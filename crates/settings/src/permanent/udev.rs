//! A rule of udev(7), for settings without a key in systemd.link(5).

use goodput_model::{Permanent, SettingRef};

use super::{device, entry};

/// Runs `actions` when the device appears, or gets its name: a renamed device comes with `move`.
pub(crate) fn udev_rule(setting: &SettingRef, actions: &str) -> Permanent {
    let device = device(setting);
    entry(
        "/etc/udev/rules.d/90-goodput.rules",
        format!("ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"{device}\", {actions}"),
    )
}

/// The same by ethtool(8); `arguments` without the device.
pub(crate) fn ethtool(setting: &SettingRef, option: &str, arguments: &str) -> Permanent {
    let device = device(setting);
    udev_rule(setting, &format!("RUN+=\"/usr/sbin/ethtool {option} {device} {arguments}\""))
}

/// The same by writing `value`, a mask or a number, to a file of each queue.
pub(crate) fn queue_rule(setting: &SettingRef, files: &str, value: &str) -> Permanent {
    let value: String = value.chars().filter(char::is_ascii_hexdigit).collect();
    let write = format!("for q in /sys$env{{DEVPATH}}/queues/{files}; do echo {value} > $$q; done");
    udev_rule(setting, &format!("RUN+=\"/bin/sh -c '{write}'\""))
}
