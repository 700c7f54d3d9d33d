//! The only list of what clients of a server may read and change: performance settings, each with
//! bounds within which a change can cost nothing but speed.
//!
//! Others can't reach anything else: settings that guard the host (`mmap_min_addr`,
//! `bpf_jit_harden`, `route_localnet`, `bridge-nf-*`), hold secrets (`tcp_fastopen_key`,
//! `stable_secret`), can starve it of memory (`min_free_kbytes`, `tcp_mem`), or would load a
//! module (`default_qdisc`, `tcp_allowed_congestion_control`, which may at most be read).

use goodput_model::{BitRate, Bytes, PAGE_BYTES};

use Bounds::{
    AsItIs, Congestion, Frames, LargestFrame, Numbers, QdiscKind, Queue, Rates, ReadOnly, Sizes,
};

/// One setting that others may reach.
#[derive(Debug)]
pub struct Entry {
    /// The setting's name, with dots for a sysctl.
    pub name: &'static str,
    /// The values that others may give it.
    pub bounds: Bounds,
    /// Why others may change it this far, and no further.
    pub why: &'static str,
}

/// The values that others may give a setting, besides `default`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// None: they may only read it.
    ReadOnly,
    /// Whatever the setting itself accepts, as the device or the kernel bounds it.
    AsItIs,
    /// Whole numbers from the first to the second; the bounds apply to each of several numbers.
    Numbers(i64, i64),
    /// Sizes in bytes from the first to the second.
    Sizes(u64, u64),
    /// Rates from the first to the second, bits per second.
    Rates(u64, u64),
    /// Sizes in bytes, from two of the largest frames of the device to this. A token bucket drops packets
    /// longer than its burst (net/sched/sch_tbf.c `tbf_enqueue`), which the kernel rounds down to ticks.
    Frames(u64),
    /// The same for a queue of bytes; at least 10 packets for a queue of packets.
    Queue(u64),
    /// Sizes of the device's largest packet from the first to the second, if two packets fit into each token bucket and
    /// queue of bytes that the device has: the counterpart of `Frames` and `Queue`.
    LargestFrame(u32, u32),
    /// A congestion control that the kernel already offers: it would load a module for any other.
    Congestion,
    /// A work-conserving queueing discipline that the kernel already has: it would load a module
    /// for any other.
    QdiscKind,
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("read only"),
            Self::AsItIs => f.write_str("any value of the setting"),
            Self::Numbers(least, most) => write!(f, "{least} to {most}"),
            Self::Sizes(least, most) => write!(f, "{} to {}", Bytes(*least), Bytes(*most)),
            Self::Frames(most) => {
                write!(f, "two of the device's largest frames to {}", Bytes(*most))
            }
            Self::Queue(most) => {
                write!(
                    f,
                    "{FEWEST_PACKETS} packets or two of the device's largest frames to {most}"
                )
            }
            Self::LargestFrame(least, most) => {
                write!(
                    f,
                    "{least} to {most}, and at most half of the device's smallest queue of bytes"
                )
            }
            Self::Rates(least, most) => {
                write!(f, "{} to {}", BitRate(*least as f64), BitRate(*most as f64))
            }
            Self::Congestion => f.write_str("what the kernel offers without loading a module"),
            Self::QdiscKind => write!(
                f,
                "those of {} that the kernel has without loading a module",
                WORK_CONSERVING.join(", ")
            ),
        }
    }
}

const fn entry(name: &'static str, bounds: Bounds, why: &'static str) -> Entry {
    Entry { name, bounds, why }
}

/// Queueing disciplines that, without parameters, send whenever there is something to send. Others
/// wait for a missing rate or schedule, or, like `noqueue`, drop what a busy device does not take.
pub(super) const WORK_CONSERVING: [&str; 10] = [
    "fq_codel",
    "fq",
    "codel",
    "cake",
    "pie",
    "sfq",
    "pfifo_fast",
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
];

/// Fewest packets that a queue may hold: TCP's initial window (RFC 6928).
pub(super) const FEWEST_PACKETS: u64 = 10;

