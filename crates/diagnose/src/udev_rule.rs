//! The rule of udev that sets a device permanently (udev(7)). It finds the device by the name that the device has in
//! the end. A file of systemd.link(5) can't: it is read before the device gets this name, and a record has no hardware
//! address.

/// The file of such rules.
pub const FILE: &str = "/etc/udev/rules.d/90-goodput.rules";

/// Runs `actions` when the device appears, or gets its name: a renamed device comes with `move`.
pub fn text(device: &str, actions: &str) -> String {
    format!("ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"{device}\", {actions}")
}

/// Switches autonegotiation of the device on.
pub fn autonegotiation(device: &str) -> String {
    text(device, &format!("RUN+=\"/usr/sbin/ethtool -s {device} autoneg on\""))
}
