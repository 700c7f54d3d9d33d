//! Which settings of this kernel others can reach, and with which values.

use std::collections::BTreeSet;

use super::*;
use crate::settings;

fn all() -> AllowedSettings {
    AllowedSettings::new(vec!["*".parse().unwrap()])
}

fn setting(text: &str) -> SettingRef {
    let (name, scope) = match text.split_once('@') {
        Some((name, scope)) => (name, Some(scope.into())),
        None => (text, None),
    };
    SettingRef { end: goodput_model::EndName::Near, name: name.into(), scope }
}

/// Every file below a directory.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path(), found),
            _ => found.push(entry.path()),
        }
    }
}

#[test]
fn nothing_of_this_kernel_that_is_not_on_the_list_is_read_or_changed() {
    let mut found = Vec::new();
    for folder in ["net", "vm", "kernel", "fs", "sunrpc"] {
        files(&Path::new("/proc/sys").join(folder), &mut found);
    }
    let listed: BTreeSet<_> = ALL.iter().map(|entry| entry.name).collect();
    let (mut refused, mut allowed) = (0, 0);
    for file in found {
        let below = file.strip_prefix("/proc/sys").unwrap().to_str().unwrap();
        // A dot within a part of the path is written as a slash (sysctl.d(5)).
        let dotted: String = below
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect();
        for name in [format!("sysctl.{dotted}"), format!("sysctl.{below}")] {
            let (reads, changes) =
                (all().check_read(&setting(&name)), all().check_apply(&setting(&name), "1"));
            if listed.contains(format!("sysctl.{dotted}").as_str()) {
                assert!(reads.is_ok(), "{name}");
                allowed += 1;
            } else {
                assert!(matches!(reads, Err(SettingError::NotForOthers { .. })), "{name} is read");
                assert!(
                    matches!(changes, Err(SettingError::NotForOthers { .. })),
                    "{name} changes"
                );
                refused += 1;
            }
        }
    }
    assert!(refused > 50 && allowed > 10, "{refused} refused, {allowed} allowed");
}

#[test]
fn what_guards_the_host_or_is_secret_is_named_by_no_entry() {
    for part in [
        "min_free_kbytes",
        "mmap_min_addr",
        "bpf_jit",
        "route_localnet",
        "bridge-nf",
        "fastopen",
        "stable_secret",
        "rss_key",
        "rp_filter",
        "accept_",
        "forward",
        "syncookies",
        "kernel.",
        "unprivileged",
        "seed",
    ] {
        // How a device treats forwarded packets guards nothing.
        let of_host = |name: &str| !name.starts_with("offload.");
        assert!(!ALL.iter().any(|e| of_host(e.name) && e.name.contains(part)), "{part}");
    }
}

#[test]
fn values_out_of_bounds_are_refused() {
    for (name, good, bad) in [
        ("sysctl.net.ipv4.tcp_rmem", "4096 131072 33554432", "4096 131072 2147483647"),
        ("sysctl.net.ipv4.tcp_rmem", "4096 4096 4096", "1 1 1"),
        ("sysctl.net/ipv4/tcp_sack", "0", "2"),
        ("sysctl.net.ipv4.tcp_sack", "0", ""),
        ("sysctl.net.ipv4.tcp_congestion_control", "reno", "no_such_module"),
        ("link.mtu@lo", "1500", "600"),
        ("qdisc.kind", "pfifo_fast", "no_such_kind"),
        ("qdisc.kind", "default", "../tcp_bbr"),
        ("qdisc.tbf.rate", "100mbit", "9600bit"),
        ("qdisc.kind", "bfifo", "noqueue"),
        // The loopback's packets are up to 65536 bytes long.
        ("qdisc.tbf.burst@lo", "256K", "8G"),
        ("qdisc.tbf.burst@lo", "256K", "1"),
        ("qdisc.tbf.limit@lo", "256K", "1500"),
        ("qdisc.htb.bursts@lo:1:10", "256K 256K", "256K 1"),
        ("qdisc.fifo.limit@lo", "256K", "1"),
        ("route.congctl", "default", "no_such_module"),
    ] {
        assert!(all().check_apply(&setting(name), good).is_ok(), "{name}={good}");
        let refused = all().check_apply(&setting(name), bad).unwrap_err();
        assert!(refused.not_permitted(), "{name}={bad}: {refused}");
    }
    for name in ["sysctl.net.core.default_qdisc", "sysctl.net.ipv4.tcp_mem"] {
        assert!(all().check_read(&setting(name)).is_ok());
        assert!(all().check_apply(&setting(name), "default").is_err());
    }
}

