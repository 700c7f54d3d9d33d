//! What device polling needs and a host may not have, and what polling can carry (polling(4)).

use super::ifconfig::interface;
use super::mibs::{Limits, Most, NODE};
use super::sysctl;
use super::text::{number, read};
use crate::command::Command;
use crate::error::RemoteError;
use crate::polling::PollingRates;
use crate::shell::Shell;

/// The message for a kernel without the option.
pub(super) const NO_KERNEL_SUPPORT: &str = "its kernel is built without device polling; build one with the lines \
    \"include GENERIC\", \"ident POLLING\", \"options DEVICE_POLLING\" in /usr/src/sys/amd64/conf/POLLING, \
    write kern.hz=\"1000\" into /boot/loader.conf, reboot, and keep polling with \
    ifconfig_em0=\"… polling\" in /etc/rc.conf";

/// Why an interface without the capability can't be polled.
pub(super) fn lacks(shell: &mut dyn Shell, device: &str) -> Result<String, RemoteError> {
    if !has_kernel_support(shell)? {
        return Ok(NO_KERNEL_SUPPORT.replace("em0", device));
    }
    let driver = device.trim_end_matches(|c: char| c.is_ascii_digit());
    Ok(format!(
        "the driver {driver} of this FreeBSD can't poll (no POLLING among the capabilities of `ifconfig -m {device}`), \
         though its kernel could; polling(4) lists the drivers that can"
    ))
}

/// Kernels without `options DEVICE_POLLING` have no such node.
pub(super) fn has_kernel_support(shell: &mut dyn Shell) -> Result<bool, RemoteError> {
    Ok(shell.run(&Command::new("sysctl", ["-N", NODE]))?.status == 0)
}

/// How this host polls `device`; `None` if it does not.
pub(super) fn rates(
    shell: &mut dyn Shell,
    device: &str,
) -> Result<Option<PollingRates>, RemoteError> {
    if !interface(shell, device)?.enabled.contains("POLLING") {
        return Ok(None);
    }
    Ok(Some(PollingRates {
        hz: hz(shell)?,
        burst_max: count(shell, "burst_max")?,
        idle_poll: count(shell, "idle_poll")? != 0,
    }))
}

/// Refuses what the kernel would refuse (`poll_*_sysctl`, sys/kern/kern_poll.c).
pub(super) fn check_limits(
    shell: &mut dyn Shell,
    limits: Limits,
    value: &str,
) -> Result<Result<(), String>, RemoteError> {
    let most = match limits.most {
        Most::Is(number) => number,
        Most::Of(name) => count(shell, name)?,
        Most::Hz => hz(shell)?,
    };
    let is_taken = number(value).is_some_and(|number| (limits.least..=most).contains(&number));
    Ok(if is_taken { Ok(()) } else { Err(format!("it must be {} to {most}", limits.least)) })
}

fn hz(shell: &mut dyn Shell) -> Result<u64, RemoteError> {
    let command = Command::new("sysctl", ["-e", "kern.clockrate"]);
    read(shell, &command, |text| sysctl::hz(&sysctl::value("kern.clockrate", text)?))
}

fn count(shell: &mut dyn Shell, name: &str) -> Result<u64, RemoteError> {
    let oid = format!("{NODE}.{name}");
    read(shell, &Command::new("sysctl", ["-e", &oid]), |text| sysctl::count(&oid, text))
}
