//! The text of /proc and /sys, as every kernel, container and emulation may write it.

use goodput_kernel::parse::{
    cgroup, conntrack, counter_table, cpu_list, cpu_mask, driver_counters, keyed, meminfo, mountinfo,
    mountstats, pcie, per_cpu, pressure, process, schedstat, sockstat, softnet, stat, tcp_mem, vectors, wireless,
};

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = (cgroup::parse_membership(text), cgroup::parse_max(text), mountinfo::parse(text));
    let _ = (conntrack::parse(text, ["drop", "entries"]), counter_table::parse(text));
    let _ = (cpu_list::parse("t", text), cpu_mask::count("t", text), keyed(text, "a"));
    let _ = (mountstats::parse(text), meminfo::parse(text), pressure::parse("t", text), process::parse_parent(text));
    let _ = (pcie::parse_speed(text), pcie::parse_width(text), schedstat::parse(text));
    let _ = (sockstat::parse(text, "TCP"), softnet::parse(text), stat::parse(text));
    let _ = (tcp_mem::parse(text), wireless::parse(text, "wlan0"));
    table(text);
    let counters = text.lines().zip(1u64..).map(|(name, value)| (name.into(), value));
    let sorted = driver_counters::sort(&counters.collect::<Vec<_>>());
    assert!(sorted.others.len() <= driver_counters::MAX_OTHERS);
}

/// Every row of a table has a number for each CPU, and so have the device's lines together.
fn table(text: &str) {
    let Ok(table) = per_cpu::parse("t", text) else { return };
    assert!(table.rows.iter().all(|row| row.counts.len() == table.cpus.len()));
    let (address, numbers) = (Some("0000:00:03.0"), Some((0, 24)));
    let wanted = vectors::DeviceMatch { device: "eth0", address, numbers };
    assert_eq!(vectors::of_device(&table, wanted).counts.len(), table.cpus.len());
}
