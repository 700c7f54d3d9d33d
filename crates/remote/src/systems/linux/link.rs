//! Numbers of a link, as `ip -j link` prints them (ip-link(8)).

use serde_json::Value;

use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;
use crate::shell::Shell;
use goodput_model::SettingRef;
use goodput_settings::keeping::Device;
use goodput_settings::{rules, value};

/// One number.
pub(super) struct Number {
    /// The setting.
    pub(super) id: &'static str,
    /// Its key in JSON.
    key: &'static str,
    /// Its name in a change.
    word: &'static str,
    least: u32,
}

/// The least MTU with which IPv6 keeps its addresses is 1280 (RFC 8200, 5); a queue of 0 would pass nothing in some
/// disciplines and everything in others.
pub(super) static ROWS: [Number; 2] = [
    Number { id: "link.mtu", key: "mtu", word: "mtu", least: 1280 },
    Number { id: "link.txqueuelen", key: "txqlen", word: "txqueuelen", least: 1 },
];

/// The names of all devices except loopback.
pub(super) fn names(shell: &mut dyn Shell) -> Result<Vec<String>, RemoteError> {
    let command = Command::new("ip", ["-j", "link", "show"]);
    let links = json(shell, &command)?;
    let names = links.iter().filter_map(|link| link["ifname"].as_str());
    // JSON can represent any character, but a setting can't name a device with control characters.
    let plain = |name: &&str| *name != "lo" && !name.chars().any(char::is_control);
    Ok(names.filter(plain).map(str::to_owned).collect())
}

/// What ip(8) prints in JSON.
pub(super) fn json(shell: &mut dyn Shell, command: &Command) -> Result<Vec<Value>, RemoteError> {
    let printed = shell.output(command)?;
    serde_json::from_str(&printed).map_err(|error| {
        let line = printed.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
        super::row::misread(shell.host(), command, line, &format!("a JSON array ({error})"))
    })
}

/// One device, as far as others depend on it.
pub(super) struct Link {
    name: String,
    /// The device below, for a VLAN, macvlan and the like.
    lower: Option<String>,
    /// The bridge or bond that the device belongs to.
    master: Option<String>,
    kind: String,
}

/// Every device.
fn links(shell: &mut dyn Shell) -> Result<Vec<Link>, RemoteError> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let links = json(shell, &Command::new("ip", ["-j", "-d", "link", "show"]))?;
    let links = links.iter().filter_map(|link| {
        Some(Link {
            name: text(&link["ifname"])?,
            lower: text(&link["link"]),
            master: text(&link["master"]),
            kind: text(&link["linkinfo"]["info_kind"]).unwrap_or_default(),
        })
    });
    Ok(links.collect())
}

/// The devices whose MTU and offloads the kernel may change along with those of `device`: devices on top of it, its
/// bridge or bond, and the members of a bond; and recursively those of each.
pub(super) fn related(shell: &mut dyn Shell, device: &str) -> Result<Vec<String>, RemoteError> {
    let links = links(shell)?;
    let mut found = vec![device.to_owned()];
    let mut next = 0;
    while let Some(name) = found.get(next).cloned() {
        next += 1;
        for link in &links {
            if depends(link, &name, &links) && !found.contains(&link.name) {
                found.push(link.name.clone());
            }
        }
    }
    found.remove(0);
    Ok(found)
}

/// Whether a change of the device `name` may reach `link`.
fn depends(link: &Link, name: &str, links: &[Link]) -> bool {
    let of = |name: &str| links.iter().find(|link| link.name == name);
    // The other end of a veth is not part of it (link_netnsid or not).
    let stands_on = link.kind != "veth" && link.lower.as_deref() == Some(name);
    let is_master = of(name).is_some_and(|own| own.master.as_deref() == Some(&*link.name));
    let is_shared = of(name).is_some_and(|own| matches!(&*own.kind, "bond" | "team"));
    stands_on || is_master || is_shared && link.master.as_deref() == Some(name)
}