/// Largest window that TCP can offer, bytes: 65 535 shifted by 14 (RFC 7323 section 2.3), rounded up to the
/// next power of two.
const LARGEST_TCP_WINDOW_BYTES: i64 = 1 << 30;
/// Smallest socket buffer, bytes: a page.
const MIN_BUFFER_BYTES: i64 = PAGE_BYTES as i64;

const SWITCH: Bounds = Numbers(0, 1);
const BUFFER: &str =
    "buffers up to TCP's largest window; tcp_mem, which clients may not change, bounds their total";
const TCP: &str = "changes how TCP sends and recovers, within the values that the kernel knows";
const DEVICE: &str = "the device bounds it; the worst effect is lower speed";
const QUEUE: &str = "changes how packets wait to be sent";
const POLL: &str = "changes how much work one poll of the network does";
const SHAPER: &str = "at least 1 Mbit/s, so that the host stays reachable";
const BUCKET: &str = "a token bucket drops every packet longer than its burst or its queue, which would cut off the host";
const MTU: &str = "at least what IPv6 needs (RFC 8200 section 5); frames longer than a token bucket or a queue of bytes would all be dropped";
const CLASS: &str = "with less than one packet a class would not reach its rate";
const SEEN: &str = "shows what limits a transfer; a change could starve or reconfigure the host";
const ROUTE: &str = "changes how TCP begins on one route";
const CACHE: &str = "changes how files are cached; values that starve the host are out of bounds";

