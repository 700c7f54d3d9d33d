//! The settings of a host as facts, with the names and units of those that goodput reads on its own host. No counters: read
//! at another time than the measurement's, they would show that nothing happened.

use std::net::IpAddr;

use goodput_model::{EndName, HARDWARE, KERNEL_SETTINGS, SPEED_FROM_BELOW, SettingRef, Snapshot};
use goodput_settings::cpus;
use serde_json::Value;

use super::row::{At, Row};
use super::{ethtool, governor, link, shaper};
use crate::command::Command;
use crate::error::RemoteError;
use crate::look::Look;
use crate::shell::Shell;

/// Areas of facts about a device.
const OF_DEVICE: [&str; 8] =
    ["link", "offload", "ring", "channels", "coalescing", "napi", "qdisc", "steering"];

/// Counters among the facts of a queueing discipline.
const COUNTERS: [&str; 4] = ["sent_bytes", "drops", "overlimits", "direct_packets"];

/// What a setting's value is as a fact.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Count,
    /// `on` and `off` as 1 and 0.
    Flag,
}

/// Settings whose facts have another name or form: setting, fact, form.
const NAMED: [(&str, &str, Form); 12] = [
    ("ring.rx", "ring.rx_frames", Form::Count),
    ("ring.tx", "ring.tx_frames", Form::Count),
    ("channels.rx", "channels.rx", Form::Count),
    ("channels.tx", "channels.tx", Form::Count),
    ("channels.combined", "channels.combined", Form::Count),
    ("coalescing.rx_usecs", "coalescing.rx_us", Form::Count),
    ("coalescing.rx_frames", "coalescing.rx_frames", Form::Count),
    ("coalescing.tx_usecs", "coalescing.tx_us", Form::Count),
    ("coalescing.adaptive_rx", "coalescing.rx_adaptive", Form::Text),
    ("napi.gro_flush_timeout", "napi.gro_flush_timeout_ns", Form::Count),
    ("napi.defer_hard_irqs", "napi.defer_hard_irqs", Form::Count),
    ("napi.threaded", "napi.threaded", Form::Flag),
];

/// The maxima that drivers report, with the settings that they bound.
const MOST: [(&str, &str); 5] = [
    ("ring.rx", "ring.rx_max_frames"),
    ("ring.tx", "ring.tx_max_frames"),
    ("channels.rx", "channels.rx_max"),
    ("channels.tx", "channels.tx_max"),
    ("channels.combined", "channels.combined_max"),
];

