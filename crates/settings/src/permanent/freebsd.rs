//! The same on FreeBSD: rc.conf(5), sysctl.conf(5), loader.conf(5).

use goodput_model::{Permanent, SettingRef};

use super::{device, entry};

/// An option of ifconfig(8) that the interface gets at every start. sh(1) reads rc.conf, so
/// the line can add to the lines above it.
pub fn interface_option(device: &str, option: &str) -> Permanent {
    let variable = format!("ifconfig_{}", device.replace(['.', '-'], "_"));
    entry("FreeBSD /etc/rc.conf", format!("{variable}=\"${{{variable}}} {option}\""))
}

/// A parameter that the loader sets before the kernel starts.
pub(crate) fn loader_conf(line: impl Into<String>) -> Permanent {
    entry("FreeBSD /boot/loader.conf", line)
}

/// A kernel parameter.
pub fn sysctl_conf(name: &str, value: &str) -> Permanent {
    entry("FreeBSD /etc/sysctl.conf", format!("{name}={value}"))
}

/// The setting's device as sysctl(8) names it: `em.0` for em0.
pub(crate) fn unit(setting: &SettingRef) -> String {
    let device = device(setting);
    let driver = device.trim_end_matches(|c: char| c.is_ascii_digit());
    format!("{driver}.{}", &device[driver.len()..])
}