#[test]
fn only_what_the_operator_names_is_reached() {
    let none = AllowedSettings::default();
    assert!(none.check_read(&setting("sysctl.net.ipv4.tcp_rmem")).is_err());
    let one = AllowedSettings::new(vec!["sysctl.net.ipv4.tcp_rmem".parse().unwrap()]);
    // However it is spelled.
    assert!(one.check_apply(&setting("sysctl.net/ipv4/tcp_rmem"), "4096 4096 4096").is_ok());
    let other = one.check_apply(&setting("sysctl.net.ipv4.tcp_wmem"), "4096 4096 4096");
    assert!(other.unwrap_err().to_string().contains("--allow-settings"));
}

#[test]
fn every_entry_is_a_setting_of_a_machine_and_every_such_setting_is_an_entry() {
    let registered: BTreeSet<_> =
        settings::ALL.iter().filter(|s| !s.is_plan() && s.id != "sysctl").map(|s| s.id).collect();
    let listed: BTreeSet<_> =
        ALL.iter().map(|entry| entry.name).filter(|name| !name.starts_with("sysctl.")).collect();
    assert_eq!(registered, listed);
    let names: BTreeSet<_> = ALL.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), ALL.len(), "a name is there twice");
    assert!(ALL.iter().all(|entry| !entry.why.is_empty()));
}

#[test]
fn what_is_not_work_conserving_is_refused_though_the_kernel_has_it() {
    for kind in ["tbf", "htb", "ingress", "clsact", "plug", "netem", "etf", "taprio"] {
        let refused = all().check_apply(&setting("qdisc.kind@lo"), kind).unwrap_err();
        assert!(refused.to_string().contains("fq_codel"), "{kind}: {refused}");
    }
}

#[test]
fn the_least_of_a_queue_follows_its_device_and_its_unit() {
    crate::testing::in_scene(|_| {
        let check = |name: &str, value| all().check_apply(&setting(name), value);
        // 9100 bytes is the MTU of eth0 here; eth3 has a queue of packets.
        assert!(check("qdisc.tbf.burst@eth0", "18244").is_ok());
        assert!(check("qdisc.tbf.burst@eth0", "18243").unwrap_err().to_string().contains("18244"));
        assert!(check("qdisc.fifo.limit@eth3", "10").is_ok());
        assert!(check("qdisc.fifo.limit@eth3", "9").is_err());
        let unknown = check("qdisc.tbf.burst@eth9", "1M").unwrap_err().to_string();
        assert!(unknown.contains("its minimum is unknown"), "{unknown}");
    });
}

#[test]
fn frames_longer_than_a_queue_of_their_device_are_refused() {
    crate::testing::in_scene(|_| {
        let check = |name: &str, value| all().check_apply(&setting(name), value);
        // The bucket of eth0 is far too small for its 9100 bytes: shorter is better, longer is not.
        assert!(check("link.mtu@eth0", "1500").is_ok());
        let refused = check("link.mtu@eth0", "9200").unwrap_err().to_string();
        assert!(refused.contains("two frames would take 18444"), "{refused}");
        // eth2 has no such queue, until somebody gives it one that is just long enough for two of 9200 bytes.
        assert!(check("link.mtu@eth2", "65535").is_ok());
        let words = ["qdisc", "replace", "dev", "eth2", "root", "bfifo", "limit", "18444"];
        assert!(std::process::Command::new("tc").args(words).status().unwrap().success());
        assert!(check("link.mtu@eth2", "9200").is_ok());
        assert!(check("link.mtu@eth2", "9201").is_err());
        let unknown = check("link.mtu@eth9", "1500").unwrap_err().to_string();
        assert!(unknown.contains("is unknown"), "{unknown}");
    });
}
