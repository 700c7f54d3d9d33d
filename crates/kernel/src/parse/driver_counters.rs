//! Drivers' names for their counters: counters with the same meaning get one common name.
//!
//! The names are from the string tables in drivers/net/ethernet of Linux 6.12: e1000e, igb, ixgbe, i40e, ice, mlx5,
//! bnxt, tg3, r8169, ena, virtio. Only virtio could be tested on hardware.

use std::collections::{BTreeMap, BTreeSet};

/// Most counters that are recorded under the driver's own names.
pub const MAX_OTHERS: usize = 40;

/// A common name, and the drivers' names for it. If a driver has several of them, they are different views of the same
/// events, and the largest counts.
const COMMON: &[(&str, &[&str])] = &[
    (
        "rx_missed",
        &[
            "rx_missed_errors",
            "rx_missed",
            "rx_out_of_buffer",
            "rx_no_dma_resources",
            "rx_missed_packets",
        ],
    ),
    ("rx_no_buffer", &["rx_no_buffer_count", "rx_buf_alloc_fail", "alloc_rx_buff_failed"]),
    ("rx_discards", &["rx_discards", "rx_discards_phy", "rx_total_discard_pkts"]),
    ("rx_fifo", &["rx_fifo_errors", "rx_over_errors", "rx_overflow_errors", "rx_overruns"]),
    ("rx_crc", &["rx_crc_errors", "rx_crc_errors_phy", "rx_fcs_errors", "rx_fcs_err_frames"]),
    ("rx_dropped", &["rx_dropped", "rx_drops"]),
    ("tx_dropped", &["tx_dropped", "tx_drops", "tx_queue_dropped", "tx_discards"]),
    (
        "rx_pause",
        &[
            "rx_flow_control_xoff",
            "link_xoff_rx",
            "rx_pause_ctrl_phy",
            "rx_pause_frames",
            "rx_xoff_pause_rcvd",
        ],
    ),
    (
        "tx_pause",
        &[
            "tx_flow_control_xoff",
            "link_xoff_tx",
            "tx_pause_ctrl_phy",
            "tx_pause_frames",
            "tx_xoff_sent",
        ],
    ),
    (
        "late_collisions",
        &["late_collisions", "tx_abort_late_coll", "tx_late_collisions", "tx_late_coll"],
    ),
    ("tx_timeouts", &["tx_timeout_count", "tx_timeout", "tx_timeouts"]),
    ("cloud_rate_in", &["bw_in_allowance_exceeded"]),
    ("cloud_rate_out", &["bw_out_allowance_exceeded"]),
    ("cloud_packets", &["pps_allowance_exceeded"]),
    ("cloud_connections", &["conntrack_allowance_exceeded"]),
];

/// Parts of names that indicate trouble.
const TROUBLE: &[&str] = &[
    "drop", "err", "discard", "miss", "fifo", "overr", "overflow", "no_buf", "out_of", "fail",
    "timeout", "pause", "xoff", "exceeded", "crc", "stall", "jabber",
];

/// Counters of one device, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverCounters {
    /// By common name; a 0 is included, because it shows that the driver counts the event.
    pub common: BTreeMap<&'static str, u64>,
    /// Sum of the drops of all receive queues, if the driver counts by queue.
    pub rx_queue_drops: Option<u64>,
    /// The same for the transmit queues.
    pub tx_queue_drops: Option<u64>,
    /// Other counters that indicate trouble and are not 0, by the driver's names; at most [`MAX_OTHERS`].
    pub others: BTreeMap<String, u64>,
    /// How many more of these counters there are.
    pub left_out: usize,
}

/// Sorts a driver's counters.
pub fn sort(counters: &[(String, u64)]) -> DriverCounters {
    let mut sorted = DriverCounters::default();
    let mut others = BTreeSet::new();
    for (name, value) in counters {
        let plain = plain(name);
        if let Some(side) = queue_drops(&plain) {
            let sum = match side {
                Side::Rx => &mut sorted.rx_queue_drops,
                Side::Tx => &mut sorted.tx_queue_drops,
            };
            *sum = Some(sum.unwrap_or(0).saturating_add(*value));
        } else if let Some(common) = common(&plain) {
            let largest = sorted.common.entry(common).or_default();
            *largest = (*largest).max(*value);
        } else if *value > 0 && !of_a_queue(&plain) && tells_of_trouble(&plain) {
            others.insert((plain, *value));
        }
    }
    sorted.left_out = others.len().saturating_sub(MAX_OTHERS);
    sorted.others = others.into_iter().take(MAX_OTHERS).collect();
    sorted
}

