//! The settings of a host as facts: those that Linux has too by the same names, the others by the names of their settings.

use std::net::IpAddr;

use goodput_model::Snapshot;

use super::kinds;
use super::text::{NotUnderstood, number, read};
use crate::command::Command;
use crate::error::RemoteError;
use crate::shell::Shell;
use crate::system::Listed;

/// The settings of the host, and of the interface through which packets leave `towards` an address.
pub(super) fn facts(
    shell: &mut dyn Shell,
    towards: Option<IpAddr>,
) -> Result<Snapshot, RemoteError> {
    let mut facts = Snapshot::default();
    match unless_lost(kinds::parameters(shell))? {
        Ok(listed) => listed.iter().for_each(|one| facts.put(&*one.setting, &*one.value)),
        Err(why) => facts.lacks("sysctl", why),
    }
    match unless_lost(cpus(shell))? {
        Ok(count) => facts.put("cpu.count", count),
        Err(why) => facts.lacks("cpu.count", why),
    }
    let device = match towards {
        Some(address) => unless_lost(interface_towards(shell, address))?,
        None => Err("the address at the other end of the path is unknown".into()),
    };
    let of_interface = match device {
        Ok(device) => {
            facts.put("link.device", device.as_str());
            unless_lost(kinds::of_interface(shell, &device))?
        }
        Err(why) => Err(why),
    };
    match of_interface {
        Ok(listed) => listed.iter().for_each(|one| put(&mut facts, one)),
        Err(why) => {
            for area in ["link", "offload", "polling"] {
                facts.lacks(area, why.as_str());
            }
        }
    }
    Ok(facts)
}

/// The value, or why it is missing; only a lost connection is an error.
fn unless_lost<T>(read: Result<T, RemoteError>) -> Result<Result<T, String>, RemoteError> {
    match read {
        Err(lost @ RemoteError::Lost { .. }) => Err(lost),
        other => Ok(other.map_err(|why| why.to_string())),
    }
}

/// A setting of an interface. An interface that can't be polled has no `polling`.
fn put(facts: &mut Snapshot, Listed { setting, value, .. }: &Listed) {
    let name = setting.split_once('@').map_or(&**setting, |(name, _)| name);
    match (name, number(value)) {
        ("link.mtu", Some(mtu)) => facts.put("link.mtu_bytes", mtu),
        ("polling", _) => facts.put("polling.state", &**value),
        _ => facts.put(name, &**value),
    }
}

/// How many CPUs the kernel uses (sysctl(8), `hw.ncpu`).
fn cpus(shell: &mut dyn Shell) -> Result<u64, RemoteError> {
    let command = Command::new("sysctl", ["-n", "hw.ncpu"]);
    read(shell, &command, |text| {
        number(text.trim()).ok_or_else(|| NotUnderstood::new(text, "it is no number of CPUs"))
    })
}

/// The interface of the route to an address (route(8): `  interface: em0`).
fn interface_towards(shell: &mut dyn Shell, towards: IpAddr) -> Result<String, RemoteError> {
    let family = if towards.is_ipv6() { "-inet6" } else { "-inet" };
    let command = Command::new("route", ["-n", "get", family, &towards.to_string()]);
    read(shell, &command, |text| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix("interface: "));
        let first = text.lines().next().unwrap_or_default();
        line.map(|name| name.trim().to_owned())
            .filter(|name| kinds::is_device(name))
            .ok_or_else(|| NotUnderstood::new(first, "it names no interface"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    const ROUTE: &str = "   route to: 192.0.2.9\ndestination: 192.0.2.0\n  interface: em0\n      flags: <UP,DONE>\n";
    const EM0: &str = "em0: flags=8843<UP> metric 0 mtu 1500\n\toptions=1<RXCSUM>\n\
        \tcapabilities=141<RXCSUM,POLLING,TSO4>\n";

    fn host() -> Scripted {
        Scripted::default()
            .prints("sysctl -e kern.polling", "kern.polling.burst_max=150\n")
            .prints("sysctl -n hw.ncpu", "4\n")
            .prints("route -n get -inet 192.0.2.9", ROUTE)
            .prints("ifconfig -m em0", EM0)
    }

    #[test]
    fn settings_of_the_interface_and_the_host_are_facts() {
        let facts = facts(&mut host(), Some(IpAddr::from([192, 0, 2, 9]))).unwrap();
        for (name, text) in [
            ("link.device", "em0"),
            ("polling.state", "off"),
            ("offload.rxcsum", "on"),
            ("offload.tso4", "off"),
            ("sysctl.kern.polling.burst_max", "150"),
        ] {
            assert_eq!(facts.text(name), Ok(text), "{name}");
        }
        assert_eq!(facts.count("link.mtu_bytes"), Ok(1500));
        assert_eq!(facts.count("cpu.count"), Ok(4));
    }

    #[test]
    fn what_is_unknown_is_missing_with_the_reason() {
        let nowhere = facts(&mut host(), None).unwrap();
        assert!(nowhere.text("polling.state").unwrap_err().to_string().contains("is unknown"));
        assert!(nowhere.text("sysctl.kern.polling.burst_max").is_ok());
        let other = Some(IpAddr::from([192, 0, 2, 10]));
        let unanswered = facts(&mut host(), other).unwrap();
        assert!(unanswered.text("link.device").is_err());
    }
}