/// The settings of the host, and of the device through which packets leave `towards` an address.
pub(super) fn facts(
    shell: &mut dyn Shell,
    towards: Option<IpAddr>,
) -> Result<Snapshot, RemoteError> {
    // One report of ethtool has many settings.
    let shell = &mut Look::new(shell);
    let mut facts = Snapshot::default();
    parameters(shell, &mut facts)?;
    governor(shell, &mut facts)?;
    cpus(shell, &mut facts)?;
    let device = match towards {
        Some(address) => unless_lost(shaper::device(shell, address))?,
        None => Err("the address at the other end of the path is unknown".into()),
    };
    match (device, towards) {
        (Ok(device), Some(address)) => {
            of_link(shell, &device, &mut facts)?;
            of_driver(shell, &device, &mut facts)?;
            steering(shell, &device, &mut facts)?;
            of_queue(shell, address, &mut facts)?;
        }
        (Err(why), _) => OF_DEVICE.iter().for_each(|area| facts.lacks(*area, why.as_str())),
        (Ok(_), None) => {}
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

/// All parameters by one command. It prints the others if the kernel lacks some.
fn parameters(shell: &mut dyn Shell, facts: &mut Snapshot) -> Result<(), RemoteError> {
    let names = KERNEL_SETTINGS.iter().copied().map(String::from);
    let output = shell.run(&Command::new("sysctl", ["-e"]).args(names))?;
    for line in output.stdout.lines() {
        let Some((name, value)) = line.split_once(" =") else { continue };
        if KERNEL_SETTINGS.contains(&name) {
            let value: Vec<&str> = value.split_whitespace().collect();
            facts.put(format!("sysctl.{name}"), value.join(" ").as_str());
        }
    }
    for name in KERNEL_SETTINGS {
        let name = format!("sysctl.{name}");
        if facts.get(&name).is_err() {
            facts.lacks(name, "`sysctl` there does not print it");
        }
    }
    Ok(())
}

fn governor(shell: &mut dyn Shell, facts: &mut Snapshot) -> Result<(), RemoteError> {
    match setting(shell, governor::GOVERNOR.id, None, governor::GOVERNOR)? {
        Ok(governors) => facts.put("frequency.governor", governors.replace(' ', ", ").as_str()),
        Err(why) => facts.lacks("frequency.governor", why),
    }
    Ok(())
}

/// How many CPUs are online (Documentation/admin-guide/cputopology.rst).
fn cpus(shell: &mut dyn Shell, facts: &mut Snapshot) -> Result<(), RemoteError> {
    const COUNT: &str = "cpu.count";
    let command = Command::new("cat", ["/sys/devices/system/cpu/online"]);
    let printed = unless_lost(shell.output(&command))?;
    match printed.map(|text| cpus::parse(text.trim())) {
        Ok(Some(cpus)) => facts.put(COUNT, cpus.len() as u64),
        Ok(None) => facts.lacks(COUNT, format!("`{}` there prints no CPUs", command.shown())),
        Err(why) => facts.lacks(COUNT, why),
    }
    Ok(())
}

/// The CPUs to which the first receive queue hands its packets on, as the kernel's own mask.
fn steering(shell: &mut dyn Shell, device: &str, facts: &mut Snapshot) -> Result<(), RemoteError> {
    const MASK: &str = "steering.rps_mask";
    let Some((name, row)) = super::rows().find(|(id, _)| *id == "rps.cpus") else { return Ok(()) };
    match setting(shell, name, Some(device), row)? {
        Ok(masks) => facts.put(MASK, masks.split(' ').next().unwrap_or_default()),
        Err(why) => facts.lacks(MASK, why),
    }
    Ok(())
}

/// The value of a setting, or why it has none.
fn setting(
    shell: &mut dyn Shell,
    name: &str,
    device: Option<&str>,
    row: &dyn Row,
) -> Result<Result<String, String>, RemoteError> {
    let scope = device.map(Into::into);
    let setting = &SettingRef { end: EndName::Near, name: name.into(), scope };
    unless_lost(row.read(&mut At { shell, setting }))
}

/// What `ip -j -d link` prints of the device (ip-link(8)).
fn of_link(shell: &mut dyn Shell, device: &str, facts: &mut Snapshot) -> Result<(), RemoteError> {
    facts.put("link.device", device);
    let command = Command::new("ip", ["-j", "-d", "link", "show", "dev", device]);
    let links = match unless_lost(link::json(shell, &command))? {
        Ok(links) => links,
        Err(why) => {
            facts.lacks("link", why);
            return Ok(());
        }
    };
    let none = Value::Null;
    let link = links.first().unwrap_or(&none);
    let kind = match link["linkinfo"]["info_kind"].as_str() {
        Some(kind) => kind,
        None if link["link_type"] == "loopback" => "loopback",
        None => HARDWARE,
    };
    facts.put("link.kind", kind);
    for (key, name) in [
        ("mtu", "link.mtu_bytes"),
        ("txqlen", "link.tx_queue_len"),
        ("gso_max_size", "link.gso_max_bytes"),
        ("gso_max_segs", "link.gso_max_segments"),
    ] {
        match link[key].as_u64() {
            Some(number) => facts.put(name, number),
            None => facts.lacks(name, "`ip` there does not print it"),
        }
    }
    speed(shell, (device, kind), facts)
}

/// The speed of a link whose kind has one, Mbit/s in the file (Documentation/ABI/testing/sysfs-class-net); -1 if it is unknown.
fn speed(
    shell: &mut dyn Shell,
    (device, kind): (&str, &str),
    facts: &mut Snapshot,
) -> Result<(), RemoteError> {
    const NAME: &str = "link.speed_bits_per_s";
    if kind != HARDWARE && !SPEED_FROM_BELOW.contains(&kind) {
        facts.lacks(
            NAME,
            format!("{device} is a virtual device ({kind}) without a speed of its own"),
        );
        return Ok(());
    }
    let read = shell.run(&Command::new("cat", [format!("/sys/class/net/{device}/speed")]))?;
    match read.stdout.trim().parse::<u64>() {
        Ok(mbit @ 1..) => facts.put(NAME, mbit.saturating_mul(1_000_000)),
        _ => facts.lacks(NAME, "it can't be read there, or its driver does not know it"),
    }
    Ok(())
}

/// What ethtool(8) and /sys say of the device.
fn of_driver(shell: &mut dyn Shell, device: &str, facts: &mut Snapshot) -> Result<(), RemoteError> {
    let offloads = ethtool::ROWS.iter().filter(|row| row.id.starts_with("offload."));
    for row in offloads {
        match setting(shell, row.id, Some(device), row)? {
            Ok(value) => facts.put(row.id, value.as_str()),
            Err(why) => facts.lacks(row.id, why),
        }
    }
    for (name, fact, form) in NAMED {
        let Some((_, row)) = super::rows().find(|(id, _)| *id == name) else { continue };
        let value = setting(shell, name, Some(device), row)?;
        match value.as_deref().map(|value| (form, value, value.parse::<u64>())) {
            Ok((Form::Text, value, _)) => facts.put(fact, value),
            Ok((Form::Flag, value, Err(_))) => facts.put(fact, u64::from(value == "on")),
            Ok((_, _, Ok(count))) => facts.put(fact, count),
            Ok((Form::Count, ..)) => facts.lacks(fact, "it is no number there"),
            Err(why) => facts.lacks(fact, why),
        }
    }
    for (name, fact) in MOST {
        match ethtool::most(shell, name, device) {
            Some(most) => facts.put(fact, u64::from(most)),
            None => facts.lacks(fact, "the driver reports none"),
        }
    }
    Ok(())
}

/// The queueing discipline, as it is configured.
fn of_queue(
    shell: &mut dyn Shell,
    towards: IpAddr,
    facts: &mut Snapshot,
) -> Result<(), RemoteError> {
    match unless_lost(shaper::shaper(shell, towards))? {
        Ok(shaper) => {
            let is_counter =
                |name: &str| name.rsplit('.').next().is_some_and(|last| COUNTERS.contains(&last));
            facts.facts.extend(shaper.facts.into_iter().filter(|(name, _)| !is_counter(name)));
            facts.missing.extend(shaper.missing);
        }
        Err(why) => facts.lacks("qdisc", why),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    const LINK: &str = r#"[{"ifname":"eth0","link_type":"ether","mtu":1500,"txqlen":1000,
        "gso_max_size":65536,"gso_max_segs":65535}]"#;
    const RINGS: &str = "Pre-set maximums:\nRX:\t4096\nTX:\t4096\n\
        Current hardware settings:\nRX:\t256\nTX:\tn/a\n";

    const PRINTED: &str =
        "net.ipv4.tcp_rmem = 4096\t131072\t262144\nnet.core.default_qdisc =\nother.name = 1\n";

    fn read(towards: Option<IpAddr>) -> Snapshot {
        let asked = format!("sysctl -e {}", KERNEL_SETTINGS.join(" "));
        let mut shell = Scripted::default()
            .prints(&asked, PRINTED)
            .prints("ip route get 10.9.0.7", "10.9.0.7 dev eth0 src 10.9.0.1\n")
            .prints("ip -j -d link show dev eth0", LINK)
            .prints("cat /sys/class/net/eth0/speed", "1000\n")
            .prints("ethtool -k eth0", "tcp-segmentation-offload: off\n\ttx-tcp-segmentation: off\n")
            .prints("cat /sys/devices/system/cpu/online", "0-2,8\n")
            .prints("ethtool -g eth0", RINGS)
            .prints("ethtool -c eth0", "Adaptive RX: off  TX: n/a\nrx-usecs:\t3\nrx-frames:\t0\n")
            .prints(
                "tc -s -d qdisc show dev eth0",
                "qdisc pfifo_fast 0: root refcnt 2\n Sent 9 bytes 1 pkt (dropped 3, overlimits 0 requeues 0) \n",
            );
        facts(&mut shell, towards).unwrap()
    }

    #[test]
    fn facts_have_the_names_and_units_of_those_of_this_host() {
        let facts = read(Some(IpAddr::from([10, 9, 0, 7])));
        for (name, text) in [
            ("sysctl.net.ipv4.tcp_rmem", "4096 131072 262144"),
            ("sysctl.net.core.default_qdisc", ""),
            ("link.device", "eth0"),
            ("link.kind", "hardware"),
            ("offload.tso", "off"),
            ("coalescing.rx_adaptive", "off"),
            ("qdisc.kind", "pfifo_fast"),
        ] {
            assert_eq!(facts.text(name), Ok(text), "{name}");
        }
        for (name, count) in [
            ("link.mtu_bytes", 1500),
            ("link.tx_queue_len", 1000),
            ("link.speed_bits_per_s", 1_000_000_000),
            ("ring.rx_frames", 256),
            ("ring.rx_max_frames", 4096),
            ("coalescing.rx_us", 3),
            ("cpu.count", 4),
        ] {
            assert_eq!(facts.count(name), Ok(count), "{name}");
        }
    }

    #[test]
    fn a_virtual_device_has_no_speed_whatever_it_claims() {
        let speed = |kind: &str| {
            let mut shell = Scripted::default().prints("cat /sys/class/net/v0/speed", "10000\n");
            let mut facts = Snapshot::default();
            super::speed(&mut shell, ("v0", kind), &mut facts).unwrap();
            facts.count("link.speed_bits_per_s")
        };
        assert_eq!(speed("vlan"), Ok(10_000_000_000));
        assert!(speed("veth").unwrap_err().to_string().contains("(veth)"));
    }

    #[test]
    fn what_is_not_printed_is_missing_and_counters_are_left_out() {
        let facts = read(Some(IpAddr::from([10, 9, 0, 7])));
        let lacks = ["ring.tx_frames", "offload.gro", "napi.threaded", "steering.rps_mask"];
        for name in lacks.into_iter().chain(["sysctl.net.ipv4.tcp_sack"]) {
            assert!(facts.get(name).is_err() && facts.missing.contains_key(name), "{name}");
        }
        for name in ["qdisc.drops", "qdisc.sent_bytes", "sysctl.other.name"] {
            assert!(facts.get(name).is_err(), "{name}");
        }
        let nowhere = read(None);
        assert!(nowhere.text("sysctl.net.ipv4.tcp_rmem").is_ok());
        assert!(nowhere.text("link.device").unwrap_err().to_string().contains("is unknown"));
    }
}
