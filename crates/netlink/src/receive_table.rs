//! The table by which a card spreads flows over its queues, with the kernel's defaults.

/// The kernel's default table for this many queues: round-robin (include/linux/ethtool.h
/// `ethtool_rxfh_indir_default`). Without a queue there is none.
pub fn default_receive_table(entries: usize, queues: u32) -> Vec<u32> {
    (0..queues).cycle().take(entries).collect()
}
