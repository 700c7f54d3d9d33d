//! Which kernel parameters may be changed: those that are as before once the old value is written
//! back.

use goodput_model::SettingRef;

use super::{sysctl_documented, sysctl_name};
use crate::error::SettingError;
use crate::value::bad;

/// Parameters of the whole host that older kernels let any network namespace write, so that a trial there would change the
/// host (Linux commits 2671fa4dc010 in 5.13 and 97684f0970f6 in 5.12; since then they are read-only there).
pub const OF_ALL_NAMESPACES: [&str; 3] = [
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_expect_max",
    "net/ipv4/tcp_allowed_congestion_control",
];

/// Areas whose parameters tune; other areas run programs, lock themselves or guard the host.
const AREAS: [&str; 8] =
    ["net/", "vm/", "sunrpc/", "fs/nfs/", "fs/pipe-", "fs/aio-", "kernel/sched_", "kernel/numa_"];

/// Names that do more than hold a value, and what they do.
const ACTIONS: [(&str, &str); 12] = [
    ("ip_forward", FORWARDING),
    ("forwarding", FORWARDING),
    ("mc_forwarding", FORWARDING),
    ("disable_ipv6", "it removes addresses and routes, which do not come back with the old value"),
    ("addr_gen_mode", "it changes addresses, which do not come back with the old value"),
    ("stable_secret", "it changes addresses, which do not come back with the old value"),
    ("platform_labels", "it removes label routes, which do not come back with the old value"),
    ("nf_hooks_lwtunnel", "the kernel does not let anyone turn it off again"),
    ("flush", "it is an action, not a value"),
    ("drop_caches", "it is an action, not a value"),
    ("compact_memory", "it is an action, not a value"),
    ("stat_refresh", "it is an action, not a value"),
];

const FORWARDING: &str =
    "it resets other parameters and routes, which do not come back with the old value";

/// Refuses a parameter that writing the old value back would not restore.
pub(crate) fn check(setting: &SettingRef) -> Result<(), SettingError> {
    let path = sysctl_name::path(setting)?;
    let below = path.strip_prefix("/proc/sys").unwrap_or(&path).to_string_lossy().into_owned();
    match objection(&below) {
        None => Ok(()),
        Some(why) => Err(SettingError::Irreversible { setting: setting.clone(), why }),
    }
}

/// Three numbers, the least, the usual and the most (tcp(7), udp(7)), of which the kernel takes any.
const RISING: [&str; 4] =
    ["net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem", "net/ipv4/tcp_mem", "net/ipv4/udp_mem"];

/// Refuses a value that no kernel takes, as far as that is known, and three numbers that don't rise: the kernel takes
/// these and can't follow them. `value` has one space between its words.
pub(crate) fn check_value(setting: &SettingRef, value: &str) -> Result<(), SettingError> {
    let path = sysctl_name::path(setting)?;
    let numbers: Vec<u64> = value.split(' ').filter_map(|number| number.parse().ok()).collect();
    let rises = RISING.iter().any(|name| path.ends_with(name));
    if rises && !numbers.is_sorted() {
        let why = "its numbers are the least, the usual and the most, and must not fall";
        return Err(bad(setting, value, why));
    }
    let name = path.strip_prefix("/proc/sys").unwrap_or(&path).to_string_lossy();
    match sysctl_documented::objection(&name, value) {
        Some(why) => Err(bad(setting, value, why)),
        None => Ok(()),
    }
}

fn objection(below: &str) -> Option<&'static str> {
    if !AREAS.iter().any(|area| below.starts_with(area)) {
        return Some(
            "it does not concern performance; only net, vm, sunrpc, fs.nfs, fs.pipe-*, fs.aio-*, \
             kernel.sched_* and kernel.numa_* do",
        );
    }
    // net/ipv4/devinet.c and net/ipv6/addrconf.c copy these to devices, each with its own value.
    if below.starts_with("net/ipv4/conf/default/") || below.starts_with("net/ipv6/conf/all/") {
        return Some("the kernel copies it to devices, whose own values would be lost");
    }
    let name = below.rsplit('/').next().unwrap_or(below);
    ACTIONS.iter().find(|(action, _)| *action == name).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tunes_the_network_may_be_changed() {
        for name in ["net.ipv4.tcp_rmem", "net.core.rmem_max", "vm.swappiness", "sunrpc.tcp_slots"]
        {
            assert!(check(&format!("sysctl.{name}").parse().unwrap()).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_no_kernel_follows_is_refused() {
        let check =
            |name: &str, value| check_value(&format!("sysctl.{name}").parse().unwrap(), value);
        let rmem = |value| check("net.ipv4.tcp_rmem", value);
        assert!(rmem("4096 131072 6291456").is_ok() && rmem("4096 4096 4096").is_ok());
        assert!(rmem("9000 5 4").unwrap_err().to_string().contains("must not fall"));
        let swappiness = check("vm.swappiness", "301").unwrap_err().to_string();
        assert!(swappiness.contains("more than 200"), "{swappiness}");
    }

    #[test]
    fn what_runs_programs_or_can_not_be_undone_may_not() {
        for name in [
            "kernel.core_pattern",
            "kernel.modprobe",
            "kernel.modules_disabled",
            "fs.binfmt_misc.register",
            "net.ipv4.ip_forward",
            "net.ipv6.conf.eth0.disable_ipv6",
            "net.ipv4.route.flush",
            "vm.drop_caches",
            "net.mpls.platform_labels",
            "net.netfilter.nf_hooks_lwtunnel",
            "net.ipv6.conf.all.mtu",
        ] {
            let setting = format!("sysctl.{name}").parse().unwrap();
            assert!(matches!(check(&setting), Err(SettingError::Irreversible { .. })), "{name}");
        }
    }
}