/// A name without the decoration of some Intel drivers, and without characters that the name of a fact should not have.
fn plain(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    let name = name.strip_prefix("port.").unwrap_or(&name);
    let name = name.strip_suffix(".nic").unwrap_or(name);
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-[]".contains(c);
    name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

fn common(name: &str) -> Option<&'static str> {
    COMMON.iter().find(|(_, names)| names.contains(&name)).map(|(common, _)| *common)
}

fn tells_of_trouble(name: &str) -> bool {
    TROUBLE.iter().any(|part| name.contains(part))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Rx,
    Tx,
}

/// `rx_queue_0_drops`, `rx0_drops`, `rx-0.drops`, `tx3_dropped`, `[2]__rx_discards`.
fn queue_drops(name: &str) -> Option<Side> {
    let dropped = ["_drops", ".drops", "_dropped", ".dropped", "_discards"];
    if !of_a_queue(name) || !dropped.iter().any(|end| name.ends_with(end)) || name.contains("xdp") {
        return None;
    }
    match (name.contains("rx"), name.contains("tx")) {
        (true, false) => Some(Side::Rx),
        (false, true) => Some(Side::Tx),
        _ => None,
    }
}

/// Whether the counter is one of many queues: the number follows "rx", "tx", "queue", "ch" or "[".
fn of_a_queue(name: &str) -> bool {
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let after = |start: &str| {
        name.strip_prefix(start)
            .is_some_and(|rest| digit(rest) || rest.strip_prefix(['-', '_']).is_some_and(digit))
    };
    let queue = name
        .match_indices("queue")
        .any(|(at, word)| digit(name[at + word.len()..].trim_start_matches(['_', '-', '.'])));
    queue || ["rx", "tx", "ch", "q", "["].iter().any(|start| after(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(counters: &[(&str, u64)]) -> DriverCounters {
        sort(&counters.iter().map(|(name, value)| ((*name).into(), *value)).collect::<Vec<_>>())
    }

    #[test]
    fn one_meaning_has_one_name_whatever_the_driver_calls_it() {
        for (name, common) in [
            ("rx_missed_errors", "rx_missed"),
            ("rx_out_of_buffer", "rx_missed"),
            ("port.rx_crc_errors", "rx_crc"),
            ("link_xoff_rx.nic", "rx_pause"),
            ("tx_pause_ctrl_phy", "tx_pause"),
            ("bw_out_allowance_exceeded", "cloud_rate_out"),
        ] {
            assert_eq!(of(&[(name, 0)]).common, BTreeMap::from([(common, 0)]), "{name}");
        }
    }

    #[test]
    fn queues_are_added_up_and_not_listed() {
        // virtio_net before and after Linux 6.10, veth, mlx5, bnxt.
        for name in ["rx_queue_0_drops", "rx0_drops", "rx0_xdp_drops", "[0]: rx_discards"] {
            assert!(of(&[(name, 3)]).others.is_empty(), "{name}");
        }
        let sorted = of(&[("rx_queue_0_drops", 3), ("rx_queue_1_drops", 4), ("tx3_dropped", 5)]);
        assert_eq!((sorted.rx_queue_drops, sorted.tx_queue_drops), (Some(7), Some(5)));
        assert!(sorted.common.is_empty());
    }

    #[test]
    fn of_the_others_only_trouble_that_happened_is_kept() {
        let sorted = of(&[
            ("rx_bytes", 9),
            ("rx_prio3_discards", 2),
            ("tx_aborted_errors", 0),
            ("rx_symbol_err_phy", 1),
        ]);
        assert_eq!(
            sorted.others,
            BTreeMap::from([("rx_prio3_discards".into(), 2), ("rx_symbol_err_phy".into(), 1)])
        );
    }

    #[test]
    fn too_many_others_are_left_out_and_counted() {
        let many: Vec<_> = (0..50).map(|n| (format!("x{n}_errors"), 1)).collect();
        let sorted = sort(&many);
        assert_eq!((sorted.others.len(), sorted.left_out), (MAX_OTHERS, 10));
    }

    proptest! {
        #[test]
        fn no_names_make_it_panic(
            counters in prop::collection::vec(("(rx|tx|queue|_|[0-9]|drops|.){0,8}", any::<u64>()), 0..60)
        ) {
            let sorted = sort(&counters);
            prop_assert!(sorted.others.len() <= MAX_OTHERS);
        }
    }
}
