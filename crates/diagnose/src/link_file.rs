//! The systemd file that sets a device permanently (systemd.link(5)).

/// Name of such a file. Only the first file that matches a device is applied, in the order of
/// the names, so this name comes before the distribution's 99-default.link.
pub fn name(device: &str) -> String {
    format!("/etc/systemd/network/10-{device}.link")
}

/// A whole file with `lines` in `[Link]`. It replaces 99-default.link for the device, and repeats the
/// default's two lines so that the device keeps its name and address.
pub fn text(device: &str, lines: &str) -> String {
    format!(
        "# MACAddress: as in /sys/class/net/{device}/address\n[Match]\nMACAddress=ADDRESS\n\n\
         [Link]\nNamePolicy=keep kernel database onboard slot path\nMACAddressPolicy=persistent\n\
         {lines}"
    )
}
