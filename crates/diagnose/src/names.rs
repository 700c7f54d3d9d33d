//! Names of the facts that rules read from snapshots, so that each is spelled once.

/// Rate of the source when it was read alone before the measurement.
pub const SOURCE_ALONE: &str = "source.alone_bits_per_s";
/// Percentage of the source that was in the page cache before the measurement.
pub const SOURCE_RESIDENT: &str = "source.resident_percent";

/// Device on the measured path.
pub const LINK_DEVICE: &str = "link.device";
/// Kind of a virtual device (`veth`, `tun`), `loopback`, or `hardware`.
pub const LINK_KIND: &str = "link.kind";
/// Kinds that segment only if the program behind them takes it.
pub const PROGRAM_DECIDES: [&str; 3] = ["tun", "tap", "loopback"];
/// Negotiated speed.
pub const LINK_SPEED: &str = "link.speed_bits_per_s";
/// Largest IP packet that the device sends.
pub const LINK_MTU: &str = "link.mtu_bytes";
/// Most bytes of a super-packet of the device.
pub const LINK_GSO_MAX_BYTES: &str = "link.gso_max_bytes";
/// Most segments of a super-packet of the device.
pub const LINK_GSO_MAX_SEGMENTS: &str = "link.gso_max_segments";
/// Packets that a device's queue holds (`txqueuelen`).
pub const LINK_TX_QUEUE_LEN: &str = "link.tx_queue_len";
/// Packets that the device dropped on transmission.
pub const LINK_TX_DROPPED: &str = "link.tx_dropped";
/// Bytes that the device took to send.
pub const LINK_TX_BYTES: &str = "link.tx_bytes";
/// Packets that the device took to send; most devices count a packet that they segment themselves once.
pub const LINK_TX_PACKETS: &str = "link.tx_packets";
/// Bytes that the device handed over.
pub const LINK_RX_BYTES: &str = "link.rx_bytes";
/// Packets that the device handed over.
pub const LINK_RX_PACKETS: &str = "link.rx_packets";
/// Packets that the device dropped on reception.
pub const LINK_RX_DROPPED: &str = "link.rx_dropped";
/// Packets that the device missed on reception.
pub const LINK_RX_MISSED: &str = "link.rx_missed_errors";
/// Packets dropped because the per-CPU backlog was full.
pub const SOFTNET_DROPPED: &str = "softnet.dropped";
/// Times that a CPU ran out of budget or time with packets left.
pub const SOFTNET_SQUEEZED: &str = "softnet.squeezed";
/// Packets taken in by the softirqs of all CPUs.
pub const SOFTNET_PROCESSED: &str = "softnet.processed";
/// Receive descriptors of each queue of the device.
pub const RING_RX: &str = "ring.rx_frames";
/// The most receive descriptors that the device takes.
pub const RING_RX_MAX: &str = "ring.rx_max_frames";
/// Duplex of the link, `half` or `full`.
pub const LINK_DUPLEX: &str = "link.duplex";
/// Autonegotiation, `on` or `off`.
pub const AUTONEG: &str = "negotiation.autoneg";

/// Whether FreeBSD polls the card at each tick of the clock, `on` or `off`; missing if it can't.
pub const POLLING: &str = "polling.state";

/// Kind of the queueing discipline at the root of the device.
pub const QDISC_KIND: &str = "qdisc.kind";
/// Kind of queueing discipline that the kernel gives a new device.
pub const DEFAULT_QDISC: &str = "sysctl.net.core.default_qdisc";
/// Governors that choose the CPUs' clocks, with commas between them.
pub const GOVERNOR: &str = "frequency.governor";
/// CPUs on which the device's interrupts arrive, all together: "0,1".
pub const INTERRUPT_CPUS: &str = "interrupts.affinity";
/// CPUs to which the device's interrupts may go, as `irq.affinity` has them.
pub const INTERRUPT_ALLOWED: &str = "interrupts.allowed";
/// Number of the device's interrupts.
pub const INTERRUPT_VECTORS: &str = "interrupts.vectors";
/// CPUs to which the device's packets are handed on, as a mask.
pub const RPS_MASK: &str = "steering.rps_mask";
/// Rate of a shaper.
pub const QDISC_RATE: &str = "qdisc.rate_bits_per_s";
/// Rate that a class of htb may borrow up to.
pub const QDISC_CEIL: &str = "qdisc.ceil_bits_per_s";
/// Bucket of a shaper.
pub const QDISC_BURST: &str = "qdisc.burst_bytes";
/// Bytes that the queue holds.
pub const QDISC_LIMIT: &str = "qdisc.limit_bytes";
/// Packets that went through.
pub const QDISC_PACKETS: &str = "qdisc.sent_packets";
/// Bytes that went through, as the queue counts them.
pub const QDISC_SENT_BYTES: &str = "qdisc.sent_bytes";
/// Packets dropped for lack of room or for their size.
pub const QDISC_DROPS: &str = "qdisc.drops";
/// Times a packet had to wait for tokens.
pub const QDISC_OVERLIMITS: &str = "qdisc.overlimits";

