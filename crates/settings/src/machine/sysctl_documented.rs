//! The ranges of kernel parameters of the whole host. No other network namespace has them, so values can't be tried
//! beside the host's own, and a trial there would be a change.
//!
//! Where versions of the kernel differ, a row has the widest range: outside of it every kernel refuses, inside of it an
//! older one may. A test under a second kernel writes what is just outside and must be refused.

use std::ops::RangeInclusive;

/// `i32`, the limits of what has no others (kernel/sysctl.c `do_proc_dointvec_conv`).
const INT: RangeInclusive<i128> = i32::MIN as i128..=i32::MAX as i128;
const MOST: i128 = i32::MAX as i128;

/// A parameter's path below /proc/sys, and the numbers that it takes.
type Row = (&'static str, RangeInclusive<i128>);

/// Every row; the comment above some is where the kernel has them.
pub const DOCUMENTED: [Row; 40] = [
    // mm/vmscan.c, mm/page-writeback.c, mm/page_alloc.c, mm/compaction.c, fs/dcache.c, mm/util.c. Before 5.8 swappiness
    // ended at 100, before 5.19 watermark_scale_factor at 1000.
    ("vm/swappiness", 0..=200),
    ("vm/dirty_ratio", 0..=100),
    ("vm/dirty_background_ratio", 0..=100),
    ("vm/dirty_expire_centisecs", 0..=MOST),
    ("vm/dirty_writeback_centisecs", INT),
    ("vm/vfs_cache_pressure", 0..=MOST),
    ("vm/min_free_kbytes", 0..=MOST),
    ("vm/watermark_scale_factor", 1..=3000),
    ("vm/watermark_boost_factor", 0..=MOST),
    ("vm/zone_reclaim_mode", 0..=MOST),
    ("vm/min_unmapped_ratio", 0..=100),
    ("vm/min_slab_ratio", 0..=100),
    ("vm/compaction_proactiveness", 0..=100),
    ("vm/extfrag_threshold", 0..=1000),
    ("vm/overcommit_memory", 0..=2),
    ("vm/overcommit_ratio", INT),
    ("vm/max_map_count", 0..=MOST),
    // net/core/sysctl_net_core.c. Sockets have at least `SOCK_MIN_RCVBUF` and `SOCK_MIN_SNDBUF` (include/net/sock.h),
    // which are above 2048 and depend on the processor.
    ("net/core/rmem_max", 2049..=MOST),
    ("net/core/wmem_max", 2049..=MOST),
    ("net/core/rmem_default", 2049..=MOST),
    ("net/core/wmem_default", 2049..=MOST),
    ("net/core/netdev_max_backlog", INT),
    ("net/core/netdev_budget", INT),
    ("net/core/netdev_budget_usecs", INT),
    ("net/core/dev_weight", INT),
    ("net/core/busy_poll", 0..=MOST),
    ("net/core/busy_read", 0..=MOST),
    ("net/core/rps_sock_flow_entries", 0..=1 << 29),
    ("net/core/gro_normal_batch", 1..=MOST),
    ("net/core/skb_defer_max", 0..=MOST),
    ("net/core/netdev_unregister_timeout_secs", 1..=3600),
    // net/ipv4/sysctl_net_ipv4.c
    ("net/ipv4/tcp_max_orphans", INT),
    ("net/ipv4/inet_peer_threshold", INT),
    ("net/ipv4/fib_sync_mem", (64 << 10)..=(64 << 20)),
    // net/sunrpc/xprtsock.c
    ("sunrpc/tcp_slot_table_entries", 2..=65536),
    ("sunrpc/tcp_max_slot_table_entries", 2..=65536),
    ("sunrpc/udp_slot_table_entries", 2..=65536),
    // kernel/sched/core.c, kernel/sched/fair.c. Before 5.18 numa_balancing ended at 1.
    ("kernel/sched_autogroup_enabled", 0..=1),
    ("kernel/sched_schedstats", 0..=1),
    ("kernel/numa_balancing", 0..=4),
];

/// The numbers that kernels take for a parameter, in words, if they are known. `name` is its path below /proc/sys.
pub(crate) fn limits(name: &str) -> Option<String> {
    let range = range(name)?;
    Some(format!("no kernel takes less than {} or more than {}", range.start(), range.end()))
}

/// Why no kernel takes `value` for a parameter, if that is known. `name` is its path below /proc/sys.
pub(crate) fn objection(name: &str, value: &str) -> Option<String> {
    let (range, number) = (range(name)?, value.trim().parse::<i128>());
    // The kernel also reads hexadecimal numbers, and judges them itself.
    if value.trim().starts_with("0x") {
        return None;
    }
    if number.is_ok_and(|number| range.contains(&number)) { None } else { limits(name) }
}

fn range(name: &str) -> Option<&'static RangeInclusive<i128>> {
    DOCUMENTED.iter().find(|(known, _)| *known == name).map(|(_, range)| range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_kernel_takes_is_refused_with_the_range() {
        let why = objection("vm/swappiness", "201").unwrap();
        assert_eq!(why, "no kernel takes less than 0 or more than 200");
        assert!(objection("vm/swappiness", "many").is_some());
        assert_eq!(objection("vm/swappiness", "0x3c"), None);
        assert_eq!(objection("vm/swappiness", "150"), None);
        assert!(objection("net/core/netdev_max_backlog", "4294967296").is_some());
        assert_eq!(objection("vm/no_such_parameter", "-1"), None);
    }

    #[test]
    fn no_row_is_of_a_parameter_that_may_not_be_changed_or_stands_twice() {
        for (number, (name, range)) in DOCUMENTED.iter().enumerate() {
            let setting = format!("sysctl.{}", name.replace('/', ".")).parse().unwrap();
            assert!(super::super::sysctl_rules::check(&setting).is_ok(), "{name}");
            assert!(range.start() < range.end(), "{name}");
            assert!(DOCUMENTED[..number].iter().all(|(other, _)| other != name), "{name}");
        }
    }

    #[test]
    fn what_this_host_has_is_within_its_row() {
        for (name, range) in &DOCUMENTED {
            let file = format!("/proc/sys/{name}");
            let Ok(text) = std::fs::read_to_string(file) else { continue };
            let now: i128 = text.trim().parse().unwrap();
            assert!(range.contains(&now), "{name}: {now}");
        }
    }
}
