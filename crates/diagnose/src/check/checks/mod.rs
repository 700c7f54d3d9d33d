//! Every check. To add one: write its file, or its row in `counters` or `sysctls`, and its line
//! in [`ALL`].

mod buffers;
mod bus;
mod cards;
mod counters;
mod cpus;
mod memory;
mod mtu;
mod nfs;
mod offloads;
mod ring;
mod shaper;
mod sysctls;
mod wakeups;

use super::Check;

/// Every check.
pub const ALL: &[&Check] = &[
    &ring::RING,
    &counters::RING_OVERRUN,
    &counters::FRAME_ERRORS,
    &counters::PAUSE_FRAMES,
    &counters::LINK_FLAP,
    &counters::LOCAL_DROP,
    &counters::SOFTNET_BACKLOG,
    &counters::UDP_RECEIVE_BUFFER,
    &counters::RECEIVE_PRUNE,
    &counters::CONNECTION_SETUP,
    &counters::FRAGMENTATION,
    &cards::LINK_SPEED,
    &cards::HALF_DUPLEX,
    &cards::COALESCING,
    &cards::QUEUES,
    &bus::PCIE,
    &mtu::SMALL_MTU,
    &offloads::OFFLOADS,
    &shaper::SHAPER_BURST,
    &shaper::QUEUE_TOO_SHORT,
    &buffers::RECEIVE_WINDOW,
    &buffers::SEND_BUFFER,
    &sysctls::WINDOW_SCALING,
    &sysctls::SACK,
    &sysctls::AUTOTUNING,
    &sysctls::NOTSENT_LOWAT,
    &cpus::FREQUENCY,
    &cpus::QUOTA_CHECK,
    &cpus::STEAL,
    &cpus::SOFTIRQ,
    &cpus::BUDGET,
    &memory::TCP_MEMORY,
    &memory::CONNTRACK,
    &nfs::TRANSFER_SIZE,
    &wakeups::WAKEUPS,
];

#[cfg(test)]
mod conformance;