/// The htb class for packets that no filter matches, as tc(8) writes it; `none`.
pub const CLASS_DEFAULT: &str = "class.default";

/// TCP segmentation offload, `on` or `off`.
pub const OFFLOAD_TSO: &str = "offload.tso";
/// Generic segmentation offload, `on` or `off`.
pub const OFFLOAD_GSO: &str = "offload.gso";
/// Merging of arriving segments, `on` or `off`.
pub const OFFLOAD_GRO: &str = "offload.gro";
/// Scatter-gather: sending from several places in memory. Without it no segmentation can be delayed.
pub const OFFLOAD_SG: &str = "offload.sg";
/// Checksums computed by the device; without them it can't segment.
pub const OFFLOAD_TX_CHECKSUM: &str = "offload.tx-checksum";
/// `window` metric of the route to the peer, bytes.
pub const ROUTE_WINDOW: &str = "route.window";
/// `advmss` metric of the route to the peer, bytes.
pub const ROUTE_ADVMSS: &str = "route.advmss";
/// `mtu` metric of the route to the peer, bytes.
pub const ROUTE_MTU: &str = "route.mtu";
/// `congctl` metric of the route to the peer: the congestion control over it.
pub const ROUTE_CONGCTL: &str = "route.congctl";
/// Destination of that route, as `ip route` prints it.
pub const ROUTE_DESTINATION: &str = "route.destination";

/// Receive buffer: smallest, default and largest, bytes.
pub const TCP_RMEM: &str = "sysctl.net.ipv4.tcp_rmem";
/// Largest receive buffer that a program may ask for, bytes.
pub const RMEM_MAX: &str = "sysctl.net.core.rmem_max";
/// Send buffer: smallest, default and largest, bytes.
pub const TCP_WMEM: &str = "sysctl.net.ipv4.tcp_wmem";
/// Whether windows above 64 KiB are offered.
pub const TCP_WINDOW_SCALING: &str = "sysctl.net.ipv4.tcp_window_scaling";
/// Whether receive buffers grow as a connection needs.
pub const TCP_MODERATE_RCVBUF: &str = "sysctl.net.ipv4.tcp_moderate_rcvbuf";
/// Whether selective acknowledgements are offered.
pub const TCP_SACK: &str = "sysctl.net.ipv4.tcp_sack";
/// Unsent bytes at which a socket takes no more data.
pub const TCP_NOTSENT_LOWAT: &str = "sysctl.net.ipv4.tcp_notsent_lowat";
/// Whether slow-start thresholds of earlier connections are ignored (the name is older than this meaning).
pub const TCP_NO_SSTHRESH_SAVE: &str = "sysctl.net.ipv4.tcp_no_ssthresh_metrics_save";
/// Congestion control of new sockets.
pub const TCP_CONGESTION: &str = "sysctl.net.ipv4.tcp_congestion_control";
/// Congestion controls that this kernel has.
pub const TCP_AVAILABLE: &str = "sysctl.net.ipv4.tcp_available_congestion_control";

/// Time that the CPU quota throttled the process's cgroup, microseconds.
pub const THROTTLED_US: &str = "cgroup.throttled_us";
/// The quota in words, `none` if there is none.
pub const QUOTA: &str = "cgroup.quota";
/// CPU quota as a share of one CPU, percent.
pub const QUOTA_PERCENT: &str = "cgroup.quota_percent";

