//! The same for hosts with FreeBSD: rc.conf(5), sysctl.conf(5).

use goodput_model::Permanent;

use super::entry;

/// An option of ifconfig(8) that the interface gets at every start. sh(1) reads rc.conf, so
/// the line can add to the lines above it.
pub fn interface_option(device: &str, option: &str) -> Permanent {
    let variable = format!("ifconfig_{}", device.replace(['.', '-'], "_"));
    let before = options_before(&variable);
    entry("FreeBSD /etc/rc.conf", format!("{variable}=\"{before} {option}\""))
}

/// What `variable` of rc.conf is so far. While it is not set, `ifconfig_DEFAULT` counts (network.subr `get_if_var`), and
/// a line that sets it without that takes away the address of such an interface.
pub fn options_before(variable: &str) -> String {
    format!("${{{variable}-${{ifconfig_DEFAULT}}}}")
}

/// A kernel parameter.
pub fn sysctl_conf(name: &str, value: &str) -> Permanent {
    entry("FreeBSD /etc/sysctl.conf", format!("{name}={value}"))
}
