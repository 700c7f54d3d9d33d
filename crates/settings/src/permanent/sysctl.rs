//! Kernel parameters: sysctl.d(5), and FreeBSD's equivalents.

use goodput_model::{Permanent, SettingRef};

use super::{entry, freebsd, module_option};

/// File of our parameters: read late, so that they override the distribution's.
const FILE: &str = "/etc/sysctl.d/90-goodput.conf";

/// FreeBSD's equivalents of parameters (tcp(4), tuning(7)): the name there, and which part of the value it
/// takes.
const ON_FREEBSD: [(&str, &str, Take); 14] = [
    ("net.ipv4.tcp_rmem", "net.inet.tcp.recvbuf_max", Take::Field(2)),
    ("net.ipv4.tcp_wmem", "net.inet.tcp.sendbuf_max", Take::Field(2)),
    ("net.core.rmem_max", "kern.ipc.maxsockbuf", Take::Field(0)),
    ("net.core.wmem_max", "kern.ipc.maxsockbuf", Take::Field(0)),
    ("net.core.somaxconn", "kern.ipc.soacceptqueue", Take::Field(0)),
    ("net.core.netdev_max_backlog", "net.inet.ip.intr_queue_maxlen", Take::Field(0)),
    ("net.ipv4.tcp_congestion_control", "net.inet.tcp.cc.algorithm", Take::Field(0)),
    ("net.ipv4.tcp_window_scaling", "net.inet.tcp.rfc1323", Take::Field(0)),
    ("net.ipv4.tcp_timestamps", "net.inet.tcp.rfc1323", Take::Field(0)),
    ("net.ipv4.tcp_sack", "net.inet.tcp.sack.enable", Take::Field(0)),
    ("net.ipv4.tcp_ecn", "net.inet.tcp.ecn.enable", Take::Field(0)),
    ("net.ipv4.tcp_mtu_probing", "net.inet.tcp.pmtud_blackhole_detection", Take::Field(0)),
    ("net.ipv4.tcp_moderate_rcvbuf", "net.inet.tcp.recvbuf_auto", Take::Field(0)),
    // Metrics that live for a second are as good as none.
    ("net.ipv4.tcp_no_metrics_save", "net.inet.tcp.hostcache.expire", Take::Switched("1")),
];

/// Which part of a value is taken over.
enum Take {
    /// The number at this place, from 0.
    Field(usize),
    /// This stands for Linux' 1; nothing stands for 0.
    Switched(&'static str),
}

/// The form of `sysctl.<any>`.
pub(crate) fn sysctl(setting: &SettingRef, value: &str) -> Vec<Permanent> {
    let Some(name) = setting.name.strip_prefix("sysctl.") else { return Vec::new() };
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let parameter = || entry(FILE, format!("{name} = {value}"));
    let mut files = vec![module_option(name, &value).unwrap_or_else(parameter)];
    files.extend(on_freebsd(name, &value));
    if matches!(name, "net.core.busy_poll" | "net.core.busy_read") && value != "0" {
        files.extend(polling());
    }
    files
}

fn on_freebsd(name: &str, value: &str) -> Option<Permanent> {
    let (_, theirs, take) = ON_FREEBSD.iter().find(|(ours, ..)| *ours == name)?;
    let taken = match take {
        Take::Field(number) => value.split(' ').nth(*number)?,
        Take::Switched(on) => (value == "1").then_some(*on)?,
    };
    Some(freebsd::sysctl_conf(theirs, taken))
}

/// FreeBSD polls devices rather than sockets (polling(4)): a kernel with `options DEVICE_POLLING`,
/// and the option at the interface.
fn polling() -> [Permanent; 2] {
    [
        entry("FreeBSD /sys/amd64/conf/POLLING (a kernel built with)", "options DEVICE_POLLING"),
        freebsd::interface_option("IF", "polling"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(setting: &str, value: &str) -> Vec<(String, String)> {
        let files = sysctl(&setting.parse().unwrap(), value);
        files.into_iter().map(|p| (p.file, p.lines)).collect()
    }

    #[test]
    fn the_largest_of_three_is_what_freebsd_takes() {
        let files = of("sysctl.net.ipv4.tcp_rmem", "4096\t131072 6291456");
        assert_eq!(files[0].1, "net.ipv4.tcp_rmem = 4096 131072 6291456");
        assert_eq!(files[1].1, "net.inet.tcp.recvbuf_max=6291456");
        assert_eq!(of("sysctl.net.ipv4.tcp_rmem", "1").len(), 1, "no third number");
    }

    #[test]
    fn what_a_module_brings_along_is_an_option_of_the_module() {
        let files = of("sysctl.sunrpc.tcp_slot_table_entries", "16");
        let line = "options sunrpc tcp_slot_table_entries=16".to_owned();
        assert_eq!(files, [("/etc/modprobe.d/90-goodput.conf".to_owned(), line)]);
    }

    #[test]
    fn busy_polling_is_reported_with_freebsd_s_device_polling() {
        let files = of("sysctl.net.core.busy_poll", "50");
        assert!(files.iter().any(|(_, lines)| lines.contains("polling\"")), "{files:?}");
        assert_eq!(of("sysctl.net.core.busy_poll", "0").len(), 1);
    }
}