/// Packets received with a congestion mark, on the whole host.
pub const RECEIVED_CE: &str = "netstat.IpExt.InCEPkts";
/// Datagrams cut into fragments, on the whole host.
pub const FRAGMENTED: &str = "snmp.Ip.FragOKs";
/// Fragments made of datagrams too large for the path, on the whole host.
pub const FRAGMENTS_MADE: &str = "snmp.Ip.FragCreates";
/// Fragments received, on the whole host.
pub const FRAGMENTS_RECEIVED: &str = "snmp.Ip.ReasmReqds";
/// How often the device's carrier came or went.
pub const LINK_CARRIER_CHANGES: &str = "link.carrier_changes";
/// Router on the route to the peer; missing if there is none.
pub const ROUTE_GATEWAY: &str = "route.gateway";
/// Device that the route to the peer uses.
pub const ROUTE_DEVICE: &str = "route.device";
/// Out-of-order segments that TCP tolerates before it takes one for lost.
pub const TCP_REORDERING: &str = "sysctl.net.ipv4.tcp_reordering";
/// Whether TCP looks for a smaller packet size on its own: 0 never, 1 after time-outs, 2 always.
pub const TCP_MTU_PROBING: &str = "sysctl.net.ipv4.tcp_mtu_probing";
/// Minimum retransmission time-out, microseconds.
pub const TCP_RTO_MIN_US: &str = "sysctl.net.ipv4.tcp_rto_min_us";
/// Whether TCP asks for congestion marks: 0 never, 1 always, 2 if the peer asks.
pub const TCP_ECN: &str = "sysctl.net.ipv4.tcp_ecn";

/// Kinds of CPU time in `cpu.N.KIND_us`; together they are the wall time of CPU N (proc(5)).
pub const CPU_KINDS: [&str; 8] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// CPUs that the process may run on (sched_getaffinity(2)).
pub const PROCESS_CPUS: &str = "process.allowed_cpus";
/// Time that the process ran its own code (getrusage(2), `ru_utime`).
pub const PROCESS_USER_US: &str = "process.user_us";
/// Time that the kernel worked for the process (getrusage(2), `ru_stime`).
pub const PROCESS_SYSTEM_US: &str = "process.system_us";
/// Nice value of the process, -20 to 19 (getpriority(2)).
pub const PROCESS_NICE: &str = "process.nice";
/// Scheduling policy of the process: `other`, `idle`, `batch`, ... (sched(7)).
pub const PROCESS_POLICY: &str = "process.policy";

/// Times that TCP's memory, of all sockets together, came under pressure.
pub const TCP_MEMORY_PRESSURES: &str = "netstat.TcpExt.TCPMemoryPressures";
/// Duration of this pressure, counted when it ends, milliseconds.
pub const TCP_MEMORY_PRESSURE_MS: &str = "netstat.TcpExt.TCPMemoryPressuresChrono";
/// Memory that all TCP sockets hold, pages.
pub const TCP_MEMORY_PAGES: &str = "sockstat.tcp_mem_pages";
/// Memory at which TCP is under pressure (the second of `tcp_mem`), pages.
pub const TCP_MEMORY_PRESSURE_PAGES: &str = "sockstat.tcp_mem_pressure_pages";

/// Segments in order that a socket dropped for lack of receive memory.
pub const TCP_RECEIVE_DROP: &str = "netstat.TcpExt.TCPRcvQDrop";
/// The same for segments out of order.
pub const TCP_OUT_OF_ORDER_DROP: &str = "netstat.TcpExt.TCPOFODrop";
/// Segments dropped because the backlog of a socket in use was full.
pub const TCP_BACKLOG_DROP: &str = "netstat.TcpExt.TCPBacklogDrop";
/// Segments dropped because they came after the window was closed.
pub const TCP_ZERO_WINDOW_DROP: &str = "netstat.TcpExt.TCPZeroWindowDrop";
/// Times that a socket's queue had to be made smaller for lack of receive memory.
pub const TCP_PRUNE_CALLED: &str = "netstat.TcpExt.PruneCalled";