/// What is wrong with the device of a setting, if that is why something failed: programs have many words for it.
pub(super) fn explained(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    error: RemoteError,
) -> RemoteError {
    let of_route = setting.name.starts_with("route.");
    let scope = setting.scope.as_deref().filter(|_| !of_route);
    let (Some(scope), false) = (scope, matches!(error, RemoteError::Lost { .. })) else {
        return error;
    };
    // No name of a device has a colon (net/core/dev.c `dev_valid_name`).
    let device = scope.split_once(':').map_or(scope, |(device, _)| device);
    match links(shell) {
        Ok(links) if links.iter().all(|link| link.name != device) => {
            let names = links.into_iter().map(|link| link.name);
            RemoteError::no_device(shell.host(), setting, device, names)
        }
        _ => error,
    }
}

/// Why a device does not exist, if so.
pub(super) fn gone(shell: &mut dyn Shell, device: &str) -> Result<Option<String>, RemoteError> {
    let is_there = links(shell)?.iter().any(|link| link.name == device);
    Ok((!is_there).then(|| format!("the device {device} is gone")))
}

/// What the files that keep values need to know of a device; `None` if there is none.
pub(super) fn device(shell: &mut dyn Shell, name: &str) -> Result<Option<Device>, RemoteError> {
    let links = json(shell, &Command::new("ip", ["-j", "link", "show", "dev", name]))?;
    let Some(link) = links.first() else { return Ok(None) };
    let index = link["ifindex"].as_u64().and_then(|index| index.try_into().ok());
    let is_ethernet =
        |address: &&str| address.len() == 17 && address.split(':').all(|byte| byte.len() == 2);
    let address = link["address"].as_str().filter(is_ethernet).map(str::to_owned);
    let address = address.filter(|_| link["link_type"] != "loopback");
    Ok(index.map(|index| Device { index, name: name.into(), address }))
}

/// Refuses a device that /sys does not show: /sys belongs to the network namespace in which it was mounted, and may show
/// another device of this name.
pub(super) fn check_sysfs(at: &mut At<'_>) -> Result<(), RemoteError> {
    let command = Command::new("ip", ["-j", "link", "show", "dev", at.scope()]);
    let links = json(at.shell, &command)?;
    let none = Value::Null;
    let link = links.first().unwrap_or(&none);
    let index = link["ifindex"].as_u64().map(|index| index.to_string()).unwrap_or_default();
    let own = [&*index, link["address"].as_str().unwrap_or_default()];
    let files = ["ifindex", "address"].map(|name| format!("/sys/class/net/{}/{name}", at.scope()));
    let shown = at.shell.run(&Command::new("cat", files))?;
    let lines: Vec<&str> = shown.stdout.lines().map(str::trim).collect();
    match shown.status == 0 && lines == own {
        true => Ok(()),
        false => Err(at.refused("/sys there shows another network namespace, without this device")),
    }
}

impl Number {
    /// The driver's smallest and largest value, as far as the driver reports them.
    fn limits(&self, at: &mut At<'_>) -> Result<[Option<u32>; 2], RemoteError> {
        if self.key != "mtu" {
            return Ok([None; 2]);
        }
        let command = Command::new("ip", ["-j", "-d", "link", "show", "dev", at.scope()]);
        let links = json(at.shell, &command)?;
        let of = |key: &str| -> Option<u32> { links.first()?[key].as_u64()?.try_into().ok() };
        // 0: the driver does not report it (`dev_validate_mtu`, net/core/dev.c).
        Ok(["min_mtu", "max_mtu"].map(|key| of(key).filter(|limit| *limit > 0)))
    }

    fn show(&self, at: &At<'_>) -> Command {
        // In pretty output, each member has its own line.
        Command::new("ip", ["-j", "-p", "link", "show", "dev", at.scope()])
    }
}

