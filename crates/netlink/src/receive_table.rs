//! The table by which a card spreads flows over its queues, as the kernel makes it.

/// The table that the kernel makes for this many queues: one after the other (include/linux/ethtool.h
/// `ethtool_rxfh_indir_default`). Without a queue there is none.
pub fn default_receive_table(entries: usize, queues: u32) -> Vec<u32> {
    (0..queues).cycle().take(entries).collect()
}