/// All of them.
pub const ALL: &[Entry] = &[
    // Of a device.
    entry("offload.tso", AsItIs, DEVICE),
    entry("offload.gso", AsItIs, DEVICE),
    entry("offload.gro", AsItIs, DEVICE),
    entry("offload.lro", AsItIs, DEVICE),
    entry("offload.sg", AsItIs, DEVICE),
    entry("offload.tx-checksum", AsItIs, DEVICE),
    entry("offload.rx-checksum", AsItIs, DEVICE),
    entry("offload.tx-udp-segmentation", AsItIs, DEVICE),
    entry("offload.rx-udp-gro-forwarding", AsItIs, DEVICE),
    entry("offload.rx-gro-list", AsItIs, DEVICE),
    entry("offload.rx-gro-hw", AsItIs, DEVICE),
    entry("offload.tx-tunnel-segmentation", AsItIs, DEVICE),
    entry("offload.rx-hash", AsItIs, DEVICE),
    entry("offload.ntuple", AsItIs, DEVICE),
    entry("offload.gso_max_size", Numbers(1500, 524_280), DEVICE),
    entry("offload.gso_max_segs", Numbers(1, 65_535), DEVICE),
    entry("link.mtu", LargestFrame(1280, 65_535), MTU),
    entry("link.txqueuelen", Numbers(1, 100_000), QUEUE),
    entry("ring.rx", AsItIs, DEVICE),
    entry("ring.tx", AsItIs, DEVICE),
    entry("ring.tcp_data_split", AsItIs, DEVICE),
    entry("ring.hds_thresh", AsItIs, DEVICE),
    entry("channels.combined", AsItIs, DEVICE),
    entry("channels.rx", AsItIs, DEVICE),
    entry("channels.tx", AsItIs, DEVICE),
    entry("coalescing.rx_usecs", Numbers(0, 10_000), "packets wait at most 10 ms"),
    entry("coalescing.tx_usecs", Numbers(0, 10_000), "packets wait at most 10 ms"),
    entry("coalescing.adaptive_rx", AsItIs, DEVICE),
    entry("pause.rx", AsItIs, DEVICE),
    entry("pause.tx", AsItIs, DEVICE),
    entry("napi.defer_hard_irqs", Numbers(0, 10_000), POLL),
    entry("napi.gro_flush_timeout", Numbers(0, 10_000_000), "packets wait at most 10 ms"),
    entry("napi.threaded", AsItIs, DEVICE),
    entry("napi.irq_suspend_timeout", Numbers(0, 100_000_000), "holds only for programs that poll"),
    entry("polling", AsItIs, "presets within the bounds of the settings they are made of"),
    entry("rps.cpus", AsItIs, "chooses among this host's CPUs"),
    entry("rps.flow_cnt", Numbers(0, 1 << 16), "takes 16 bytes of memory for each flow"),
    entry("xps.cpus", AsItIs, "chooses among this host's CPUs"),
    entry("xps.rxqs", AsItIs, "chooses among the device's queues"),
    entry("cpu.governor", AsItIs, "chooses among what the host offers; at worst it is slower"),
    entry("irq.affinity", AsItIs, "chooses among this host's CPUs"),
    // Of a queue.
    entry("qdisc.kind", QdiscKind, QUEUE),
    entry(
        "qdisc.fifo.limit",
        Queue(1 << 24),
        "a queue too short for one packet would cut off the host",
    ),
    entry("qdisc.fq_codel.limit", Numbers(10, 1 << 20), QUEUE),
    entry("qdisc.fq_codel.target", Numbers(100, 1_000_000), QUEUE),
    entry("qdisc.fq_codel.interval", Numbers(1000, 10_000_000), QUEUE),
    entry("qdisc.fq_codel.quantum", Sizes(256, 1 << 20), QUEUE),
    entry("qdisc.fq_codel.ecn", AsItIs, QUEUE),
    entry("qdisc.fq_codel.memory_limit", Sizes(1 << 20, 1 << 30), QUEUE),
    entry("qdisc.fq.limit", Numbers(10, 1 << 20), QUEUE),
    entry("qdisc.fq.flow_limit", Numbers(10, 1 << 20), QUEUE),
    entry("qdisc.fq.quantum", Sizes(256, 1 << 20), QUEUE),
    entry("qdisc.fq.maxrate", Rates(1_000_000, 10_000_000_000_000), SHAPER),
    entry("qdisc.fq.initial_quantum", Numbers(256, 1 << 20), QUEUE),
    entry("qdisc.fq.pacing", AsItIs, QUEUE),
    entry("qdisc.fq.refill_delay", Numbers(0, 1_000_000), QUEUE),
    entry("qdisc.fq.orphan_mask", AsItIs, QUEUE),
    entry("qdisc.fq.low_rate_threshold", AsItIs, QUEUE),
    entry("qdisc.fq.ce_threshold", Numbers(100, u32::MAX as i64), QUEUE),
    entry("qdisc.fq.timer_slack", Numbers(0, 1_000_000), QUEUE),
    entry("qdisc.fq.horizon", Numbers(1_000_000, u32::MAX as i64), QUEUE),
    entry("qdisc.fq.horizon_drop", AsItIs, QUEUE),
    entry("qdisc.cake.bandwidth", Rates(1_000_000, 10_000_000_000_000), SHAPER),
    entry("qdisc.cake.rtt", Numbers(100, 10_000_000), QUEUE),
    entry("qdisc.cake.ack_filter", AsItIs, QUEUE),
    entry("qdisc.cake.diffserv", AsItIs, QUEUE),
    entry("qdisc.cake.flowmode", AsItIs, QUEUE),
    entry("qdisc.cake.nat", AsItIs, QUEUE),
    entry("qdisc.cake.wash", AsItIs, QUEUE),
    entry("qdisc.cake.ingress", AsItIs, QUEUE),
    entry("qdisc.cake.split_gso", AsItIs, QUEUE),
    entry("qdisc.cake.atm", AsItIs, QUEUE),
    entry("qdisc.cake.overhead", AsItIs, QUEUE),
    entry("qdisc.cake.mpu", AsItIs, QUEUE),
    entry("qdisc.cake.memlimit", Numbers(1 << 20, 1 << 30), QUEUE),
    entry("qdisc.tbf.rate", Rates(1_000_000, 1_000_000_000_000), SHAPER),
    entry("qdisc.tbf.burst", Frames(1 << 30), BUCKET),
    entry("qdisc.tbf.limit", Frames(1 << 30), BUCKET),
    entry("qdisc.htb.rate", Rates(1_000_000, 1_000_000_000_000), SHAPER),
    entry("qdisc.htb.ceil", Rates(1_000_000, 1_000_000_000_000), SHAPER),
    entry("qdisc.htb.burst", Frames(1 << 30), CLASS),
    entry("qdisc.htb.cburst", Frames(1 << 30), CLASS),
    entry("qdisc.htb.bursts", Frames(1 << 30), CLASS),
    // Of a route.
    entry("route.window", Sizes(1, 1 << 30), ROUTE),
    entry("route.initcwnd", Numbers(1, 1000), ROUTE),
    entry("route.initrwnd", Numbers(1, 1000), ROUTE),
    entry("route.mtu", Numbers(1280, 65_535), ROUTE),
    entry("route.advmss", Numbers(536, 65_495), ROUTE),
    entry("route.congctl", Congestion, ROUTE),
    entry("route.quickack", AsItIs, ROUTE),
    entry("route.rto_min", Numbers(1, 1000), ROUTE),
    entry("route.ecn", AsItIs, ROUTE),
    // Of sockets and of packet processing: Documentation/admin-guide/sysctl/net.rst.
    entry("sysctl.net.core.busy_poll", Numbers(0, 1000), "spins at most 1 ms"),
    entry("sysctl.net.core.busy_read", Numbers(0, 1000), "spins at most 1 ms"),
    entry("sysctl.net.core.default_qdisc", ReadOnly, SEEN),
    entry("sysctl.net.core.dev_weight", Numbers(1, 1024), POLL),
    entry("sysctl.net.core.gro_normal_batch", Numbers(1, 64), POLL),
    entry("sysctl.net.core.high_order_alloc_disable", SWITCH, POLL),
    entry("sysctl.net.core.netdev_budget", Numbers(1, 10_000), POLL),
    entry("sysctl.net.core.netdev_budget_usecs", Numbers(1, 100_000), POLL),
    entry("sysctl.net.core.netdev_max_backlog", Numbers(1, 1_000_000), POLL),
    entry("sysctl.net.core.netdev_tstamp_prequeue", SWITCH, POLL),
    entry("sysctl.net.core.optmem_max", Numbers(MIN_BUFFER_BYTES, 16 << 20), BUFFER),
    entry("sysctl.net.core.rmem_default", Numbers(MIN_BUFFER_BYTES, 256 << 20), BUFFER),
    entry("sysctl.net.core.rmem_max", Numbers(MIN_BUFFER_BYTES, LARGEST_TCP_WINDOW_BYTES), BUFFER),
    entry("sysctl.net.core.wmem_default", Numbers(MIN_BUFFER_BYTES, 256 << 20), BUFFER),
    entry("sysctl.net.core.wmem_max", Numbers(MIN_BUFFER_BYTES, LARGEST_TCP_WINDOW_BYTES), BUFFER),
    entry("sysctl.net.core.rps_sock_flow_entries", Numbers(0, 1 << 20), POLL),
    entry("sysctl.net.core.skb_defer_max", Numbers(0, 4096), POLL),
    entry("sysctl.net.core.somaxconn", Numbers(128, 65_535), "at least the kernel's old default"),
    // Of TCP and UDP: Documentation/networking/ip-sysctl.rst.
    entry("sysctl.net.ipv4.ip_early_demux", SWITCH, POLL),
    entry("sysctl.net.ipv4.tcp_adv_win_scale", Numbers(-31, 31), TCP),
    entry("sysctl.net.ipv4.tcp_autocorking", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_available_congestion_control", ReadOnly, SEEN),
    entry("sysctl.net.ipv4.tcp_backlog_ack_defer", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_base_mss", Numbers(512, 9000), TCP),
    entry("sysctl.net.ipv4.tcp_comp_sack_delay_ns", Numbers(0, 100_000_000), TCP),
    entry("sysctl.net.ipv4.tcp_comp_sack_nr", Numbers(0, 255), TCP),
    entry("sysctl.net.ipv4.tcp_comp_sack_slack_ns", Numbers(0, 100_000_000), TCP),
    entry("sysctl.net.ipv4.tcp_congestion_control", Congestion, TCP),
    entry("sysctl.net.ipv4.tcp_dsack", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_early_demux", SWITCH, POLL),
    entry("sysctl.net.ipv4.tcp_early_retrans", Numbers(0, 4), TCP),
    entry("sysctl.net.ipv4.tcp_ecn", Numbers(0, 5), TCP),
    entry("sysctl.net.ipv4.tcp_ecn_fallback", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_frto", Numbers(0, 2), TCP),
    entry("sysctl.net.ipv4.tcp_limit_output_bytes", Numbers(MIN_BUFFER_BYTES, 64 << 20), TCP),
    entry("sysctl.net.ipv4.tcp_max_reordering", Numbers(3, 3000), TCP),
    entry("sysctl.net.ipv4.tcp_mem", ReadOnly, SEEN),
    entry("sysctl.net.ipv4.tcp_min_rtt_wlen", Numbers(0, 86_400), TCP),
    entry("sysctl.net.ipv4.tcp_min_tso_segs", Numbers(1, 255), TCP),
    entry("sysctl.net.ipv4.tcp_moderate_rcvbuf", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_mtu_probing", Numbers(0, 2), TCP),
    entry("sysctl.net.ipv4.tcp_no_metrics_save", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_no_ssthresh_metrics_save", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_notsent_lowat", Numbers(MIN_BUFFER_BYTES, u32::MAX as i64), TCP),
    entry("sysctl.net.ipv4.tcp_pacing_ca_ratio", Numbers(50, 1000), TCP),
    entry("sysctl.net.ipv4.tcp_pacing_ss_ratio", Numbers(50, 1000), TCP),
    entry("sysctl.net.ipv4.tcp_pingpong_thresh", Numbers(1, 255), TCP),
    entry("sysctl.net.ipv4.tcp_recovery", Numbers(0, 7), TCP),
    entry("sysctl.net.ipv4.tcp_reordering", Numbers(1, 300), TCP),
    entry("sysctl.net.ipv4.tcp_retrans_collapse", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_rmem", Numbers(MIN_BUFFER_BYTES, LARGEST_TCP_WINDOW_BYTES), BUFFER),
    entry("sysctl.net.ipv4.tcp_rto_min_us", Numbers(1000, 1_000_000), TCP),
    entry("sysctl.net.ipv4.tcp_sack", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_shrink_window", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_slow_start_after_idle", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_thin_linear_timeouts", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_timestamps", Numbers(0, 2), TCP),
    entry("sysctl.net.ipv4.tcp_tso_rtt_log", Numbers(0, 31), TCP),
    entry("sysctl.net.ipv4.tcp_tso_win_divisor", Numbers(0, 255), TCP),
    entry("sysctl.net.ipv4.tcp_window_scaling", SWITCH, TCP),
    entry("sysctl.net.ipv4.tcp_wmem", Numbers(MIN_BUFFER_BYTES, LARGEST_TCP_WINDOW_BYTES), BUFFER),
    entry("sysctl.net.ipv4.udp_early_demux", SWITCH, POLL),
    entry("sysctl.net.ipv4.udp_mem", ReadOnly, SEEN),
    entry("sysctl.net.ipv4.udp_rmem_min", Numbers(MIN_BUFFER_BYTES, 16 << 20), BUFFER),
    entry("sysctl.net.ipv4.udp_wmem_min", Numbers(MIN_BUFFER_BYTES, 16 << 20), BUFFER),
    // Of files: Documentation/admin-guide/sysctl/vm.rst.
    entry("sysctl.vm.dirty_expire_centisecs", Numbers(100, 60_000), CACHE),
    entry("sysctl.vm.dirty_writeback_centisecs", Numbers(10, 60_000), CACHE),
    entry("sysctl.vm.swappiness", Numbers(0, 200), CACHE),
    entry("sysctl.vm.vfs_cache_pressure", Numbers(10, 1000), CACHE),
    entry("sysctl.sunrpc.tcp_slot_table_entries", Numbers(2, 65_536), QUEUE),
    entry("sysctl.sunrpc.tcp_max_slot_table_entries", Numbers(2, 65_536), QUEUE),
];