impl Row for Number {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let command = self.show(at);
        let links = json(at.shell, &command)?;
        match &links[..] {
            [link] if link[self.key].as_u64().is_some() => Ok(link[self.key].to_string()),
            _ => Err(at.misread(
                &command,
                &Value::from(links).to_string(),
                &format!("one link with a number {:?}", self.key),
            )),
        }
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        // A value that we would not write could not be put back either.
        let now = self.read(at)?;
        let range = self.least..=i32::MAX as u32;
        value::number(at.setting, &now, &range)?;
        let [least, most] = self.limits(at)?;
        let range = self.least.max(least.unwrap_or(0))..=most.unwrap_or(i32::MAX as u32);
        let number = match self.key {
            "mtu" => rules::mtu(at.setting, value, &range),
            _ => value::number(at.setting, value, &range),
        };
        Ok(number?.to_string())
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        Ok(vec![Command::new("ip", ["link", "set", "dev", at.scope(), self.word, value])])
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let line =
            format!("[[:blank:]]*\"{}\": {},\\{{0,1\\}}", self.key, Condition::literal(value));
        Ok(Condition::line(self.show(at), line))
    }

    fn of_device(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use crate::system::System;

    const SHOW: &str = "ip -j -p link show dev eth0";

    #[test]
    fn a_number_is_read_from_json_and_nothing_else() {
        let setting = "link.mtu@eth0".parse().unwrap();
        let read = |printed: &str| {
            let mut shell = Scripted::default().prints(SHOW, printed);
            ROWS[0].read(&mut At { shell: &mut shell, setting: &setting })
        };
        assert_eq!(read("[ {\n \"ifname\": \"eth0\",\n \"mtu\": 1500\n} ]\n").unwrap(), "1500");
        let ranged = |value: &str| {
            let mut shell = Scripted::default().prints(SHOW, "[{\"mtu\":1500}]").prints(
                "ip -j -d link show dev eth0",
                "[{\"mtu\":1500,\"min_mtu\":68,\"max_mtu\":9000}]",
            );
            ROWS[0].normalise(&mut At { shell: &mut shell, setting: &setting }, value)
        };
        assert_eq!(ranged("9000").unwrap(), "9000");
        assert!(ranged("9001").unwrap_err().to_string().contains("1280 to 9000"));
        assert!(ranged("1000").unwrap_err().to_string().contains("drops IPv6 addresses"));
        for wrong in ["", "2: eth0: mtu 1500", "[]", "[{\"mtu\":\"1500\"}]", "[{},{}]"] {
            assert!(matches!(read(wrong), Err(RemoteError::NotUnderstood { .. })), "{wrong}");
        }
    }

    #[test]
    fn a_device_that_is_missing_is_reported_as_on_this_host() {
        let setting = |name: &str| -> SettingRef { name.parse().unwrap() };
        let links = "[{\"ifname\":\"lo\"},{\"ifname\":\"eth0\"}]";
        let mut shell = Scripted::default()
            .prints("ip -j -d link show", links)
            .fails("ip -j -p link show dev x", 1, "Device \"x\" does not exist.")
            .fails("ethtool -k x", 1, "netlink error: No such device")
            .fails("tc qdisc show dev x", 1, "Cannot find device \"x\"")
            .fails("ethtool -k eth0", 1, "netlink error: Operation not supported");
        let linux = crate::systems::linux::Linux;
        for name in ["link.mtu@x", "offload.tso@x", "qdisc.kind@x", "napi.threaded@x"] {
            let words = "there is no device x at scripted, only eth0, lo; name one of these";
            let read = linux.read(&mut shell, &setting(name)).unwrap_err();
            assert_eq!(read.to_string(), format!("{name}: {words}"));
            let refused = linux.normalise(&mut shell, &setting(name), "on").unwrap_err();
            assert_eq!(refused.to_string(), read.to_string());
        }
        let other = linux.read(&mut shell, &setting("offload.tso@eth0")).unwrap_err();
        assert!(other.to_string().contains("Operation not supported"), "{other}");
    }

    #[test]
    fn what_stands_on_a_device_or_is_bound_to_it_is_related() {
        let links = r#"[{"ifname":"a"},{"ifname":"a.5","link":"a","linkinfo":{"info_kind":"vlan"}},
            {"ifname":"br","linkinfo":{"info_kind":"bridge"}},{"ifname":"v0","link":"a","linkinfo":{"info_kind":"veth"}},
            {"ifname":"bond","master":"br","linkinfo":{"info_kind":"bond"}},{"ifname":"b","master":"bond"},
            {"ifname":"c","master":"bond"}]"#;
        let related = |device: &str| {
            let mut shell = Scripted::default().prints("ip -j -d link show", links);
            related(&mut shell, device).unwrap()
        };
        assert_eq!(related("a"), ["a.5"]);
        assert_eq!(related("b"), ["bond", "br", "c"], "a bond passes it on to all that it has");
        assert_eq!(related("br"), [""; 0]);
        let mut shell = Scripted::default().prints("ip -j -d link show", links);
        assert!(
            gone(&mut shell, "a").unwrap().is_none() && gone(&mut shell, "x").unwrap().is_some()
        );
    }
}
